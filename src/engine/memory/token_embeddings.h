// What a model knows of tokens before any forward pass: rows of its embedding matrix, and where a
// text of tokens has its breaks.
//
// Embeddings are as stored, dequantized, without the scale that some models put on them. Pure
// functions of the model; any thread. Cost: embedding_length a row, O(tokens) for places.
// REQUIRES for embeddings: a model that was loaded with weights, tokens of its vocabulary.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/id.h"
#include "engine/model.h"

namespace memdecay {

/// REQUIRES: out has embedding_length values.
void read_embedding(const Model& model, TokenId token, std::span<float> out);
/// [tokens][embedding_length]
std::vector<float> read_embeddings(const Model& model, std::span<const TokenId> tokens);

/// [tokens]: tokens since the segment began, from 0. A segment begins with the text, behind a
/// control token and behind a blank line: the structure that plain text has.
std::vector<std::int32_t> segment_places(const Model& model, std::span<const TokenId> tokens);

/// Distinct tokens of one text or many, numbered as they appear.
class DistinctTokens {
 public:
  explicit DistinctTokens(std::int32_t vocabulary_size);
  std::int32_t row_of(TokenId token);
  std::vector<std::int32_t> rows_of(std::span<const TokenId> tokens);
  const std::vector<TokenId>& tokens() const { return tokens_; }

 private:
  std::vector<std::int32_t> rows_;  ///< [vocabulary]: -1 for a token not seen yet
  std::vector<TokenId> tokens_;     ///< [rows]
};

}  // namespace memdecay
