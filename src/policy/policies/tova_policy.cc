#include "policy/policies/tova_policy.h"

#include "policy/page_accesses.h"

namespace memdecay {

void TovaPolicy::on_track(const PageMeta& page, bool is_new) {
  if (is_new) page_slot(last_, page.id) = 1;
}

void TovaPolicy::on_observe(const EvidenceBatch& batch) {
  if (batch.kind != EvidenceKind::kLastQueryMass) return;
  for (const PageEvidence& evidence : batch.pages) {
    if (!book().tracked(evidence.page)) continue;
    last_[evidence.page.index()] = static_cast<double>(evidence.value);
    rekey(evidence.page);
  }
}

void TovaPolicy::on_inherit(const PackedPage& page) {
  double& last = last_[page.meta.id.index()];
  last = 0;
  for (const PackedPart& part : page.parts)
    last += last_[part.from.index()] * share_of(book(), part);
}

}  // namespace memdecay
