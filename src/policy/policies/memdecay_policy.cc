#include "policy/policies/memdecay_policy.h"

#include <cmath>
#include <utility>

#include "core/check.h"
#include "core/slot_of.h"
#include "policy/decay_math.h"
#include "policy/page_accesses.h"

namespace memdecay {

std::array<double, kRegionCount> default_region_decay() {
  constexpr std::array<double, kRegionCount> kSurvivalSteps = {0, 200e3, 100e3, 50e3, 15e3};
  std::array<double, kRegionCount> decay = {};  // system text does not decay
  for (std::size_t r = 1; r < kRegionCount; ++r) {
    decay[r] = decay_for_survival(kInitialScores[r], kSurvivalSteps[r]);
  }
  return decay;
}

MemdecayPolicy::MemdecayPolicy(const MemdecayOptions& options)
    : OrderedPolicy(options.protection, options.ladder, static_cast<int>(kRegionCount)),
      options_(options),
      adaptive_(options.adaptive) {
  set_rekey_threshold(options.rekey_threshold);
}

double MemdecayPolicy::mean_level() const {
  return mean_page_.seen() ? mean_page_.log_level(options_.evidence) : 0.0;
}

double MemdecayPolicy::level(const PageRecord& record) const {
  return record.evidence.seen() ? record.evidence.log_level(options_.evidence)
                                : record.unseen_level;
}

double MemdecayPolicy::kept_since(std::int64_t step) const {
  return std::exp2(-static_cast<double>(now().step - step) / options_.evidence.half_life_tokens);
}

double MemdecayPolicy::idle_nats(std::int64_t steps) const {
  return options_.idle_decay * static_cast<double>(steps) / 1000;
}

double MemdecayPolicy::key(TrackedPageId page, Region as) const {
  const PageRecord& record = records_[page.index()];
  const std::size_t r = region_index(as);
  return options_.region_weight * std::log(options_.initial[r]) + options_.beta * level(record) +
         options_.exact_bonus * static_cast<double>(book().meta(page).exact_share) +
         idle_nats(record.used_step) + record.born_tau[r];
}

Region MemdecayPolicy::region_of(const PageMeta& page) const {
  return records_[page.id.index()].promoted ? stronger(page.region, Region::kTool) : page.region;
}

void MemdecayPolicy::count_batch(PageRecord& record) const {
  const double seen = std::exchange(record.accessed, false) ? 1.0 : 0.0;
  record.access_rate += (seen - record.access_rate) / options_.promote_batches;
  promote(record);
}

void MemdecayPolicy::promote(PageRecord& record) const {
  const double wanted = options_.promote_rate * (record.promoted ? 0.5 : 1.0);
  record.promoted = record.access_rate >= wanted;
}

double MemdecayPolicy::offset(int lane) const {
  return tau_[static_cast<std::size_t>(lane)] + options_.beta * mean_level() +
         idle_nats(now().step);
}

void MemdecayPolicy::on_track(const PageMeta& page, bool is_new) {
  if (!is_new) return;
  PageRecord& record = slot_of(records_, page.id.index());
  record = {};
  record.unseen_level = mean_level();
  record.observed_step = now().step;
  record.used_step = page.born_step;
  const auto age = static_cast<double>(now().step - page.born_step);
  for (std::size_t r = 0; r < kRegionCount; ++r) {
    record.born_tau[r] = tau_[r] - options_.decay[r] * age;
  }
}

void MemdecayPolicy::on_advance(const PolicyTime& time) {
  const auto steps = time.step - now().step;
  adaptive_.observe(steps, time.seconds - now().seconds);
  for (const Region region : kRegions) {
    const std::size_t r = region_index(region);
    const double factor = region == Region::kRecent ? adaptive_.factor() : 1.0;
    tau_[r] += options_.decay[r] * factor * static_cast<double>(steps);
  }
}

void MemdecayPolicy::on_observe(const EvidenceBatch& batch) {
  double sum = 0;
  std::int64_t known = 0;
  std::int64_t last_step = now().step;
  double kept = 1;
  for_each_access(book(), batch, options_.evidence_kind, [&](TrackedPageId page) {
    records_[page.index()].used_step = now().step;
    records_[page.index()].accessed = true;
  });
  for_each_value(book(), batch, options_.evidence_kind, [&](TrackedPageId page, double given) {
    MEMDECAY_CHECK(std::isfinite(given));
    const double value = std::max(0.0, given);
    PageRecord& record = records_[page.index()];
    if (record.observed_step != last_step) {  // pages are mostly observed together
      last_step = record.observed_step;
      kept = kept_since(last_step);
    }
    record.evidence.observe(batch.phase, value, kept);
    count_batch(record);
    record.observed_step = now().step;
    sum += value;
    ++known;
    rekey(page);
  });
  if (known == 0) return;
  mean_page_.observe(batch.phase, sum / static_cast<double>(known), kept_since(mean_step_));
  mean_step_ = now().step;
}

std::optional<double> MemdecayPolicy::gentle_limit(const PlanRequest& request) const {
  return std::log(request.gentle_score_ceiling);
}

std::string MemdecayPolicy::describe(TrackedPageId page, double score) const {
  const PageRecord& record = records_[page.index()];
  const PageMeta& meta = book().meta(page);
  const std::size_t r = region_index(region_of(meta));
  return fmt::format(
      "log score {:.4g} (region {:+.3g}, evidence {:+.3g}{}, exact values {:+.3g}, decay {:+.3g}, "
      "idle {:+.3g})",
      score, options_.region_weight * std::log(options_.initial[r]),
      options_.beta * (level(record) - mean_level()), record.evidence.seen() ? "" : " assumed",
      options_.exact_bonus * static_cast<double>(meta.exact_share), record.born_tau[r] - tau_[r],
      -idle_nats(now().step - record.used_step));
}

void MemdecayPolicy::on_inherit(const PackedPage& page) {
  PageRecord& record = records_[page.meta.id.index()];
  record.unseen_level = 0;
  record.access_rate = 0;
  record.born_tau = {};
  for (const PackedPart& part : page.parts) {
    const PageRecord& from = records_[part.from.index()];
    record.evidence.add(from.evidence, share_of(book(), part), kept_since(from.observed_step));
    const double weight = share_in(page, part);
    record.used_step = std::max(record.used_step, from.used_step);
    record.unseen_level += weight * from.unseen_level;
    record.access_rate += weight * from.access_rate;
    record.promoted = record.promoted || from.promoted;
    for (std::size_t r = 0; r < kRegionCount; ++r) record.born_tau[r] += weight * from.born_tau[r];
  }
  promote(record);
}

}  // namespace memdecay
