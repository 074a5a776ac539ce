#include "policy/policies/protected_prefix.h"

namespace memdecay {

void ProtectedPrefix::track(const PageMeta& page) {
  PageMeta known = page;
  known.pinned |= protects(page);
  inner_->track(known);
}

void ProtectedPrefix::repack(std::span<const TrackedPageId> before,
                             std::span<const PackedPage> after) {
  std::vector<PackedPage> known(after.begin(), after.end());
  for (PackedPage& page : known) page.meta.pinned |= protects(page.meta);
  inner_->repack(before, known);
}

}  // namespace memdecay
