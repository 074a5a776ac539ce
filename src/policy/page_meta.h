// PageMeta: what a policy is told about a page.
//
// A page here is a place in one session's history, whatever holds its bytes: in a model with
// several layer groups it stands for all of them. Ids are small numbers chosen by the caller,
// dense, and free for another page after release(). Plain values.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "core/id.h"
#include "policy/region.h"
#include "policy/regions/region_rules.h"

namespace memdecay {

/// A page that a policy tracks; no two tracked pages share one.
using TrackedPageId = StrongId<struct TrackedPageTag, std::int32_t>;

/// The forms of a page, from exact to coarse (design: the ladder).
enum class PageForm : std::uint8_t { kF16, kInt8, kK8V4, kInt4 };
inline constexpr std::size_t kPageFormCount = 4;
constexpr std::size_t form_index(PageForm form) {
  return static_cast<std::size_t>(form);
}
const char* page_form_name(PageForm form);

/// What a page would be in a form. bytes 0: the form is not on offer.
struct FormCost {
  std::uint64_t bytes = 0;
  float rounding_error = 0;  ///< relative error of its keys and values, >= 0
};

struct PageMeta {
  TrackedPageId id;
  Region region = Region::kOrdinary;
  std::int32_t tokens = 0;  ///< > 0
  Position position = 0;    ///< of its first token; no two tracked pages share one
  std::int64_t born_step = 0;
  std::uint64_t bytes = 0;  ///< in its present form
  bool pinned = false;
  bool sealed = true;     ///< an open page is never judged
  float exact_share = 0;  ///< share of tokens that are exact values
  std::int32_t tool_round = kNoToolRound;
  bool tool_core = false;       ///< lives and dies with the core of its round
  std::int32_t item = kNoItem;  ///< instruction or result whose floor it counts to
  PageForm form = PageForm::kF16;
  std::array<FormCost, kPageFormCount> forms = {};  ///< for a policy that demotes
};

/// So many tokens of a page of before.
struct PackedPart {
  TrackedPageId from;
  std::int32_t tokens = 0;
};
/// A page that was made by packing, and what went into it.
struct PackedPage {
  PageMeta meta;
  std::vector<PackedPart> parts;
};

}  // namespace memdecay
