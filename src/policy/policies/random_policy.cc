#include "policy/policies/random_policy.h"

#include "policy/page_accesses.h"

namespace memdecay {

void RandomPolicy::on_track(const PageMeta& page, bool is_new) {
  if (!is_new) return;
  page_slot(drawn_, page.id) = random_.unit();
}

}  // namespace memdecay
