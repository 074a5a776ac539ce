#include "policy/policies/tova_policy.h"

#include "core/slot_of.h"
#include "policy/page_accesses.h"

namespace memdecay {

void TovaPolicy::on_track(const PageMeta& page, bool is_new) {
  if (is_new) slot_of(last_, page.id.index()) = 1;
}

void TovaPolicy::on_observe(const EvidenceBatch& batch) {
  for_each_value(book(), batch, EvidenceKind::kLastQueryMass,
                 [this](TrackedPageId page, double value) {
                   last_[page.index()] = value;
                   rekey(page);
                 });
}

void TovaPolicy::on_inherit(const PackedPage& page) {
  last_[page.meta.id.index()] = inherited_sum(last_, book(), page);
}

}  // namespace memdecay
