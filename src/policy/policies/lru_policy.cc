#include "policy/policies/lru_policy.h"

#include "core/slot_of.h"
#include "policy/page_accesses.h"

namespace memdecay {

void LruPolicy::on_track(const PageMeta& page, bool is_new) {
  if (is_new) slot_of(used_step_, page.id.index()) = page.born_step;
}

void LruPolicy::on_observe(const EvidenceBatch& batch) {
  for_each_access(book(), batch, EvidenceKind::kAttentionMass, [this](TrackedPageId page) {
    used_step_[page.index()] = now().step;
    rekey(page);
  });
}

void LruPolicy::on_inherit(const PackedPage& page) {
  std::int64_t& used = used_step_[page.meta.id.index()];
  for (const PackedPart& part : page.parts) used = std::max(used, used_step_[part.from.index()]);
}

}  // namespace memdecay
