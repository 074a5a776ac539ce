// Small vocabularies for tests and fuzzers: every byte, a few merges, a few special tokens.
#pragma once

#include <string>

#include "model/tokenizer/byte_alphabet.h"
#include "model/tokenizer/vocabulary.h"

namespace memdecay {

inline void add_piece(Vocabulary& vocabulary, std::string piece, TokenType type, float score = 0) {
  vocabulary.pieces.push_back(std::move(piece));
  vocabulary.types.push_back(type);
  if (vocabulary.kind == VocabularyKind::kSentencePiece) vocabulary.scores.push_back(score);
}

/// Ids: 0-255 the bytes, then the results of the merges, then <|a|> <|ab|> (control), <tool>, "  "
/// (user-defined).
inline Vocabulary tiny_bpe(std::string pre = "gpt-2") {
  Vocabulary vocabulary;
  vocabulary.pre = std::move(pre);
  for (int byte = 0; byte < 256; ++byte) {
    const char c = static_cast<char>(byte);
    add_piece(vocabulary, byte_alphabet_of_bytes(std::string_view(&c, 1)), TokenType::kNormal);
  }
  const char* merges[][2] = {
      {"a", "b"},       {"b", "a"},           {"ab", "a"},      {" ", "ab"},         {"a", "a"},
      {"aa", "a"},      {"aa", "aa"},         {"b", "c"},       {"ab", "c"},         {" ", " "},
      {"\xE4", "\xB8"}, {"\xE4\xB8", "\xAD"}, {"<", "|"},       {"<|", "a"},         {"|", ">"},
      {"aba", "ba"},    {"1", "2"},           {"\xF0", "\x9F"}, {"\xF0\x9F", "\x98"}};
  for (const auto& merge : merges) {
    const std::string left = byte_alphabet_of_bytes(merge[0]);
    const std::string right = byte_alphabet_of_bytes(merge[1]);
    vocabulary.merges.push_back(left + " " + right);
    add_piece(vocabulary, left + right, TokenType::kNormal);
  }
  add_piece(vocabulary, "<|a|>", TokenType::kControl);
  add_piece(vocabulary, "<|ab|>", TokenType::kControl);
  add_piece(vocabulary, "<tool>", TokenType::kUserDefined);
  vocabulary.bos = static_cast<TokenId>(vocabulary.pieces.size()) - 3;
  vocabulary.eos = vocabulary.bos + 1;
  return vocabulary;
}

/// Ids: 0 <unk>, 1 <s>, 2 </s>, 3-258 the bytes, then pieces by falling score.
inline Vocabulary tiny_sentencepiece() {
  Vocabulary vocabulary;
  vocabulary.kind = VocabularyKind::kSentencePiece;
  add_piece(vocabulary, "<unk>", TokenType::kUnknown);
  add_piece(vocabulary, "<s>", TokenType::kControl);
  add_piece(vocabulary, "</s>", TokenType::kControl);
  const char* digits = "0123456789ABCDEF";
  for (std::size_t byte = 0; byte < 256; ++byte) {
    add_piece(vocabulary, std::string("<0x") + digits[byte >> 4] + digits[byte & 15] + ">",
              TokenType::kByte);
  }
  float score = 0;
  for (const char* piece : {"\xE2\x96\x81"
                            "a",
                            "ab",
                            "aa",
                            "\xE2\x96\x81"
                            "ab",
                            "aaa",
                            "aaaa",
                            "\xE2\x96\x81\xE2\x96\x81",
                            "ba",
                            "<s",
                            "bc",
                            "中文",
                            "a,\xE2\x96\x81",
                            "aab",
                            "\xE2\x96\x81",
                            "a",
                            "b",
                            "c",
                            "<",
                            "s",
                            ">",
                            "中",
                            "文",
                            ",",
                            "/",
                            "é"}) {
    add_piece(vocabulary, piece, TokenType::kNormal, score--);
  }
  add_piece(vocabulary, "\n\n", TokenType::kUserDefined, -1000);
  add_piece(vocabulary, "<tool>", TokenType::kUserDefined, -1000);
  vocabulary.unknown = 0;
  vocabulary.bos = 1;
  vocabulary.eos = 2;
  vocabulary.add_bos = true;
  return vocabulary;
}

}  // namespace memdecay
