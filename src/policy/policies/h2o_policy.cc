#include "policy/policies/h2o_policy.h"

#include "core/slot_of.h"
#include "policy/page_accesses.h"

namespace memdecay {

void H2oPolicy::on_track(const PageMeta& page, bool is_new) {
  if (is_new) slot_of(mass_, page.id.index()) = 0;
}

void H2oPolicy::on_observe(const EvidenceBatch& batch) {
  for_each_value(book(), batch, EvidenceKind::kAttentionMass,
                 [this](TrackedPageId page, double value) {
                   mass_[page.index()] += value;
                   rekey(page);
                 });
}

void H2oPolicy::on_inherit(const PackedPage& page) {
  mass_[page.meta.id.index()] = inherited_sum(mass_, book(), page);
}

}  // namespace memdecay
