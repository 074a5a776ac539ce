#include "eval/metrics/future_errors.h"

#include <algorithm>
#include <cmath>
#include <memory>

#include "policy/policies/ordered_policy.h"
#include "policy/policies/protected_prefix.h"

namespace memdecay {
namespace {

bool is_assistants(QueryPhase phase) {
  return phase == QueryPhase::kThink || phase == QueryPhase::kAct;
}

class RecorderPolicy final : public OrderedPolicy {
 public:
  RecorderPolicy(const ProtectionOptions& protection, FutureErrors& errors)
      : OrderedPolicy(protection, {}, 1), errors_(errors) {}
  std::string_view name() const override { return "recorder"; }
  EvictionPolicyHandle clone() const override { return std::make_unique<RecorderPolicy>(*this); }
  bool wants(EvidenceKind kind) const override { return kind == EvidenceKind::kDeletionError; }

 private:
  double key(TrackedPageId page, Region /*as*/) const override {
    return book().meta(page).position;
  }
  void on_observe(const EvidenceBatch& batch) override {
    if (batch.kind != EvidenceKind::kDeletionError || !is_assistants(batch.phase)) return;
    for (const PageEvidence& evidence : batch.pages) {
      if (!book().tracked(evidence.page)) continue;
      errors_.record(book().meta(evidence.page).position, now().step,
                     static_cast<double>(evidence.value));
    }
  }

  FutureErrors& errors_;
};

class OraclePolicy final : public OrderedPolicy {
 public:
  OraclePolicy(const ProtectionOptions& protection, const LadderOptions& ladder,
               const FutureErrors& errors)
      : OrderedPolicy(protection, ladder, 1), errors_(errors) {}
  std::string_view name() const override { return "oracle"; }
  EvictionPolicyHandle clone() const override { return std::make_unique<OraclePolicy>(*this); }
  /// It reads none, but what is behind a page shrinks with every step: a cheap kind, for its pace.
  bool wants(EvidenceKind kind) const override { return kind == EvidenceKind::kLastQueryMass; }

 private:
  double key(TrackedPageId page, Region /*as*/) const override {
    constexpr double kSmallest = 1e-9;
    return std::log(errors_.behind(book().meta(page).position, now().step) + kSmallest);
  }
  void on_observe(const EvidenceBatch& batch) override {
    for (const PageEvidence& evidence : batch.pages)
      if (book().tracked(evidence.page)) rekey(evidence.page);
  }

  const FutureErrors& errors_;
};

/// As make_policy.h has it for baselines: no lag, no floors.
ProtectionOptions plain_protection(const PolicyOptions& options) {
  ProtectionOptions protection = options.memdecay.protection;
  protection.lag_rounds = 0;
  protection.floor_share = 0;
  return protection;
}

EvictionPolicyHandle protect(EvictionPolicyHandle policy, const PolicyOptions& options) {
  if (!options.protect_prefix) return policy;
  return std::make_unique<ProtectedPrefix>(std::move(policy), options.prefix_tokens);
}

}  // namespace

EvictionPolicyHandle FutureErrors::recorder(const PolicyOptions& options) {
  return protect(std::make_unique<RecorderPolicy>(plain_protection(options), *this), options);
}

EvictionPolicyHandle FutureErrors::oracle(const PolicyOptions& options) const {
  return protect(
      std::make_unique<OraclePolicy>(plain_protection(options), options.memdecay.ladder, *this),
      options);
}

void FutureErrors::record(Position first_position, std::int64_t step, double error) {
  auto& sums = sums_[first_position];
  const double before = sums.empty() ? 0.0 : sums.back().second;
  sums.emplace_back(step, before + error);
}

double FutureErrors::behind(Position first_position, std::int64_t step) const {
  const auto found = sums_.find(first_position);
  if (found == sums_.end()) return 0;
  const auto& sums = found->second;
  const auto after =
      std::upper_bound(sums.begin(), sums.end(), step,
                       [](std::int64_t at, const auto& record) { return at < record.first; });
  const double passed = after == sums.begin() ? 0.0 : std::prev(after)->second;
  return sums.back().second - passed;
}

}  // namespace memdecay
