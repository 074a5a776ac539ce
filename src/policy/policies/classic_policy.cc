#include "policy/policies/classic_policy.h"

#include <algorithm>
#include <cmath>

#include "core/slot_of.h"
#include "policy/decay_math.h"
#include "policy/page_accesses.h"

namespace memdecay {

ClassicPolicy::ClassicPolicy(const ClassicOptions& options)
    : OrderedPolicy(options.protection, options.ladder, static_cast<int>(kRegionCount)),
      options_(options) {}

double ClassicPolicy::classic_score_of(TrackedPageId page) const {
  const PageMeta& meta = book().meta(page);
  const std::size_t r = region_index(meta.region);
  return classic_score(options_.initial[r], options_.decay[r],
                       static_cast<double>(now().step - meta.born_step), accesses_[page.index()]);
}

double ClassicPolicy::key(TrackedPageId page, Region as) const {
  const std::size_t r = region_index(as);
  return std::log(options_.initial[r]) +
         options_.decay[r] * static_cast<double>(book().meta(page).born_step) +
         std::log1p(access_bonus(accesses_[page.index()]));
}

double ClassicPolicy::offset(int lane) const {
  return options_.decay[static_cast<std::size_t>(lane)] * static_cast<double>(now().step);
}

void ClassicPolicy::on_track(const PageMeta& page, bool is_new) {
  if (is_new) slot_of(accesses_, page.id.index()) = 0;
}

void ClassicPolicy::on_observe(const EvidenceBatch& batch) {
  for_each_access(book(), batch, EvidenceKind::kAttentionMass, [this](TrackedPageId page) {
    ++accesses_[page.index()];
    rekey(page);
  });
}

std::optional<double> ClassicPolicy::gentle_limit(const PlanRequest& request) const {
  return std::log(request.gentle_score_ceiling);
}

std::string ClassicPolicy::describe(TrackedPageId page, double score) const {
  return fmt::format("score {:.4g} (unit {:.4g}) after {} accesses", classic_score_of(page),
                     std::exp(score), accesses_[page.index()]);
}

/// Whoever looked at a part looks at the page.
void ClassicPolicy::on_inherit(const PackedPage& page) {
  std::int64_t& accesses = accesses_[page.meta.id.index()];
  for (const PackedPart& part : page.parts)
    accesses = std::max(accesses, accesses_[part.from.index()]);
}

}  // namespace memdecay
