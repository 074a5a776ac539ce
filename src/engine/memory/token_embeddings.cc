#include "engine/memory/token_embeddings.h"

#include <string_view>

#include "core/check.h"
#include "quant/panel.h"

namespace memdecay {

void read_embedding(const Model& model, TokenId token, std::span<float> out) {
  const PanelMatrix& embedding = model.weights().embedding;
  MEMDECAY_CHECK(token >= 0 && token < embedding.rows);
  MEMDECAY_CHECK(out.size() == static_cast<std::size_t>(embedding.k));
  unpack_row(embedding, token, out);
}

std::vector<float> read_embeddings(const Model& model, std::span<const TokenId> tokens) {
  const auto length = static_cast<std::size_t>(model.config().embedding_length);
  std::vector<float> embeddings(tokens.size() * length);
  for (std::size_t i = 0; i < tokens.size(); ++i)
    read_embedding(model, tokens[i], std::span(embeddings).subspan(i * length, length));
  return embeddings;
}

std::vector<std::int32_t> segment_places(const Model& model, std::span<const TokenId> tokens) {
  std::vector<std::int32_t> places;
  places.reserve(tokens.size());
  std::int32_t place = 0;
  bool after_line = false;
  for (const TokenId token : tokens) {
    places.push_back(place++);
    const std::string_view text = model.tokenizer().decode(token);
    const bool blank_line =
        text.find("\n\n") != std::string_view::npos || (after_line && text.starts_with('\n'));
    after_line = text.ends_with('\n');
    if (blank_line || model.tokenizer().is_control(token)) place = 0;
  }
  return places;
}

DistinctTokens::DistinctTokens(std::int32_t vocabulary_size)
    : rows_(static_cast<std::size_t>(vocabulary_size), -1) {}

std::int32_t DistinctTokens::row_of(TokenId token) {
  std::int32_t& row = rows_[static_cast<std::size_t>(token)];
  if (row < 0) {
    row = static_cast<std::int32_t>(tokens_.size());
    tokens_.push_back(token);
  }
  return row;
}

std::vector<std::int32_t> DistinctTokens::rows_of(std::span<const TokenId> tokens) {
  std::vector<std::int32_t> rows;
  rows.reserve(tokens.size());
  for (const TokenId token : tokens) rows.push_back(row_of(token));
  return rows;
}

}  // namespace memdecay
