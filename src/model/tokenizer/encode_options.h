// What a caller asks of Tokenizer::encode, and the tokens it gets. Plain values.
#pragma once

#include <cstdint>
#include <span>

#include "core/id.h"

namespace memdecay {

/// Bytes [begin, end) of a text.
struct ByteRange {
  std::uint32_t begin = 0;
  std::uint32_t end = 0;
};

/// A token and the bytes of the text it stands for; begin == end for one that was added.
struct Token {
  TokenId id = -1;
  std::uint32_t begin = 0;
  std::uint32_t end = 0;
  friend bool operator==(const Token&, const Token&) = default;
};

/// Law: a control token is recognized only where its whole text lies inside one of
/// `control_ranges` (or anywhere, with `control_everywhere`). The default recognizes none.
struct EncodeOptions {
  bool add_special = false;                   ///< BOS and EOS, as the model wants them
  bool control_everywhere = false;            ///< for trusted text only
  std::span<const ByteRange> control_ranges;  ///< sorted, disjoint, inside the text
  /// User-defined tokens that are more than white space ("<tool_call>") are recognized only inside
  /// the ranges, too. Off gives the ids of the reference tokenizers, which recognize them in any
  /// text; on closes that way to fake markup in content (decision 0101).
  bool markers_in_ranges_only = false;
};

}  // namespace memdecay
