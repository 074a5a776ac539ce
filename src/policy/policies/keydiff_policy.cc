#include "policy/policies/keydiff_policy.h"

#include "core/slot_of.h"
#include "policy/page_accesses.h"

namespace memdecay {

void KeydiffPolicy::on_track(const PageMeta& page, bool is_new) {
  if (is_new) slot_of(similarity_, page.id.index()) = -1;
}

void KeydiffPolicy::on_observe(const EvidenceBatch& batch) {
  for_each_value(book(), batch, EvidenceKind::kKeySimilarity,
                 [this](TrackedPageId page, double value) {
                   similarity_[page.index()] = value;
                   rekey(page);
                 });
}

void KeydiffPolicy::on_inherit(const PackedPage& page) {
  double& similarity = similarity_[page.meta.id.index()];
  similarity = 0;
  for (const PackedPart& part : page.parts)
    similarity += similarity_[part.from.index()] * share_in(page, part);
}

}  // namespace memdecay
