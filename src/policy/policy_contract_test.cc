// What every policy promises (eviction_policy.h), held under random operations against naive
// oracles.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <map>
#include <set>
#include <string>

#include "policy/random_session_for_test.h"

namespace memdecay {
namespace {

void expect_same(const EvictionPlan& a, const EvictionPlan& b) {
  EXPECT_EQ(a.actions, b.actions);
  EXPECT_EQ(a.freed_bytes, b.freed_bytes);
  EXPECT_EQ(a.missing_bytes, b.missing_bytes);
}

/// Exact values give up int8 keys only after every other page that may is as coarse as it gets.
void check_exact_values_give_last(RandomSession& session, const EvictionPlan& plan) {
  std::map<std::int32_t, const PlanAction*> actions;
  bool exact_gave = false;
  for (const PlanAction& action : plan.actions) {
    actions[action.page.value()] = &action;
    const PageMeta& meta = session.oracle().pages().at(action.page.value());
    exact_gave |= !action.drop && meta.exact_share >= 0.1F && action.form > PageForm::kK8V4;
  }
  if (!exact_gave) return;
  for (const auto& [id, meta] : session.oracle().pages()) {
    const Shield shield = session.policy().explain(TrackedPageId(id)).shield;
    const bool free = shield == Shield::kNone || shield == Shield::kRoundMate;
    if (!free || meta.pinned || meta.exact_share >= 0.1F) continue;
    const auto action = actions.find(id);
    if (action != actions.end() && action->second->drop) continue;
    const PageForm form = action == actions.end() ? meta.form : action->second->form;
    const std::uint64_t bytes = form == meta.form ? meta.bytes : meta.forms[form_index(form)].bytes;
    for (std::size_t coarser = form_index(form) + 1; coarser < kPageFormCount; ++coarser) {
      const std::uint64_t offered = meta.forms[coarser].bytes;
      EXPECT_TRUE(offered == 0 || offered >= bytes)
          << session.policy().explain(TrackedPageId(id)).sentence << "; planned "
          << page_form_name(form) << ", offered " << page_form_name(static_cast<PageForm>(coarser));
    }
  }
}

/// Everything a plan must leave, whatever its order.
void check_invariants(RandomSession& session, const EvictionPlan& plan, std::uint64_t budget) {
  PolicyOracle& oracle = session.oracle();
  std::set<std::int32_t> touched;
  std::set<std::int32_t> gone;
  std::uint64_t freed = 0;
  for (const PlanAction& action : plan.actions) {
    ASSERT_TRUE(touched.insert(action.page.value()).second) << "a page has one action";
    const PageMeta& meta = oracle.pages().at(action.page.value());
    freed += action.freed_bytes;
    ASSERT_TRUE(meta.sealed);
    if (!action.drop) {
      if (oracle.newest(meta)) {
        ASSERT_LE(action.form, LadderOptions().lowest_newest);
      }
      ASSERT_EQ(action.freed_bytes, meta.bytes - meta.forms[form_index(action.form)].bytes);
      ASSERT_GT(action.form, meta.form);
      if (meta.pinned) {
        ASSERT_LE(action.form, PageForm::kInt8);
      }
      continue;
    }
    ASSERT_FALSE(oracle.newest(meta));
    ASSERT_EQ(action.freed_bytes, meta.bytes);
    ASSERT_FALSE(oracle.shielded(meta)) << session.policy().explain(action.page).sentence;
    gone.insert(action.page.value());
  }
  check_exact_values_give_last(session, plan);
  ASSERT_EQ(plan.freed_bytes, freed);
  ASSERT_EQ(session.policy().tracked_bytes(), oracle.bytes());
  const std::uint64_t left = oracle.bytes() - freed;
  ASSERT_EQ(plan.missing_bytes, left > budget ? left - budget : 0);
  const auto first_to_go = [&](const auto& entry) {
    return !gone.contains(entry.first) && oracle.goes_before_live_floors(entry.second);
  };
  const bool others_left = std::any_of(oracle.pages().begin(), oracle.pages().end(), first_to_go);
  for (const std::int32_t id : gone) {
    const PageMeta& meta = oracle.pages().at(id);
    const bool instruction = meta.tool_round == kNoToolRound;
    if (meta.item != kNoItem &&
        (instruction || (oracle.is_young(meta.tool_round) && others_left))) {
      ASSERT_GE(oracle.kept(meta.item, gone), oracle.floor_of(meta.item));
    }
    if (!PolicyOracle::core(meta)) continue;
    for (const PageMeta& mate : oracle.round(meta.tool_round)) {
      if (gone.contains(mate.id.value())) continue;
      ASSERT_TRUE(oracle.is_held(meta.tool_round)) << "a round dies whole";
      ASSERT_FALSE(others_left) << "a round breaks when nothing else is left";
    }
  }
}

std::set<std::int32_t> dropped(const EvictionPlan& plan) {
  std::set<std::int32_t> pages;
  for (const PlanAction& action : plan.actions) {
    if (action.drop) pages.insert(action.page.value());
  }
  return pages;
}

void carry_out_drops(RandomSession& session, const EvictionPlan& plan) {
  for (const std::int32_t id : dropped(plan)) session.release(TrackedPageId(id));
}

PolicyOptions test_options() {
  PolicyOptions options;
  options.memdecay.protection.newest_pages = 3;
  options.memdecay.rekey_threshold = 0;
  options.memdecay.adaptive.enabled = false;
  options.memdecay.promote_batches = 3;  // sessions here are short
  return options;
}

class PolicyContract : public testing::TestWithParam<std::string_view> {};

TEST_P(PolicyContract, PlansAreThoseOfTheNaiveOracle) {
  for (unsigned seed = 0; seed < 12; ++seed) {
    PolicyOptions options = test_options();
    options.baseline_lag = options.baseline_floors = seed % 2 == 0;
    options.protect_prefix = seed % 3 == 0;
    RandomSession session(GetParam(), options, seed);
    for (int i = 0; i < 120; ++i) {
      session.step();
      const std::uint64_t bytes = session.oracle().bytes();
      const std::uint64_t budget = session.random()() % (bytes + 1);
      const EvictionPlan plan = session.policy().plan({budget, Urgency::kPressed, 0});
      check_invariants(session, plan, budget);
      if (HasFatalFailure()) return;
      expect_same(plan, session.policy().plan({budget, Urgency::kPressed, 0}));
      if (GetParam() == "random" || GetParam() == "memdecay") continue;
      const auto naive = session.oracle().drops(
          budget, GetParam() == "recompute",
          [&](const PageMeta& meta, Region as) { return session.score(meta, as); });
      const auto explained = [&] {
        std::string text = fmt::format("seed {} step {}", seed, i);
        for (const auto& pages : {dropped(plan), naive})
          for (const std::int32_t id : pages)
            text += "\n" + session.policy().explain(TrackedPageId(id)).sentence;
        return text;
      };
      ASSERT_EQ(dropped(plan), naive) << explained();
      if (i % 30 == 29) {
        for (const std::int32_t id : naive) session.release(TrackedPageId(id));
      }
    }
  }
}

TEST_P(PolicyContract, InvariantsHoldWithTheLadderAndInGentlePlans) {
  for (unsigned seed = 100; seed < 108; ++seed) {
    PolicyOptions options = test_options();
    options.memdecay.ladder.enabled = true;
    options.memdecay.rekey_threshold = 0.02;
    RandomSession session(GetParam(), options, seed);
    for (int i = 0; i < 150; ++i) {
      session.step();
      const std::uint64_t budget = session.random()() % (session.oracle().bytes() + 1);
      const Urgency urgency = i % 2 == 0 ? Urgency::kPressed : Urgency::kGentle;
      const EvictionPlan plan = session.policy().plan({budget, urgency, 0.5});
      check_invariants(session, plan, budget);
      if (HasFatalFailure()) return;
      if (i % 25 == 24) carry_out_drops(session, plan);
    }
  }
}

TEST_P(PolicyContract, InvariantsHoldWherePagesArePacked) {
  for (unsigned seed = 200; seed < 208; ++seed) {
    PolicyOptions options = test_options();
    options.memdecay.ladder.enabled = seed % 2 == 0;
    options.protect_prefix = seed % 3 == 0;
    RandomSession session(GetParam(), options, seed);
    for (int i = 0; i < 150; ++i) {
      session.step();
      if (i % 3 == 2) session.pack();
      const std::uint64_t budget = session.random()() % (session.oracle().bytes() + 1);
      const EvictionPlan plan = session.policy().plan({budget, Urgency::kPressed, 0});
      check_invariants(session, plan, budget);
      if (HasFatalFailure()) return;
      if (i % 25 == 24) carry_out_drops(session, plan);
    }
  }
}

TEST_P(PolicyContract, APlanThatMayNotDropOnlyChangesForms) {
  for (unsigned seed = 200; seed < 204; ++seed) {
    PolicyOptions options = test_options();
    options.memdecay.ladder.enabled = true;
    RandomSession session(GetParam(), options, seed);
    for (int i = 0; i < 100; ++i) {
      session.step();
      PlanRequest request{session.random()() % (session.oracle().bytes() + 1)};
      request.urgency = i % 2 == 0 ? Urgency::kPressed : Urgency::kGentle;
      request.gentle_score_ceiling = 1e9;
      const std::size_t drops_alone = dropped(session.policy().plan(request)).size();
      request.may_drop = false;
      const EvictionPlan plan = session.policy().plan(request);
      EXPECT_TRUE(dropped(plan).empty()) << "seed " << seed << " step " << i;
      if (request.urgency == Urgency::kPressed && drops_alone > 0) {
        EXPECT_GT(plan.missing_bytes, 0U) << "seed " << seed << " step " << i;
      }
    }
  }
}

TEST_P(PolicyContract, EqualCallsGiveEqualPlans) {
  RandomSession a(GetParam(), test_options(), 9);
  RandomSession b(GetParam(), test_options(), 9);
  for (int i = 0; i < 200; ++i) {
    a.step();
    b.step();
    const std::uint64_t budget = a.oracle().bytes() / 2;
    expect_same(a.policy().plan({budget, Urgency::kPressed, 0}),
                b.policy().plan({budget, Urgency::kPressed, 0}));
  }
}

TEST_P(PolicyContract, ACloneGoesOnAsIfItHadSeenItAll) {
  RandomSession session(GetParam(), test_options(), 11);
  for (int i = 0; i < 300; ++i) session.step();
  const EvictionPolicyHandle clone = session.policy().clone();
  EXPECT_EQ(clone->name(), session.policy().name());
  const std::uint64_t all = session.oracle().bytes();
  for (int part = 0; part < 8; ++part) {
    const PlanRequest request{all * static_cast<std::uint64_t>(part) / 8, Urgency::kPressed, 0.01};
    expect_same(clone->plan(request), session.policy().plan(request));
  }
  for (const auto& [id, meta] : session.oracle().pages()) {
    EXPECT_EQ(clone->explain(TrackedPageId(id)).sentence,
              session.policy().explain(TrackedPageId(id)).sentence);
  }
  // From here on each goes its own way.
  const EvictionPlan before = session.policy().plan({all / 2, Urgency::kPressed, 0.01});
  for (const auto& [id, meta] : session.oracle().pages()) clone->release(TrackedPageId(id));
  EXPECT_EQ(clone->tracked_bytes(), 0U);
  expect_same(session.policy().plan({all / 2, Urgency::kPressed, 0.01}), before);
}

TEST_P(PolicyContract, EveryPageIsExplained) {
  RandomSession session(GetParam(), test_options(), 3);
  for (int i = 0; i < 100; ++i) session.step();
  for (const auto& [id, meta] : session.oracle().pages()) {
    const Explanation why = session.policy().explain(TrackedPageId(id));
    EXPECT_EQ(why.region, session.region_of(meta));
    EXPECT_TRUE(std::isfinite(why.score));
    EXPECT_FALSE(why.sentence.empty());
    EXPECT_EQ(why.shield == Shield::kNewest, session.oracle().newest(meta) && meta.sealed &&
                                                 meta.position >= session.protection().sink_tokens);
  }
  EXPECT_EQ(session.policy().explain(TrackedPageId(99999)).shield, Shield::kUntracked);
}

TEST_P(PolicyContract, WantsTheEvidenceThatItReadsAndNoOther) {
  for (std::size_t number = 0; number < kEvidenceKindCount; ++number) {
    const auto kind = static_cast<EvidenceKind>(number);
    PolicyOptions options = test_options();
    options.protect_prefix = number % 2 == 0;
    const auto policy = make_policy(GetParam(), options).value();
    PageMeta meta;
    for (int page = 0; page < 20; ++page) {
      meta.id = TrackedPageId(page);
      meta.tokens = 32;
      meta.position = 32 * page;
      meta.born_step = meta.position;
      meta.bytes = 3200;
      policy->track(meta);
    }
    policy->advance({640, 1.0});
    const auto scores = [&] {
      std::vector<double> all;
      for (int page = 0; page < 20; ++page)
        all.push_back(policy->explain(TrackedPageId(page)).score);
      return all;
    };
    const std::vector<double> before = scores();
    std::vector<PageEvidence> pages;
    for (int page = 0; page < 20; ++page)
      pages.push_back({TrackedPageId(page), 0.01F * static_cast<float>(page)});
    policy->observe({kind, QueryPhase::kAct, pages});
    EXPECT_EQ(scores() != before, policy->wants(kind)) << "kind " << number;
  }
}

std::string test_name(const testing::TestParamInfo<std::string_view>& info) {
  std::string name(info.param);
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
}

INSTANTIATE_TEST_SUITE_P(Policies, PolicyContract,
                         testing::ValuesIn(policy_names().begin(), policy_names().end()),
                         test_name);

// All pages observed before any plan: a page without evidence counts as the mean of its time, which
// the naive score leaves out.
TEST(MemdecayPolicy, PlansAreThoseOfScoresRecomputedFromAllHistory) {
  int plans = 0, promoted = 0;
  for (unsigned seed = 0; seed < 40; ++seed) {
    RandomSession session("memdecay", test_options(), seed);
    for (int i = 0; i < 150; ++i) {
      session.step();
      if (i % 5 != 0) continue;
      session.observe_all();
      ++plans;
      for (const auto& [id, meta] : session.oracle().pages())
        promoted += session.region_of(meta) != meta.region ? 1 : 0;
      const std::uint64_t budget = session.random()() % (session.oracle().bytes() + 1);
      const EvictionPlan plan = session.policy().plan({budget, Urgency::kPressed, 0});
      const auto naive = session.oracle().drops(
          budget, false, [&](const PageMeta& meta, Region as) { return session.score(meta, as); });
      ASSERT_EQ(dropped(plan), naive) << "seed " << seed << " step " << i;
    }
  }
  EXPECT_EQ(plans, 40 * 30);
  EXPECT_GT(promoted, 100);
}

TEST(MakePolicy, UnknownNamesAreAnsweredWithTheKnown) {
  const auto result = make_policy("lfu");
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.status().code(), StatusCode::kNotFound);
  EXPECT_NE(result.status().message().find("memdecay-classic"), std::string::npos);
  EXPECT_EQ(policy_names().size(), 11U);
}

}  // namespace
}  // namespace memdecay
