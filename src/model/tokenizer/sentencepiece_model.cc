#include "model/tokenizer/sentencepiece_model.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "model/tokenizer/utf8.h"

namespace memdecay {
namespace {

std::size_t border(char left, char right) {
  return (std::size_t{static_cast<unsigned char>(left)} << 8) | static_cast<unsigned char>(right);
}

// An ill-formed byte counts as a character of its own.
std::size_t char_length(std::string_view text) {
  return std::max<std::size_t>(utf8_char_length(text), 1);
}

}  // namespace

Result<SentencePieceModel> SentencePieceModel::create(const std::vector<float>& scores,
                                                      TokenId unknown, const TokenText& text) {
  if (scores.size() != text.size()) {
    return make_status(StatusCode::kCorrupt, "the vocabulary has {} tokens but {} scores",
                       text.size(), scores.size());
  }
  if (std::any_of(scores.begin(), scores.end(), [](float score) { return std::isnan(score); })) {
    return make_status(StatusCode::kCorrupt, "a score of the vocabulary is not a number");
  }
  SentencePieceModel model(text);
  model.unknown_ = unknown;
  model.byte_ids_.fill(-1);
  const auto count = static_cast<TokenId>(text.size());
  for (TokenId id = 0; id < count; ++id) {
    const std::string_view bytes = text.bytes(id);
    if (text.type(id) == TokenType::kByte) {
      model.byte_ids_[static_cast<unsigned char>(bytes[0])] = id;
      model.has_byte_fallback_ = true;
    } else if (text.type(id) == TokenType::kNormal || text.type(id) == TokenType::kUnused) {
      model.pieces_.insert(id);
      model.allow_borders(bytes);
    }
  }
  model.rank_scores(scores);
  return model;
}

void SentencePieceModel::allow_borders(std::string_view piece) {
  for (std::size_t at = 0; at < piece.size();) {
    at += char_length(piece.substr(at));
    if (at < piece.size()) inner_borders_.set(border(piece[at - 1], piece[at]));
  }
}

void SentencePieceModel::rank_scores(const std::vector<float>& scores) {
  std::vector<std::uint32_t> order(scores.size());
  std::iota(order.begin(), order.end(), 0U);
  std::sort(order.begin(), order.end(),
            [&](std::uint32_t a, std::uint32_t b) { return scores[a] > scores[b]; });
  priorities_.resize(scores.size());
  std::uint32_t priority = 0;
  for (std::size_t i = 0; i < order.size(); ++i) {
    if (i > 0 && scores[order[i]] < scores[order[i - 1]]) ++priority;
    priorities_[order[i]] = priority;
  }
}

std::size_t SentencePieceModel::cut(std::string_view text) const {
  std::size_t at = char_length(text);
  while (at < text.size() && inner_borders_.test(border(text[at - 1], text[at]))) {
    at += char_length(text.substr(at));
  }
  return at;
}

std::optional<MergeStep> SentencePieceModel::lookup(std::string_view joined) const {
  const TokenId id = pieces_.find(joined);
  if (id < 0) return std::nullopt;
  return MergeStep{priorities_[static_cast<std::size_t>(id)], id};
}

bool SentencePieceModel::encode(std::string_view chunk, MergeList& list,
                                std::vector<MergeSymbol>& tokens) const {
  list.clear();
  for (std::size_t at = 0; at < chunk.size();) {
    const std::size_t length = char_length(chunk.substr(at));
    const TokenId id = pieces_.find(chunk.substr(at, length));
    list.add({id, static_cast<std::uint32_t>(at), static_cast<std::uint32_t>(at + length)});
    at += length;
  }
  list.merge([&](const MergeSymbol& left, const MergeSymbol& right) {
    return lookup(chunk.substr(left.begin, right.end - left.begin));
  });
  bool by_bytes_alone = true;
  for (const MergeSymbol& symbol : list.symbols()) {
    if (symbol.id >= 0) {
      append_piece(chunk, symbol, tokens);
    } else {
      append_bytes(chunk, symbol, tokens);
      by_bytes_alone &= has_byte_fallback_;
    }
  }
  return by_bytes_alone;
}

// An unused piece may stand between two merges but not in the result: it falls back into the best
// pair of pieces that it is made of.
void SentencePieceModel::append_piece(std::string_view chunk, const MergeSymbol& symbol,
                                      std::vector<MergeSymbol>& tokens) const {
  if (text_->type(symbol.id) != TokenType::kUnused) {
    tokens.push_back(symbol);
    return;
  }
  MergeSymbol best_left;
  MergeSymbol best_right;
  std::uint64_t best = ~std::uint64_t{0};
  const std::string_view text = chunk.substr(symbol.begin, symbol.end - symbol.begin);
  for (std::size_t at = char_length(text); at < text.size(); at += char_length(text.substr(at))) {
    const TokenId left = pieces_.find(text.substr(0, at));
    const TokenId right = pieces_.find(text.substr(at));
    if (left < 0 || right < 0) continue;
    const std::uint64_t cost = std::uint64_t{priorities_[static_cast<std::size_t>(left)]} +
                               priorities_[static_cast<std::size_t>(right)];
    if (cost >= best) continue;
    best = cost;
    const auto middle = symbol.begin + static_cast<std::uint32_t>(at);
    best_left = {left, symbol.begin, middle};
    best_right = {right, middle, symbol.end};
  }
  if (best == ~std::uint64_t{0}) {  // a single character, or nothing that it could be made of
    tokens.push_back(symbol);
    return;
  }
  append_piece(chunk, best_left, tokens);
  append_piece(chunk, best_right, tokens);
}

void SentencePieceModel::append_bytes(std::string_view chunk, const MergeSymbol& symbol,
                                      std::vector<MergeSymbol>& tokens) const {
  if (has_byte_fallback_) {
    for (std::uint32_t at = symbol.begin; at < symbol.end; ++at) {
      const TokenId id = byte_ids_[static_cast<unsigned char>(chunk[at])];
      if (id >= 0) tokens.push_back({id, at, at + 1});
    }
    return;
  }
  if (unknown_ < 0) return;
  if (!tokens.empty() && tokens.back().id == unknown_ && tokens.back().end == symbol.begin) {
    tokens.back().end = symbol.end;
    return;
  }
  tokens.push_back({unknown_, symbol.begin, symbol.end});
}

}  // namespace memdecay
