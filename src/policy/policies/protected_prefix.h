// ProtectedPrefix: any policy, with the system text pinned. The `protect prefix` option of each.
//
// A page of region kSystem, or that begins below prefix_tokens, is tracked as pinned; all else goes
// through. The pin cap of the policy inside holds as for any pin.
#pragma once

#include <utility>

#include "policy/eviction_policy.h"

namespace memdecay {

class ProtectedPrefix final : public EvictionPolicy {
 public:
  ProtectedPrefix(EvictionPolicyHandle inner, Position prefix_tokens)
      : inner_(std::move(inner)), prefix_tokens_(prefix_tokens) {}

  std::string_view name() const override { return inner_->name(); }
  EvictionPolicyHandle clone() const override {
    return std::make_unique<ProtectedPrefix>(inner_->clone(), prefix_tokens_);
  }
  void track(const PageMeta& page) override;
  bool wants(EvidenceKind kind) const override { return inner_->wants(kind); }
  void observe(const EvidenceBatch& batch) override { inner_->observe(batch); }
  void advance(const PolicyTime& now) override { inner_->advance(now); }
  EvictionPlan plan(const PlanRequest& request) const override { return inner_->plan(request); }
  bool recomputes() const override { return inner_->recomputes(); }
  void release(TrackedPageId page) override { inner_->release(page); }
  void repack(std::span<const TrackedPageId> before, std::span<const PackedPage> after) override;
  void cap_pins(std::uint64_t bytes) override { inner_->cap_pins(bytes); }
  Explanation explain(TrackedPageId page) const override { return inner_->explain(page); }
  std::uint64_t tracked_bytes() const override { return inner_->tracked_bytes(); }
  std::uint64_t update_steps() const override { return inner_->update_steps(); }

 private:
  bool protects(const PageMeta& page) const {
    return page.region == Region::kSystem || page.position < prefix_tokens_;
  }
  EvictionPolicyHandle inner_;
  Position prefix_tokens_;
};

}  // namespace memdecay
