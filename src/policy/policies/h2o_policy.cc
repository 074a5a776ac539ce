#include "policy/policies/h2o_policy.h"

#include "policy/page_accesses.h"

namespace memdecay {

void H2oPolicy::on_track(const PageMeta& page, bool is_new) {
  if (is_new) page_slot(mass_, page.id) = 0;
}

void H2oPolicy::on_observe(const EvidenceBatch& batch) {
  if (batch.kind != EvidenceKind::kAttentionMass) return;
  for (const PageEvidence& evidence : batch.pages) {
    if (!book().tracked(evidence.page)) continue;
    mass_[evidence.page.index()] += static_cast<double>(evidence.value);
    rekey(evidence.page);
  }
}

void H2oPolicy::on_inherit(const PackedPage& page) {
  double& mass = mass_[page.meta.id.index()];
  for (const PackedPart& part : page.parts)
    mass += mass_[part.from.index()] * share_of(book(), part);
}

}  // namespace memdecay
