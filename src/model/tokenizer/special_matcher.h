// SpecialMatcher: finds control and user-defined tokens that are spelled out in a text.
//
// Leftmost first, longest of those. Control (and <unk>) tokens count only inside `control_ranges`;
// user-defined ones everywhere, or, with `markers_in_ranges_only`, those of more than white space
// only inside the ranges too. Immutable after construction; any thread. A step costs one table
// look-up, plus a short binary search a byte where a special token may begin.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "model/tokenizer/encode_options.h"
#include "model/tokenizer/token_text.h"

namespace memdecay {

class SpecialMatcher {
 public:
  /// `text` must outlive the matcher.
  explicit SpecialMatcher(const TokenText& text);

  struct Permissions {
    std::span<const ByteRange> control_ranges;
    bool control_everywhere = false;
    bool markers_in_ranges_only = false;
  };

  /// The first match at or behind `from`. `range` is a cursor into control_ranges: start with 0 and
  /// pass the same variable again for a later `from`.
  std::optional<Token> find(std::string_view text, std::size_t from, const Permissions& permissions,
                            std::size_t& range) const;

  /// The special token of exactly this text, or -1.
  TokenId find_exact(std::string_view text) const;

 private:
  enum class Class : std::uint8_t { kControl, kMarker, kBlank };
  struct Entry {
    TokenId id;
    Class kind;
  };

  std::string_view bytes(const Entry& entry) const { return text_->bytes(entry.id); }
  /// The longest permitted token at the start of `text`; `inside` bytes of it lie in a range.
  std::optional<TokenId> longest_at(std::string_view text, std::size_t inside,
                                    bool markers_in_ranges_only) const;

  const TokenText* text_;
  std::vector<Entry> entries_;              // sorted by bytes
  std::array<std::uint32_t, 257> first_{};  // by first byte: where its entries start
  std::array<bool, 256> starts_always_{};   // a blank or marker begins with the byte
};

}  // namespace memdecay
