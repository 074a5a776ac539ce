#include "model/tokenizer/word_encoder.h"

#include <utility>

namespace memdecay {
namespace {

PieceMap normal_pieces(const TokenText& text) {
  PieceMap map(text, text.size());
  for (TokenId id = 0; id < static_cast<TokenId>(text.size()); ++id) {
    if (text.type(id) == TokenType::kNormal) map.insert(id);
  }
  return map;
}

}  // namespace

Result<WordEncoder> WordEncoder::create(const Vocabulary& vocabulary, const TokenText& text) {
  WordEncoder encoder(text);
  if (vocabulary.kind == VocabularyKind::kSentencePiece) {
    MEMDECAY_ASSIGN_OR_RETURN(
        auto model, SentencePieceModel::create(vocabulary.scores, vocabulary.unknown, text));
    encoder.sentencepiece_ = std::move(model);
    return encoder;
  }
  MEMDECAY_ASSIGN_OR_RETURN(auto pre_tokenizer, PreTokenizer::create(vocabulary.pre));
  MEMDECAY_ASSIGN_OR_RETURN(auto model, BpeModel::create(vocabulary.merges, text));
  if (pre_tokenizer.whole_words_first()) encoder.whole_words_ = normal_pieces(text);
  encoder.pre_tokenizer_ = std::move(pre_tokenizer);
  encoder.bpe_ = std::move(model);
  return encoder;
}

Status WordEncoder::encode(std::string_view run, std::uint32_t base, Workspace& workspace,
                           std::vector<Token>& tokens) const {
  if (sentencepiece_) {
    for (std::size_t at = 0; at < run.size();) {
      const std::string_view chunk = run.substr(at, sentencepiece_->cut(run.substr(at)));
      append_word(chunk, base + static_cast<std::uint32_t>(at), workspace, tokens);
      at += chunk.size();
    }
    return Status();
  }
  MEMDECAY_RETURN_IF_ERROR(pre_tokenizer_->split(run, workspace.pre_tokenizer, workspace.ends));
  std::uint32_t begin = 0;
  for (const std::uint32_t end : workspace.ends) {
    append_word(run.substr(begin, end - begin), base + begin, workspace, tokens);
    begin = end;
  }
  return Status();
}

void WordEncoder::append_word(std::string_view word, std::uint32_t base, Workspace& workspace,
                              std::vector<Token>& tokens) const {
  const auto known = workspace.cache.find(word);
  if (!known.empty()) {
    std::uint32_t at = base;
    for (const TokenId id : known) {
      const std::uint32_t end = at + text_->length(id);
      tokens.push_back({id, at, end});
      at = end;
    }
    return;
  }
  const bool cacheable = merge_word(word, workspace);
  workspace.ids.clear();
  for (const MergeSymbol& symbol : workspace.symbols) {
    tokens.push_back({symbol.id, base + symbol.begin, base + symbol.end});
    workspace.ids.push_back(symbol.id);
  }
  if (cacheable) workspace.cache.store(word, workspace.ids);
}

bool WordEncoder::merge_word(std::string_view word, Workspace& workspace) const {
  auto& symbols = workspace.symbols;
  symbols.clear();
  if (sentencepiece_) return sentencepiece_->encode(word, workspace.list, symbols);
  const TokenId whole = whole_words_ ? whole_words_->find(word) : -1;
  if (whole >= 0) {
    symbols.push_back({whole, 0, static_cast<std::uint32_t>(word.size())});
    return true;
  }
  bpe_->encode(word, workspace.list);
  symbols = workspace.list.symbols();
  std::size_t covered = 0;
  for (const MergeSymbol& symbol : symbols) covered += text_->length(symbol.id);
  return covered == word.size();
}

}  // namespace memdecay
