// Vocabulary: what a model file says about its tokens, as plain values.
//
// The engine fills it from GGUF metadata (tokenizer.ggml.*); tests fill it by hand. It knows
// nothing of files. Tokenizer::create checks it: sizes that do not agree are kCorrupt, a pattern
// name that nobody knows is kUnsupported. Values are free of threads.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/id.h"

namespace memdecay {

enum class VocabularyKind : std::uint8_t {
  kBpe,            ///< tokenizer.ggml.model "gpt2": byte-level BPE, ranked merges
  kSentencePiece,  ///< tokenizer.ggml.model "llama": scored pieces with byte fallback
};

/// The numbers of tokenizer.ggml.token_type.
enum class TokenType : std::int32_t {
  kNormal = 1,
  kUnknown = 2,
  kControl = 3,
  kUserDefined = 4,
  kUnused = 5,
  kByte = 6,
};

struct Vocabulary {
  VocabularyKind kind = VocabularyKind::kBpe;
  std::string pre;                  ///< tokenizer.ggml.pre; only kBpe reads it, "" means "default"
  std::vector<std::string> pieces;  ///< as stored: byte alphabet (kBpe) or U+2581 (kSentencePiece)
  std::vector<float> scores;        ///< kSentencePiece: one a piece
  std::vector<TokenType> types;     ///< one a piece, or empty: all normal
  std::vector<std::string> merges;  ///< kBpe: "left right", best first

  TokenId bos = -1;  ///< -1: the model names none; so for all four
  TokenId eos = -1;
  TokenId eot = -1;
  TokenId unknown = -1;
  bool add_bos = false;           ///< EncodeOptions::add_special puts bos before the text
  bool add_eos = false;           ///< EncodeOptions::add_special puts eos behind the text
  bool add_space_prefix = false;  ///< kSentencePiece: a text starts as if a space stood before it
};

}  // namespace memdecay
