#include "policy/protected_prefix.h"

namespace memdecay {

void ProtectedPrefix::track(const PageMeta& page) {
  PageMeta known = page;
  known.pinned |= page.region == Region::kSystem || page.position < prefix_tokens_;
  inner_->track(known);
}

}  // namespace memdecay
