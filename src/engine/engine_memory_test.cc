// Sessions under a budget: what they hold, what they compute, and that they end the same.
#include <gtest/gtest.h>

#include <algorithm>
#include <string_view>

#include "engine/engine.h"
#include "engine/model_file_for_test.h"

namespace memdecay {
namespace {

using Tokens = std::vector<TokenId>;

constexpr int kTurnTokens = 70;

/// A user turn of random tokens, then `answer` of the model's own.
struct Turn {
  Tokens tokens;
  GenerationResult result;
};

class EngineMemoryTest : public testing::TestWithParam<const char*> {
 protected:
  /// Bytes that `pages` pages of the model take, on top of the tables.
  EngineOptions options(int pages, KvForms forms = KvForms::kAuto) const {
    EngineOptions options = file_.options();
    options.policy = GetParam();
    options.kv_forms = forms;
    options.context_tokens = 4096;
    const auto probe = ModelFile::engine(file_.options());
    options.kv_budget_bytes =
        64 * 1024 + static_cast<std::uint64_t>(pages) *
                        PagePool::stride_bytes_for(probe->cache().groups().front().layout);
    return options;
  }
  ModelFile file_{"llama", RandomModelShape{}};
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
    EXPECT_TRUE(engine.cache().validate(engine.other_budget_bytes()).ok())
        << engine.cache().validate(engine.other_budget_bytes()).message();
    EXPECT_LE(engine.cache().budget().peak_bytes(), engine.cache().budget().limit_bytes());
  }
  return answers;
}

TEST_P(EngineMemoryTest, ASessionOfAnyLengthLivesWithinItsBudget) {
  const auto engine = ModelFile::engine(options(24));
  const auto session = engine->open_session().value();
  std::vector<GenerationResult> results;
  play(*engine, *session, 20, &results);
  EXPECT_EQ(session->tokens().size(), 20U * kTurnTokens + 20U * 6U - 1U);
  EXPECT_GT(session->memory()->evicted_tokens(), 0);
  for (std::size_t turn = 1; turn < results.size(); ++turn) {
    // The turn's own tokens, and the last one of the answer before, whose keys nobody needed yet.
    EXPECT_EQ(results[turn].computed_tokens, kTurnTokens + 1 + 6 - 1) << turn;
    EXPECT_EQ(results[turn].reused_tokens, static_cast<int>(turn) * (kTurnTokens + 6) - 1) << turn;
  }
}

TEST_P(EngineMemoryTest, NothingIsForgottenWhileSomethingCanTakeFewerBits) {
  if (std::string_view(GetParam()) == "recompute") GTEST_SKIP() << "it changes no forms";
  constexpr int kTurns = 8;
  const auto engine = ModelFile::engine(options(28));
  const auto session = engine->open_session().value();
  play(*engine, *session, kTurns);
  // 28 pages of 16 tokens would not hold them all as they were written.
  EXPECT_GT(session->tokens().size(), 28U * 16U);
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

TEST_P(EngineMemoryTest, ResendingTheHistoryChangesNothing) {
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

TEST_P(EngineMemoryTest, TheSameSessionTwiceGivesTheSameTokens) {
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

TEST_P(EngineMemoryTest, BeforeAnythingIsEvictedTheAnswersAreThoseOfAnUnlimitedSession) {
  const auto tight = ModelFile::engine(options(64, KvForms::kF16));
  const auto free = ModelFile::engine(file_.options());
  const auto tight_session = tight->open_session().value();
  const auto free_session = free->open_session().value();
  EXPECT_EQ(play(*tight, *tight_session, 4), play(*free, *free_session, 4));
  EXPECT_EQ(tight_session->memory()->evicted_tokens(), 0);
  EXPECT_EQ(free_session->memory(), nullptr);
}

TEST_P(EngineMemoryTest, TwoSessionsShareTheBudget) {
  const auto engine = ModelFile::engine(options(40));
  const auto a = engine->open_session().value();
  const auto b = engine->open_session().value();
  play(*engine, *a, 8);
  play(*engine, *b, 8);
  EXPECT_GT(a->memory()->evicted_tokens() + b->memory()->evicted_tokens(), 0);
}

TEST_P(EngineMemoryTest, AForkGoesItsOwnWay) {
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
  EXPECT_TRUE(engine->cache().validate(engine->other_budget_bytes()).ok())
      << engine->cache().validate(engine->other_budget_bytes()).message();
}

TEST_P(EngineMemoryTest, AnEditInTheMiddleDropsTheTail) {
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
  EXPECT_EQ(result.reused_tokens, 200);
  EXPECT_EQ(session->tokens().size(), 202U);
  EXPECT_TRUE(engine->cache().validate(engine->other_budget_bytes()).ok());
}

INSTANTIATE_TEST_SUITE_P(Policies, EngineMemoryTest,
                         testing::Values("memdecay", "memdecay-classic", "window", "sinks", "lru",
                                         "h2o", "tova", "keydiff", "random", "uniform",
                                         "recompute"),
                         [](const auto& instance) {
                           std::string name = instance.param;
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

TEST(EngineMemory, ThePolicyNoneNeverEvictsAndSaysWhenItIsFull) {
  const ModelFile file("llama", RandomModelShape{});
  EngineOptions options = file.options();
  options.policy = "none";
  options.context_tokens = 100'000;
  options.kv_budget_bytes = 512 * 1024;
  const auto engine = ModelFile::engine(options);
  const auto session = engine->open_session().value();
  EXPECT_EQ(session->memory(), nullptr);
  const Status status = engine->extend(*session, random_prompt(60000, 1), 1 << 30,
                                       [](int, std::span<const float>) {});
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
