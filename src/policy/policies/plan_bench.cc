// What the policy memdecay costs against the number of pages: a plan, evidence, and one eviction as
// an engine has it, a plan and the news that its pages are gone and new ones there.
//
// Rows are named by pages; times are of one call: a plan of 64 drops, evidence for 64 pages, an
// eviction of one page.
#include <benchmark/benchmark.h>

#include <random>
#include <vector>

#include "policy/policies/memdecay_policy.h"
#include "policy/policy_for_test.h"

namespace memdecay {
namespace {

constexpr std::uint64_t kPageBytes = 1000;

PageMeta page(std::int64_t id) {
  PageMeta meta =
      page_for_test(static_cast<int>(id), kRegions[1 + static_cast<std::size_t>(id % 4)], 32 * id,
                    32, kPageBytes);
  meta.sealed = true;
  return meta;
}

/// A session of so many pages, each with some evidence.
class FullSession {
 public:
  explicit FullSession(std::int64_t pages) : pages_(pages) {
    std::vector<PageEvidence> seen;
    for (std::int64_t id = 0; id < pages; ++id) {
      policy_.track(page(id));
      seen.push_back({TrackedPageId(static_cast<int>(id)), value()});
    }
    policy_.advance({32 * pages, 0});
    policy_.observe({EvidenceKind::kDeletionError, QueryPhase::kAct, seen});
  }

  MemdecayPolicy& policy() { return policy_; }
  PlanRequest drop(std::int64_t pages) const {
    return {policy_.tracked_bytes() - static_cast<std::uint64_t>(pages) * kPageBytes,
            Urgency::kPressed, 0.01};
  }
  std::vector<PageEvidence> some_evidence() {
    std::vector<PageEvidence> seen;
    for (int i = 0; i < 64; ++i) {
      const auto id = static_cast<int>(random_() % static_cast<std::uint32_t>(pages_));
      seen.push_back({TrackedPageId(id), value()});
    }
    return seen;
  }

 private:
  float value() { return static_cast<float>(random_() % 1000) / 1000.0F; }

  MemdecayPolicy policy_;
  std::int64_t pages_;
  std::mt19937 random_{7};
};

void BM_plan_64_drops(benchmark::State& state) {
  FullSession session(state.range(0));
  const PlanRequest request = session.drop(64);
  for (auto _ : state) benchmark::DoNotOptimize(session.policy().plan(request));
}

void BM_observe_64_pages(benchmark::State& state) {
  FullSession session(state.range(0));
  const std::vector<PageEvidence> seen = session.some_evidence();
  for (auto _ : state)
    session.policy().observe({EvidenceKind::kDeletionError, QueryPhase::kAct, seen});
}

void BM_evict_one_page(benchmark::State& state) {
  FullSession session(state.range(0));
  MemdecayPolicy& policy = session.policy();
  std::int64_t next = state.range(0);
  for (auto _ : state) {
    const EvictionPlan plan = policy.plan(session.drop(1));
    for (const PlanAction& action : plan.actions) {
      if (action.drop) policy.release(action.page);
    }
    policy.track(page(next++));
  }
}

BENCHMARK(BM_plan_64_drops)->RangeMultiplier(10)->Range(1000, 1000000);
BENCHMARK(BM_observe_64_pages)->RangeMultiplier(10)->Range(1000, 1000000);
BENCHMARK(BM_evict_one_page)->RangeMultiplier(10)->Range(1000, 1000000);

}  // namespace
}  // namespace memdecay
