// UseRecorder: a policy that forgets nothing and writes down when pages were looked at, for
// calibration (decay_calibration.h).
//
// A page is in use at a step in which the assistant writes and the page gets more attention than
// looks_above times what its tokens would get if attention were even. Pages that hold one of the
// first positions are attention's resting place whatever they say: they are left out, as records
// and as part of what is even. One life a page: born when it began, over when it was last in use.
// Threads: one owner. Cost: O(pages) a step.
#pragma once

#include <cstdint>
#include <vector>

#include "eval/calibration/use_record.h"
#include "policy/eviction_policy.h"

namespace memdecay {

class UseRecorder final : public EvictionPolicy {
 public:
  explicit UseRecorder(double looks_above) : looks_above_(looks_above) {}

  std::string_view name() const override { return "use-recorder"; }
  EvictionPolicyHandle clone() const override { return std::make_unique<UseRecorder>(*this); }
  bool wants(EvidenceKind kind) const override { return kind == EvidenceKind::kAttentionMass; }
  void track(const PageMeta& page) override;
  void observe(const EvidenceBatch& batch) override;
  void advance(const PolicyTime& now) override { step_ = now.step; }
  EvictionPlan plan(const PlanRequest& /*request*/) const override { return {}; }
  void release(TrackedPageId page) override { lives_[page.index()].tracked = false; }
  /// REQUIRES: never called, since its sessions do not pack pages.
  void repack(std::span<const TrackedPageId> before, std::span<const PackedPage> after) override;
  void cap_pins(std::uint64_t /*bytes*/) override {}
  Explanation explain(TrackedPageId page) const override;
  std::uint64_t tracked_bytes() const override { return 0; }
  std::uint64_t update_steps() const override { return 0; }

  /// The lives of all pages that are there, at the end of a run.
  std::vector<UseRecord> records() const;

 private:
  struct Life {
    PageMeta meta;
    bool tracked = false;
    std::int64_t last_use = 0;
  };
  bool counts(TrackedPageId page) const;

  double looks_above_;
  std::int64_t step_ = 0;
  std::vector<Life> lives_;  // by page
};

}  // namespace memdecay
