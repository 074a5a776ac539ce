// Sessions under a budget: what they hold, what they compute, and that they end the same.
#include <gtest/gtest.h>

#include <algorithm>
#include <string_view>

#include "engine/engine.h"
#include "engine/extend_without_logits.h"
#include "engine/model_file_for_test.h"
#include "kv/take_for_test.h"
#include "model/transformer/key_similarity.h"

namespace memdecay {
namespace {

using Tokens = std::vector<TokenId>;

constexpr int kTurnTokens = 70;

class EngineMemoryTest : public testing::Test {
 protected:
  /// Bytes that `pages` pages of the model take, on top of the tables.
  EngineOptions options_of(const char* policy, int pages, KvForms forms = KvForms::kAuto) const {
    EngineOptions options = file_.options();
    options.policy = policy;
    options.kv_forms = forms;
    options.context_tokens = 4096;
    options.kv_budget_bytes = 64 * 1024 + file_.bytes_of_pages(pages);
    return options;
  }
  ModelFile file_{"llama", RandomModelShape{}};
};

class EveryPolicyTest : public EngineMemoryTest, public testing::WithParamInterface<const char*> {
 protected:
  EngineOptions options(int pages, KvForms forms = KvForms::kAuto) const {
    return options_of(GetParam(), pages, forms);
  }
};

/// Plays turns, each with the whole history in front, and returns the answers.
std::vector<Tokens> play(Engine& engine, Session& session, int turns,
                         std::vector<GenerationResult>* results = nullptr) {
  Tokens history;
  std::vector<Tokens> answers;
  for (int turn = 0; turn < turns; ++turn) {
    const Tokens more = random_prompt(kTurnTokens, static_cast<std::uint32_t>(turn + 1));
    history.insert(history.end(), more.begin(), more.end());
    GenerationRequest request;
    request.session = &session;
    request.prompt = history;
    request.max_new_tokens = 6;
    request.ignore_end = true;
    request.sampling.temperature = 0.0F;
    const GenerationResult result = engine.generate(std::move(request)).value();
    EXPECT_TRUE(result.status.ok()) << result.status.message();
    history.insert(history.end(), result.tokens.begin(), result.tokens.end());
    answers.push_back(result.tokens);
    if (results != nullptr) results->push_back(result);
    expect_sound(engine);
  }
  return answers;
}

/// `rounds` calls of 16 tokens, each with a result of 32 that is kept with it.
PromptLabels tool_rounds(int rounds) {
  PromptLabels labels;
  for (int round = 0; round < rounds; ++round) {
    RegionSpan call;
    call.region = Region::kTool;
    call.tool_round = round;
    call.tool_core = true;
    call.tokens = {48 * round, 48 * round + 16};
    RegionSpan result = call;
    result.tokens = {48 * round + 16, 48 * round + 48};
    result.item = round;
    labels.regions.insert(labels.regions.end(), {call, result});
  }
  const auto tokens = static_cast<std::size_t>(48 * rounds);
  labels.exact.assign(tokens, 0);
  labels.phases.assign(tokens, QueryPhase::kAct);
  return labels;
}

TEST_P(EveryPolicyTest, ToolRoundsOfLongAgoGiveWay) {
  constexpr int kRounds = 80;
  const auto engine = ModelFile::engine(options(40));
  const auto session = engine->open_session().value();
  engine->label(*session, tool_rounds(kRounds));
  const Tokens tokens = random_prompt(48 * kRounds, 5);
  for (std::size_t begin = 0; begin < tokens.size(); begin += 48) {
    const Status status =
        extend_without_logits(*engine, *session, std::span(tokens).subspan(begin, 48));
    ASSERT_TRUE(status.ok()) << "round " << begin / 48 << ": " << status.message();
  }
  EXPECT_GT(session->memory()->evicted_tokens(), 0);
}

TEST_P(EveryPolicyTest, ARoundLongerThanTheBudgetIsReadToItsEnd) {
  const auto engine = ModelFile::engine(options(40));
  const auto session = engine->open_session().value();
  constexpr int kTokens = 3000;
  PromptLabels labels;
  RegionSpan round;
  round.region = Region::kTool;
  round.tool_round = 0;
  round.tool_core = true;
  round.tokens = {0, kTokens};
  labels.regions.push_back(round);
  labels.exact.assign(kTokens, 0);
  labels.phases.assign(kTokens, QueryPhase::kTool);
  engine->label(*session, std::move(labels));
  const Status status = extend_without_logits(*engine, *session, random_prompt(kTokens, 5));
  EXPECT_TRUE(status.ok()) << status.message();
  EXPECT_GT(session->memory()->evicted_tokens(), 0);
}

TEST_P(EveryPolicyTest, ASessionOfAnyLengthLivesWithinItsBudget) {
  const auto engine = ModelFile::engine(options(24));
  const auto session = engine->open_session().value();
  std::vector<GenerationResult> results;
  play(*engine, *session, 20, &results);
  std::int64_t recomputed = 0;
  EXPECT_EQ(session->tokens().size(), 20U * kTurnTokens + 20U * 6U - 1U);
  EXPECT_GT(session->memory()->evicted_tokens(), 0);
  for (std::size_t turn = 1; turn < results.size(); ++turn) {
    // The turn's own tokens, and the last one of the answer before, whose keys nobody needed yet.
    const int again = results[turn].recomputed_tokens;
    EXPECT_EQ(results[turn].computed_tokens, kTurnTokens + 1 + 6 - 1 + again) << turn;
    EXPECT_EQ(results[turn].reused_tokens, static_cast<int>(turn) * (kTurnTokens + 6) - 1 - again)
        << turn;
    recomputed += again;
  }
  EXPECT_EQ(recomputed, session->memory()->recomputed_tokens());
  EXPECT_TRUE(recomputed == 0 || std::string_view(GetParam()) == "recompute");
}

TEST_P(EveryPolicyTest, NothingIsForgottenWhileSomethingCanTakeFewerBits) {
  if (std::string_view(GetParam()) == "recompute") GTEST_SKIP() << "it changes no forms";
  constexpr int kTurns = 8;
  const auto engine = ModelFile::engine(options(30));
  const auto session = engine->open_session().value();
  play(*engine, *session, kTurns);
  // 30 pages of 16 tokens would not hold them all as they were written.
  EXPECT_GT(session->tokens().size(), 30U * 16U);
  EXPECT_EQ(session->memory()->evicted_tokens(), 0);
  const auto& pages = session->memory()->pages();
  const auto is_coarse = [](const auto& page) { return page.format != KvFormat::kF16; };
  EXPECT_TRUE(std::any_of(pages.begin(), pages.end(), is_coarse));
  // A long turn is read in smaller pieces rather than made room for by dropping.
  GenerationRequest request;
  request.session = session.get();
  request.prompt = session->tokens();
  const Tokens more = random_prompt(8 * 16, 77);
  request.prompt.insert(request.prompt.end(), more.begin(), more.end());
  request.max_new_tokens = 2;
  EXPECT_TRUE(engine->generate(std::move(request)).value().status.ok());
  EXPECT_EQ(session->memory()->evicted_tokens(), 0);
}

TEST_P(EveryPolicyTest, ResendingTheHistoryChangesNothing) {
  const EngineOptions budget = options(24);
  const auto engine = ModelFile::engine(budget);
  const auto resent = engine->open_session().value();
  const std::vector<Tokens> expected = play(*engine, *resent, 12);

  const auto other = ModelFile::engine(budget);
  const auto session = other->open_session().value();
  Tokens previous_last;
  for (int turn = 0; turn < 12; ++turn) {
    // The same tokens, appended by hand: nothing is matched.
    Tokens more = previous_last;
    const Tokens user = random_prompt(kTurnTokens, static_cast<std::uint32_t>(turn + 1));
    more.insert(more.end(), user.begin(), user.end());
    Tokens prompt = session->tokens();
    prompt.insert(prompt.end(), more.begin(), more.end());
    GenerationRequest request;
    request.session = session.get();
    request.prompt = prompt;
    request.max_new_tokens = 6;
    request.ignore_end = true;
    request.sampling.temperature = 0.0F;
    const GenerationResult result = other->generate(std::move(request)).value();
    EXPECT_EQ(result.tokens, expected[static_cast<std::size_t>(turn)]) << turn;
    previous_last.assign(1, result.tokens.back());
  }
}

TEST_P(EveryPolicyTest, TheSameSessionTwiceGivesTheSameTokens) {
  const EngineOptions budget = options(20, KvForms::kF16);
  std::vector<Tokens> first;
  for (int run = 0; run < 2; ++run) {
    const auto engine = ModelFile::engine(budget);
    const auto session = engine->open_session().value();
    const auto answers = play(*engine, *session, 10);
    if (run == 0) first = answers;
    EXPECT_EQ(answers, first);
  }
}

TEST_P(EveryPolicyTest, BeforeAnythingIsEvictedTheAnswersAreThoseOfAnUnlimitedSession) {
  const auto tight = ModelFile::engine(options(64, KvForms::kF16));
  const auto free = ModelFile::engine(file_.options());
  const auto tight_session = tight->open_session().value();
  const auto free_session = free->open_session().value();
  EXPECT_EQ(play(*tight, *tight_session, 4), play(*free, *free_session, 4));
  EXPECT_EQ(tight_session->memory()->evicted_tokens(), 0);
  EXPECT_EQ(free_session->memory(), nullptr);
}

TEST_P(EveryPolicyTest, TwoSessionsShareTheBudget) {
  const auto engine = ModelFile::engine(options(40));
  const auto a = engine->open_session().value();
  const auto b = engine->open_session().value();
  play(*engine, *a, 8);
  play(*engine, *b, 8);
  EXPECT_GT(a->memory()->evicted_tokens() + b->memory()->evicted_tokens(), 0);
}

TEST_P(EveryPolicyTest, AForkGoesItsOwnWay) {
  const auto engine = ModelFile::engine(options(40));
  const auto parent = engine->open_session().value();
  play(*engine, *parent, 6);
  const auto fork = engine->fork_session(*parent).value();
  EXPECT_EQ(fork->tokens(), parent->tokens());
  GenerationRequest request;
  request.session = fork.get();
  request.prompt = fork->tokens();
  const Tokens more = random_prompt(300, 99);
  request.prompt.insert(request.prompt.end(), more.begin(), more.end());
  request.max_new_tokens = 4;
  const GenerationResult result = engine->generate(std::move(request)).value();
  EXPECT_TRUE(result.status.ok()) << result.status.message();
  expect_sound(*engine);
}

TEST_P(EveryPolicyTest, AnEditInTheMiddleDropsTheTail) {
  const auto engine = ModelFile::engine(options(24));
  const auto session = engine->open_session().value();
  play(*engine, *session, 10);
  Tokens edited(session->tokens().begin(), session->tokens().begin() + 200);
  edited.push_back((session->tokens()[200] + 1) % 50);
  GenerationRequest request;
  request.session = session.get();
  request.prompt = edited;
  request.max_new_tokens = 2;
  request.ignore_end = true;
  const GenerationResult result = engine->generate(std::move(request)).value();
  ASSERT_TRUE(result.status.ok()) << result.status.message();
  EXPECT_EQ(result.reused_tokens + result.recomputed_tokens, 200);
  EXPECT_EQ(session->tokens().size(), 202U);
  expect_sound(*engine);
}

INSTANTIATE_TEST_SUITE_P(Policies, EveryPolicyTest,
                         testing::Values("memdecay", "memdecay-classic", "window", "sinks", "lru",
                                         "h2o", "tova", "keydiff", "random", "uniform",
                                         "recompute"),
                         [](const auto& instance) {
                           std::string name = instance.param;
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

TEST_P(EveryPolicyTest, PinsAndManySmallMessagesLeaveRoomForMore) {
  EngineOptions tight = options(16, KvForms::kF16);
  tight.protect_prefix = true;
  const auto engine = ModelFile::engine(tight);
  const auto session = engine->open_session().value();
  PromptLabels labels = system_labels(15 * 16);
  RegionSpan span = labels.regions.front();
  while (span.tokens.end < 600) {  // each message has a page of its own
    span.region = span.region == Region::kRecent ? Region::kTool : Region::kRecent;
    span.tokens = {span.tokens.end, span.tokens.end + 3};
    labels.regions.push_back(span);
  }
  labels.exact.assign(600, 0);
  labels.phases.assign(600, QueryPhase::kOther);
  engine->label(*session, std::move(labels));
  const Status status = extend_without_logits(*engine, *session, random_prompt(600, 3));
  EXPECT_TRUE(status.ok()) << status.message();
}

TEST_P(EveryPolicyTest, PinsOfAllSessionsTogetherLeaveHalfOfTheBudget) {
  const auto engine = ModelFile::engine(options(96, KvForms::kF16));
  PromptLabels all_pinned = system_labels(40 * 16);
  all_pinned.regions.front().pinned = true;
  std::vector<std::unique_ptr<Session>> sessions;
  for (std::uint32_t number = 0; number < 4; ++number) {
    // Each could pin 40 pages of 96, so the third would find nothing that may go.
    sessions.push_back(engine->open_session().value());
    Session& session = *sessions.back();
    engine->label(session, all_pinned);
    const Status status = extend_without_logits(*engine, session, random_prompt(800, number));
    ASSERT_TRUE(status.ok()) << "session " << number << ": " << status.message();
  }
  const auto pinned = [](const Session& session) {
    const auto& pages = session.memory()->pages();
    return std::count_if(pages.begin(), pages.end(), [&](const SessionMemory::Page& page) {
      return session.memory()->explain(page).shield == Shield::kPinned;
    });
  };
  for (const auto& session : sessions) {
    EXPECT_LE(pinned(*session), 96 / 2 / 4);
    EXPECT_GE(pinned(*session), 96 / 2 / 4 - 2) << "as many as it may";
  }
  const Status more = extend_without_logits(*engine, *sessions[0], random_prompt(16, 9));
  EXPECT_TRUE(more.ok()) << more.message();
}

TEST_F(EngineMemoryTest, KeydiffDropsWhatLooksMostLikeTheMeanKey) {
  for (const KvForms forms : {KvForms::kF16, KvForms::kInt8}) {
    const auto engine = ModelFile::engine(options_of("keydiff", 400, forms));
    const auto session = engine->open_session().value();
    play(*engine, *session, 16);
    const SessionMemory& memory = *session->memory();
    ASSERT_EQ(memory.evicted_tokens(), 0);
    const PagedKvView view = session->sequence().view(LayerGroupId(0));
    std::vector<KvPageRef> sealed;
    for (std::size_t i = 0; i < view.pages.size(); ++i)
      if (memory.pages()[i].sealed) sealed.push_back(view.pages[i]);
    EXPECT_EQ(memory.held_bytes(), sealed.size() * KeyDirections::page_bytes(*view.layout));
    EXPECT_GE(engine->other_budget_bytes(), memory.held_bytes());
    std::vector<float> similarities(sealed.size());
    key_similarities({view.layout, sealed, 0}, similarities);
    PlanRequest request;
    request.budget_bytes = 0;
    request.may_demote = false;
    const EvictionPlan plan = memory.plan(request);
    ASSERT_GT(plan.actions.size(), 10U);
    float last = 1;
    for (const PlanAction& action : plan.actions) {
      const Position first = memory.page(action.page).first_position;
      const auto at = std::find_if(sealed.begin(), sealed.end(), [&](const KvPageRef& page) {
        return page.first_position == first;
      });
      const float similarity = similarities[static_cast<std::size_t>(at - sealed.begin())];
      EXPECT_LE(similarity, last + (forms == KvForms::kF16 ? 1e-3F : 5e-3F)) << first;
      last = similarity;
    }
  }
}

TEST_F(EngineMemoryTest, RoomForSumsOfKeysIsMadeAfterAllSessionsOfAPassWereObserved) {
  // What the first session's sums need drops pages of the second, whose evidence of the same pass
  // stands beside the pages it had.
  const auto engine = ModelFile::engine(options_of("keydiff", 24, KvForms::kF16));
  SessionOptions other;
  other.policy = "h2o";
  const auto keydiff = engine->open_session().value();
  const auto h2o = engine->open_session(other).value();
  Session* const sessions[] = {keydiff.get(), h2o.get()};
  KvBudget& budget = budget_of(*engine);
  for (std::uint32_t turn = 0; turn < 60; ++turn) {
    // Whatever part of a page is free when a pass has its pages, sometimes it is too little.
    const BudgetReservation part = take_bytes(budget, turn * 997 % 16384);
    const Status status = engine->extend_together(sessions, random_prompt(48, turn), 1 << 30,
                                                  [](std::size_t, int, std::span<const float>) {});
    ASSERT_TRUE(status.ok()) << status.message();
    const Status valid = engine->cache().validate(engine->other_budget_bytes() + part.bytes());
    ASSERT_TRUE(valid.ok()) << valid.message();
  }
  EXPECT_GT(keydiff->memory()->held_bytes(), 0U);
  EXPECT_GT(keydiff->memory()->evicted_tokens(), 0);
  EXPECT_GT(h2o->memory()->evicted_tokens(), 0);
}

TEST_F(EngineMemoryTest, SumsOfKeysAreKeptForThoseWhoReadThem) {
  for (const char* policy : {"memdecay", "h2o", "tova", "window"}) {
    const auto engine = ModelFile::engine(options_of(policy, 40));
    const auto session = engine->open_session().value();
    play(*engine, *session, 4);
    EXPECT_EQ(session->memory()->held_bytes(), 0U) << policy;
  }
}

TEST_P(EveryPolicyTest, EvictionAfterTheFactHappensOnceAndWhenAsked) {
  EngineOptions options = file_.options();
  options.context_tokens = 4096;
  const auto engine = ModelFile::engine(options);
  const std::uint64_t page = PagePool::stride_bytes_for(engine->cache().groups().front().layout);
  SessionOptions own;
  own.policy = GetParam();
  own.kv_forms = KvForms::kF16;
  own.budget_bytes = 14 * page;
  own.evicts_when_asked = true;
  const auto session = engine->open_session(own).value();
  const Tokens tokens = random_prompt(1000, 3);
  ASSERT_TRUE(extend_without_logits(*engine, *session, tokens).ok());
  EXPECT_EQ(session->memory()->evicted_tokens(), 0);
  const std::vector<PositionRun> whole = engine->held_tokens(*session);
  EXPECT_EQ(whole, (std::vector<PositionRun>{{0, 1000}}));
  EXPECT_EQ(engine->shrink(*session, page).code(), StatusCode::kResourceExhausted);
  EXPECT_EQ(engine->held_tokens(*session), whole);
  const std::uint64_t tracked = session->memory()->tracked_bytes();
  const std::uint64_t bytes = tracked * 14 / 32;
  ASSERT_TRUE(engine->shrink(*session, bytes).ok());
  EXPECT_LE(session->memory()->tracked_bytes(), bytes);
  int held = 0;
  for (const PositionRun& run : engine->held_tokens(*session)) held += run.tokens;
  EXPECT_EQ(held + session->memory()->evicted_tokens(), 1000);
  EXPECT_EQ(engine->held_tokens(*session).back().end(), 1000) << "the newest stay";
  ASSERT_TRUE(extend_without_logits(*engine, *session, tokens).ok());
  EXPECT_EQ(session->memory()->evicted_tokens(), 1000 - held) << "and then never again";
}

/// Of the tokens from `start` on, those whose pages are there.
Position held_from(const Session& session, Position start) {
  Position held = 0;
  for (const SessionMemory::Page& page : session.memory()->pages())
    if (page.first_position >= start) held += page.filled;
  return held;
}

TEST_F(EngineMemoryTest, RecomputeBringsBackTheNewestHistoryThatHalfOfTheBudgetHolds) {
  const auto engine = ModelFile::engine(options_of("none", 4000));
  const std::uint64_t page = PagePool::stride_bytes_for(engine->cache().groups().front().layout);
  SessionOptions own;
  own.policy = "recompute";
  own.budget_bytes = 40 * page;
  const auto session = engine->open_session(own).value();
  Tokens history;
  int recomputed = 0, drops = 0, turns_of_recomputing = 0;
  for (std::uint32_t turn = 0; turn < 60; ++turn) {
    const std::int64_t evicted = session->memory()->evicted_tokens();
    const auto size = static_cast<Position>(session->tokens().size());
    const bool complete = held_from(*session, 0) == size;
    const Tokens more = random_prompt(kTurnTokens, turn + 1);
    history.insert(history.end(), more.begin(), more.end());
    const int again = engine->begin_turn(*session, more.size()).value();
    EXPECT_EQ(static_cast<Position>(session->tokens().size()), size);
    const Position start = size - again;
    if (again > 0) {
      ++turns_of_recomputing;
      EXPECT_FALSE(complete);
      EXPECT_EQ(held_from(*session, start), again) << "no gap is left";
      const std::uint64_t bytes = session->memory()->tracked_bytes() + 3 * page;  // the turn's
      EXPECT_LE(bytes, own.budget_bytes / 2 + page);
      EXPECT_GE(bytes + 2 * page, own.budget_bytes / 2) << "and more would not fit";
    }
    recomputed += again;
    ASSERT_TRUE(extend_without_logits(*engine, *session, more).ok());
    EXPECT_EQ(session->tokens(), history);
    EXPECT_LE(session->memory()->tracked_bytes(), own.budget_bytes);
    if (session->memory()->evicted_tokens() > evicted) ++drops;
  }
  EXPECT_EQ(session->memory()->recomputed_tokens(), recomputed);
  EXPECT_GT(drops, 2);
  EXPECT_GE(turns_of_recomputing, drops - 1);
  EXPECT_LT(recomputed, 60 * kTurnTokens * 3 / 2) << "in the order of the tokens that came";
}

TEST_F(EngineMemoryTest, AfterRecomputingTheModelReadsOnlyWhatIsThere) {
  // What was computed again knows nothing of what was dropped: the same logits as a session that
  // never saw more than the sinks and the tail, at their places.
  const auto engine = ModelFile::engine(options_of("none", 4000));
  SessionOptions own;
  own.policy = "recompute";
  own.budget_bytes = file_.bytes_of_pages(80);
  std::vector<std::vector<float>> logits;
  for (const std::uint32_t seed : {1U, 2U}) {  // two middles, one head and one tail
    Tokens tokens = random_prompt(32, 7);
    const Tokens middle = random_prompt(400, 10 + seed), tail = random_prompt(700, 8);
    tokens.insert(tokens.end(), middle.begin(), middle.end());
    tokens.insert(tokens.end(), tail.begin(), tail.end());
    const auto session = engine->open_session(own).value();
    ASSERT_TRUE(extend_without_logits(*engine, *session, tokens).ok());
    ASSERT_GT(session->memory()->evicted_tokens(), 0);
    EXPECT_GT(engine->begin_turn(*session, 1).value(), 300);
    const auto held = engine->held_tokens(*session);
    ASSERT_EQ(held.size(), 2U);
    EXPECT_EQ(held[0], (PositionRun{0, 16}));
    EXPECT_GE(held[1].first, 432);
    const Tokens one = {5};
    ASSERT_TRUE(engine
                    ->extend(*session, one, 0,
                             [&](int, std::span<const float> values) {
                               logits.emplace_back(values.begin(), values.end());
                             })
                    .ok());
  }
  ASSERT_EQ(logits.size(), 2U);
  EXPECT_EQ(logits[0], logits[1]);
}

TEST(EngineMemory, ThePolicyNoneNeverEvictsAndSaysWhenItIsFull) {
  const ModelFile file("llama", RandomModelShape{});
  EngineOptions options = file.options();
  options.policy = "none";
  options.context_tokens = 100'000;
  options.kv_budget_bytes = 512 * 1024;
  const auto engine = ModelFile::engine(options);
  const auto session = engine->open_session().value();
  EXPECT_EQ(session->memory(), nullptr);
  const Status status = extend_without_logits(*engine, *session, random_prompt(60000, 1));
  EXPECT_EQ(status.code(), StatusCode::kResourceExhausted);
}

TEST(EngineMemory, AFixedFormHoldsWithoutABudget) {
  const ModelFile file("llama", RandomModelShape{});
  EngineOptions options = file.options();
  options.kv_forms = KvForms::kInt8;
  const auto engine = ModelFile::engine(options);
  const auto session = engine->open_session().value();
  play(*engine, *session, 5);
  ASSERT_NE(session->memory(), nullptr);
  EXPECT_EQ(session->memory()->evicted_tokens(), 0);
  for (const SessionMemory::Page& page : session->memory()->pages())
    EXPECT_EQ(page.format, page.sealed ? KvFormat::kInt8 : KvFormat::kF16);
}

TEST(EngineMemory, WithoutABudgetOnlyTheOwnFormHasAPool) {
  const ModelFile file("llama", RandomModelShape{});
  EXPECT_TRUE(ModelFile::engine(file.options())->cache().config().forms.empty());
}

TEST(EngineMemory, AFormThatNoPageCanTakeIsRefused) {
  const ModelFile file("llama", RandomModelShape{});
  const auto plain = ModelFile::engine(file.options());
  SessionOptions session;
  session.kv_forms = KvForms::kInt4;
  const auto refused = plain->open_session(session);
  EXPECT_EQ(refused.status().code(), StatusCode::kResourceExhausted);
  EXPECT_NE(refused.status().message().find("int4"), std::string::npos);
  EngineOptions tiny = file.options();
  tiny.kv_forms = KvForms::kInt8;
  tiny.kv_budget_bytes = 64 * 1024;
  EXPECT_EQ(ModelFile::engine(tiny)->open_session().status().code(),
            StatusCode::kResourceExhausted);
}

}  // namespace
}  // namespace memdecay
