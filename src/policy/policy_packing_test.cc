// What a packed page inherits: it is worth what its parts were worth, by each policy's own measure.
#include <gtest/gtest.h>

#include "policy/policies/make_policy.h"

namespace memdecay {
namespace {

constexpr std::int32_t kTokens = 10;  // of each part

PageMeta page_meta(int id, Position position, std::int32_t tokens = kTokens) {
  PageMeta meta;
  meta.id = TrackedPageId(id);
  meta.region = Region::kTool;
  meta.tokens = tokens;
  meta.position = position;
  meta.born_step = position;
  meta.bytes = 1000;
  return meta;
}

EvictionPolicyHandle policy_of(std::string_view name, PolicyOptions options = {}) {
  options.memdecay.adaptive.enabled = false;
  options.memdecay.rekey_threshold = 0;
  return make_policy(name, options).value();
}

void observe(EvictionPolicy& policy, EvidenceKind kind, std::vector<PageEvidence> pages,
             QueryPhase phase = QueryPhase::kAct) {
  policy.observe({kind, phase, pages});
}

/// Pages 0 and 1 are packed into page 2.
void pack(EvictionPolicy& policy) {
  const std::vector<TrackedPageId> before = {TrackedPageId(0), TrackedPageId(1)};
  PackedPage page{page_meta(2, 100, 2 * kTokens), {{before[0], kTokens}, {before[1], kTokens}}};
  page.meta.born_step = 105;
  policy.repack(before, std::span(&page, 1));
}

double score(const EvictionPolicy& policy, int id) {
  return policy.explain(TrackedPageId(id)).score;
}

struct Case {
  std::string_view policy;
  EvidenceKind kind;
  double expected;
};

class Inheritance : public testing::TestWithParam<Case> {};

TEST_P(Inheritance, IsWhatThePartsWereWorth) {
  const auto policy = policy_of(GetParam().policy);
  policy->track(page_meta(0, 100));
  policy->track(page_meta(1, 110));
  policy->track(page_meta(3, 200));
  policy->advance({300, 0});
  observe(*policy, GetParam().kind,
          {{TrackedPageId(0), 0.125F}, {TrackedPageId(1), 0.5F}, {TrackedPageId(3), 0.25F}});
  pack(*policy);
  EXPECT_NEAR(score(*policy, 2), GetParam().expected, 1e-12);
  EXPECT_EQ(policy->explain(TrackedPageId(0)).shield, Shield::kUntracked);
  EXPECT_EQ(policy->tracked_bytes(), 2000U);
}

// keydiff's score is minus the similarity: the mean of 0.125 and 0.5; lru's is the step of the use.
INSTANTIATE_TEST_SUITE_P(Policies, Inheritance,
                         testing::Values(Case{"h2o", EvidenceKind::kAttentionMass, 0.625},
                                         Case{"tova", EvidenceKind::kLastQueryMass, 0.625},
                                         Case{"keydiff", EvidenceKind::kKeySimilarity, -0.3125},
                                         Case{"lru", EvidenceKind::kAttentionMass, 300},
                                         Case{"window", EvidenceKind::kAttentionMass, 100}),
                         [](const auto& instance) { return std::string(instance.param.policy); });

// A page that was observed as a whole, with the sum of what its halves got, scores the same.
TEST(MemdecayInheritance, EvidenceOfPartsAddsUp) {
  PolicyOptions options;
  options.memdecay.idle_decay = 0;  // a part may be used where the whole is not
  const auto parts = policy_of("memdecay", options);
  const auto whole = policy_of("memdecay", options);
  for (const auto& policy : {parts.get(), whole.get()}) policy->track(page_meta(3, 300));
  parts->track(page_meta(0, 100));
  parts->track(page_meta(1, 110));
  PageMeta both = page_meta(2, 100, 2 * kTokens);
  both.born_step = 105;
  whole->track(both);
  std::int64_t step = 400;
  for (const float value : {0.01F, 0.04F, 0.02F}) {
    const auto phase = value > 0.03F ? QueryPhase::kTool : QueryPhase::kAct;
    for (const auto& policy : {parts.get(), whole.get()}) policy->advance({step, 0});
    step += 150;
    observe(*parts, EvidenceKind::kDeletionError,
            {{TrackedPageId(0), value}, {TrackedPageId(1), 3 * value}}, phase);
    observe(*whole, EvidenceKind::kDeletionError, {{TrackedPageId(2), 4 * value}}, phase);
  }
  for (const auto& policy : {parts.get(), whole.get()}) policy->advance({step + 500, 0});
  pack(*parts);
  // What the mean page of the batches got differs, and moves page 3 as it moves page 2.
  EXPECT_NEAR(score(*parts, 2) - score(*parts, 3), score(*whole, 2) - score(*whole, 3), 1e-9);
}

TEST(MemdecayInheritance, APackedPageWasUsedWhenAnyOfItsPartsWas) {
  PolicyOptions options;
  options.memdecay.beta = 0;
  options.memdecay.idle_decay = 2;
  options.memdecay.decay = {};
  const auto policy = policy_of("memdecay", options);
  policy->track(page_meta(0, 100));
  policy->track(page_meta(1, 110));
  policy->advance({1000, 0});
  observe(*policy, EvidenceKind::kDeletionError,
          {{TrackedPageId(0), 0.1F}, {TrackedPageId(1), 0.5F}});
  policy->advance({1500, 0});
  const double used = score(*policy, 1);
  pack(*policy);
  EXPECT_NEAR(score(*policy, 2), used, 1e-12);
}

}  // namespace
}  // namespace memdecay
