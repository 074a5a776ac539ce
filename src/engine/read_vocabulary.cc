#include "engine/read_vocabulary.h"

namespace memdecay {
namespace {

Status read_kind(const GgufFile& file, Vocabulary& vocabulary) {
  MEMDECAY_ASSIGN_OR_RETURN(const std::string_view model,
                            file.required<std::string_view>("tokenizer.ggml.model"));
  if (model == "gpt2") {
    vocabulary.kind = VocabularyKind::kBpe;
  } else if (model == "llama") {
    vocabulary.kind = VocabularyKind::kSentencePiece;
  } else {
    return make_status(
        StatusCode::kUnsupported,
        "{}: tokenizer \"{}\" is not supported; this build reads gpt2 (byte-level BPE) and llama "
        "(SentencePiece) vocabularies",
        file.name(), model);
  }
  return Status();
}

Status read_pieces(const GgufFile& file, Vocabulary& vocabulary) {
  MEMDECAY_ASSIGN_OR_RETURN(const GgufStrings pieces, file.strings("tokenizer.ggml.tokens"));
  vocabulary.pieces.reserve(pieces.size());
  for (const std::string_view piece : pieces) vocabulary.pieces.emplace_back(piece);
  if (file.find("tokenizer.ggml.scores")) {
    MEMDECAY_ASSIGN_OR_RETURN(const GgufNumbers<float> scores,
                              file.numbers<float>("tokenizer.ggml.scores"));
    for (std::size_t i = 0; i < scores.size(); ++i) vocabulary.scores.push_back(scores[i]);
  }
  if (file.find("tokenizer.ggml.token_type")) {
    MEMDECAY_ASSIGN_OR_RETURN(const GgufNumbers<std::int32_t> types,
                              file.numbers<std::int32_t>("tokenizer.ggml.token_type"));
    for (std::size_t i = 0; i < types.size(); ++i)
      vocabulary.types.push_back(static_cast<TokenType>(types[i]));
  }
  if (vocabulary.kind == VocabularyKind::kBpe) {
    MEMDECAY_ASSIGN_OR_RETURN(const GgufStrings merges, file.strings("tokenizer.ggml.merges"));
    vocabulary.merges.reserve(merges.size());
    for (const std::string_view merge : merges) vocabulary.merges.emplace_back(merge);
  }
  return Status();
}

Status read_token(const GgufFile& file, const char* key, const Vocabulary& vocabulary,
                  TokenId& token) {
  MEMDECAY_ASSIGN_OR_RETURN(const auto value, file.optional<std::int64_t>(key));
  if (!value) return Status();
  // Some writers store -1 (or its unsigned twin) for "none".
  if (*value == -1 || *value == 0xFFFFFFFFLL) return Status();
  if (*value < 0 || *value >= static_cast<std::int64_t>(vocabulary.pieces.size())) {
    return make_status(StatusCode::kCorrupt, "{}: {} is {}, outside the vocabulary of {}",
                       file.name(), key, *value, vocabulary.pieces.size());
  }
  token = static_cast<TokenId>(*value);
  return Status();
}

Status read_switch(const GgufFile& file, const char* key, bool absent, bool& value) {
  MEMDECAY_ASSIGN_OR_RETURN(const auto stored, file.optional<bool>(key));
  value = stored.value_or(absent);
  return Status();
}

}  // namespace

Result<Vocabulary> read_vocabulary(const GgufFile& file) {
  Vocabulary vocabulary;
  MEMDECAY_RETURN_IF_ERROR(read_kind(file, vocabulary));
  MEMDECAY_RETURN_IF_ERROR(read_pieces(file, vocabulary));
  MEMDECAY_ASSIGN_OR_RETURN(const auto pre, file.optional<std::string_view>("tokenizer.ggml.pre"));
  vocabulary.pre = pre.value_or("");
  MEMDECAY_RETURN_IF_ERROR(
      read_token(file, "tokenizer.ggml.bos_token_id", vocabulary, vocabulary.bos));
  MEMDECAY_RETURN_IF_ERROR(
      read_token(file, "tokenizer.ggml.eos_token_id", vocabulary, vocabulary.eos));
  MEMDECAY_RETURN_IF_ERROR(
      read_token(file, "tokenizer.ggml.eot_token_id", vocabulary, vocabulary.eot));
  MEMDECAY_RETURN_IF_ERROR(
      read_token(file, "tokenizer.ggml.unknown_token_id", vocabulary, vocabulary.unknown));
  const bool is_sentence_piece = vocabulary.kind == VocabularyKind::kSentencePiece;
  MEMDECAY_RETURN_IF_ERROR(
      read_switch(file, "tokenizer.ggml.add_bos_token", is_sentence_piece, vocabulary.add_bos));
  MEMDECAY_RETURN_IF_ERROR(
      read_switch(file, "tokenizer.ggml.add_eos_token", false, vocabulary.add_eos));
  MEMDECAY_RETURN_IF_ERROR(read_switch(file, "tokenizer.ggml.add_space_prefix", is_sentence_piece,
                                       vocabulary.add_space_prefix));
  return vocabulary;
}

}  // namespace memdecay
