// Which neighbouring pages of a session are worth laying together, so that slots which hold no
// token are given back.
//
// Pages begin at the borders of regions, so the last page of every run is partly filled. A choice
// is two or more neighbours that fit into fewer pages: the fewest that free one, since their slots
// are copied. It begins with a page that is not full. Neighbours are
//   alike   of one region, pin, tool round, core and item: their page is judged as each would be;
//   near    of one pin and tool round: their page is judged by the strongest run in it.
// Pages of one region alone would fill 94 to 96 % of the slots of recorded sessions, so near ones
// are laid together too, but only where the caller says that pages are too empty (decision 0330).
// Pure, any thread. Cost: O(pages * most_pages), no allocation.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

namespace memdecay {

enum class Kinship : std::uint8_t { kNone, kNear, kAlike };

/// A page as packing sees it.
struct PackablePage {
  std::int32_t filled = 0;
  bool packable = false;             ///< it may be replaced by another page
  Kinship kinship = Kinship::kNone;  ///< with the page before it
};

/// Pages [first, first + count).
struct PackingChoice {
  std::size_t first = 0;
  std::size_t count = 0;
  friend bool operator==(const PackingChoice&, const PackingChoice&) = default;
};

/// At most `most_pages` pages, each of at least this kinship with the one before. Nothing where no
/// page can be freed.
std::optional<PackingChoice> choose_packing(std::span<const PackablePage> pages,
                                            std::int32_t page_tokens, std::size_t most_pages,
                                            Kinship least);

}  // namespace memdecay
