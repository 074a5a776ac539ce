#include "policy/policies/random_policy.h"

#include "core/slot_of.h"

namespace memdecay {

void RandomPolicy::on_track(const PageMeta& page, bool is_new) {
  if (!is_new) return;
  slot_of(drawn_, page.id.index()) = random_.unit();
}

}  // namespace memdecay
