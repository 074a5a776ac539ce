// MemdecayPolicy: the default. Regions decay, evidence counts by who asked, exact values stay.
//
//   score = region_weight * ln S0[r] + beta * (level(page) - level(all)) + exact_bonus *
//   exact_share
//           - (tau_r(now) - tau_r(born)) - idle_decay * (now - used) / 1000,
//   tau_r = integral of decay_r over steps; used: the step of the last access, or when it was born
//
// level is PhaseEvidence's mix of two clocks over the deletion error (or the attention mass, where
// that is all there is); level(all) follows the mean page of every batch, so a page that matters as
// much as the mean scores its region's classic score, and one without evidence yet counts as mean.
// An access is more evidence than the page's even share of its batch. Dialogue and ordinary text
// that keep being accessed count as tool text, until that ends: attention promotes them. Everything
// that moves a whole region is in the offset: time, and adaptive decay, reorder nothing. The decay
// of recent dialogue follows the token rate (adaptive_decay.h). Pins hold up to the cap, above it a
// pinned page has its region's score and explain() says that the pin was refused.
#pragma once

#include <array>
#include <vector>

#include "policy/adaptive_decay.h"
#include "policy/phase_evidence.h"
#include "policy/policies/ordered_policy.h"

namespace memdecay {

/// Decay per step that lets the initial scores survive (never, 200k, 100k, 50k, 15k) steps: on
/// recorded agent runs what is old is asked for nearly as often (docs/decisions/0311).
std::array<double, kRegionCount> default_region_decay();

struct MemdecayOptions {
  ProtectionOptions protection = {.lag_rounds = 4, .lag_bonus = 0.0, .floor_share = 0.0};
  LadderOptions ladder = {};
  std::array<double, kRegionCount> initial = kInitialScores;
  std::array<double, kRegionCount> decay = default_region_decay();
  double region_weight = 0.25;  ///< of ln S0: evidence says more than the region does
  double beta = 2.0;
  double exact_bonus = 2.0;  ///< of a page all of whose tokens are exact values (0258)
  double idle_decay = 2;     ///< nats per 1,000 steps without an access (0259)
  /// Text is promoted where at least this share of its latest batches (a moving average over about
  /// promote_batches) were accesses, until it is less than half of that; above 1: never (0271).
  double promote_rate = 0.5;
  double promote_batches = 128;
  EvidenceKind evidence_kind = EvidenceKind::kDeletionError;
  EvidenceOptions evidence = {};
  AdaptiveDecayOptions adaptive = {};
  double rekey_threshold = 0.02;  ///< nats
};

class MemdecayPolicy final : public OrderedPolicy {
 public:
  explicit MemdecayPolicy(const MemdecayOptions& options = {});
  std::string_view name() const override { return "memdecay"; }
  EvictionPolicyHandle clone() const override { return std::make_unique<MemdecayPolicy>(*this); }
  bool wants(EvidenceKind kind) const override { return kind == options_.evidence_kind; }

 private:
  struct PageRecord {
    PhaseEvidence evidence;
    std::int64_t observed_step = 0;
    std::int64_t used_step = 0;
    double unseen_level = 0;  // the mean level when it was tracked
    double access_rate = 0;   // share of accesses among its batches, a moving average
    bool accessed = false;    // in the batch at hand
    bool promoted = false;
    std::array<double, kRegionCount> born_tau = {};
  };

  double key(TrackedPageId page, Region as) const override;
  Region region_of(const PageMeta& page) const override;
  double offset(int lane) const override;
  void on_track(const PageMeta& page, bool is_new) override;
  void on_observe(const EvidenceBatch& batch) override;
  void on_inherit(const PackedPage& page) override;
  void on_advance(const PolicyTime& now) override;
  std::optional<double> gentle_limit(const PlanRequest& request) const override;
  std::string describe(TrackedPageId page, double score) const override;
  void count_batch(PageRecord& record) const;
  void promote(PageRecord& record) const;
  double level(const PageRecord& record) const;
  double mean_level() const;
  double kept_since(std::int64_t step) const;
  double idle_nats(std::int64_t steps) const;

  MemdecayOptions options_;
  AdaptiveDecay adaptive_;
  std::array<double, kRegionCount> tau_ = {};
  PhaseEvidence mean_page_;
  std::int64_t mean_step_ = 0;
  std::vector<PageRecord> records_;  // by page
};

}  // namespace memdecay
