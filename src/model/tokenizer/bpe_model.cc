#include "model/tokenizer/bpe_model.h"

#include <algorithm>
#include <bit>

#include "model/tokenizer/byte_alphabet.h"
#include "model/tokenizer/piece_map.h"

namespace memdecay {
namespace {

// Tokens that merges may name: ordinary ones first, so that they keep their bytes against a
// user-defined token of the same text. Control tokens never come out of a merge.
PieceMap mergeable_pieces(const TokenText& text) {
  PieceMap map(text, text.size());
  const auto count = static_cast<TokenId>(text.size());
  for (TokenId id = 0; id < count; ++id) {
    const TokenType type = text.type(id);
    if (type == TokenType::kNormal || type == TokenType::kUnused) map.insert(id);
  }
  for (TokenId id = 0; id < count; ++id) {
    if (text.type(id) == TokenType::kUserDefined) map.insert(id);
  }
  return map;
}

}  // namespace

Result<BpeModel> BpeModel::create(const std::vector<std::string>& merges, const TokenText& text) {
  const PieceMap pieces = mergeable_pieces(text);
  BpeModel model;
  for (std::size_t byte = 0; byte < 256; ++byte) {
    const char c = static_cast<char>(byte);
    model.byte_ids_[byte] = pieces.find(std::string_view(&c, 1));
  }
  model.merges_.resize(std::bit_ceil(std::max<std::size_t>(2 * merges.size(), 4)));
  for (std::size_t rank = 0; rank < merges.size(); ++rank) {
    const std::string_view merge = merges[rank];
    const std::size_t space = std::min(merge.find(' ', 1), merge.size());
    const auto left_bytes = bytes_of_byte_alphabet(merge.substr(0, space));
    const auto right_bytes =
        bytes_of_byte_alphabet(merge.substr(std::min(space + 1, merge.size())));
    TokenId ids[3] = {-1, -1, -1};
    if (left_bytes && right_bytes) {
      ids[0] = pieces.find(*left_bytes);
      ids[1] = pieces.find(*right_bytes);
      ids[2] = pieces.find(*left_bytes + *right_bytes);
    }
    if (std::min({ids[0], ids[1], ids[2]}) < 0) {
      return make_status(StatusCode::kCorrupt,
                         "merge {} ('{}') names a piece that the vocabulary does not have", rank,
                         merge);
    }
    Merge& slot = model.merges_[model.slot_of(pair_of(ids[0], ids[1]))];
    if (slot.pair != kFree) continue;  // said twice: the better rank stands
    slot = {pair_of(ids[0], ids[1]), static_cast<std::uint32_t>(rank), ids[2]};
  }
  return model;
}

std::size_t BpeModel::slot_of(std::uint64_t pair) const {
  const std::size_t mask = merges_.size() - 1;
  std::size_t slot = (pair * 0x9E3779B97F4A7C15U) >> (64 - std::bit_width(mask));
  while (merges_[slot].pair != pair && merges_[slot].pair != kFree) slot = (slot + 1) & mask;
  return slot;
}

std::optional<MergeStep> BpeModel::lookup(TokenId left, TokenId right) const {
  const Merge& merge = merges_[slot_of(pair_of(left, right))];
  if (merge.pair == kFree) return std::nullopt;
  return MergeStep{merge.rank, merge.id};
}

void BpeModel::encode(std::string_view word, MergeList& list) const {
  list.clear();
  for (std::uint32_t i = 0; i < word.size(); ++i) {
    const TokenId id = byte_ids_[static_cast<unsigned char>(word[i])];
    if (id >= 0) list.add({id, i, i + 1});
  }
  list.merge([this](const MergeSymbol& left, const MergeSymbol& right) {
    return lookup(left.id, right.id);
  });
}

}  // namespace memdecay
