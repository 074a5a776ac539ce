// Sessions that share exact prefixes: what is found, that a hit has the bits of a miss, and who
// gives way when room is short. engine_prefixes_walk_test.cc does it at random.
#include <gtest/gtest.h>

#include <functional>

#include "engine/engine.h"
#include "engine/extend_without_logits.h"
#include "engine/model_file_for_test.h"

namespace memdecay {
namespace {

using Tokens = std::vector<TokenId>;
using Logits = std::vector<std::vector<float>>;
using Cause = PrefixDifference::Cause;

constexpr int kPageTokens = 16;

Tokens joined(Tokens first, const Tokens& second) {
  first.insert(first.end(), second.begin(), second.end());
  return first;
}

Tokens head(const Tokens& tokens, int count) {
  return {tokens.begin(), tokens.begin() + count};
}

GenerationRequest request_for(Session& session, Tokens prompt, int new_tokens = 6) {
  GenerationRequest request;
  request.session = &session;
  request.prompt = std::move(prompt);
  request.max_new_tokens = new_tokens;
  request.ignore_end = true;
  request.sampling.temperature = 0.0F;
  return request;
}

PromptLabels labels_with_borders(const std::vector<Position>& ends) {
  PromptLabels labels;
  Position at = 0;
  for (const Position end : ends) {
    RegionSpan span;
    span.tokens = {at, end};
    span.region = labels.regions.size() % 2 == 0 ? Region::kSystem : Region::kOrdinary;
    labels.regions.push_back(span);
    at = end;
  }
  return labels;
}

/// Matches the prompt, computes the rest, and returns the logits after each computed token.
Logits complete(Engine& engine, Session& session, const Tokens& prompt,
                Engine::PrefixMatch* found = nullptr) {
  const Engine::PrefixMatch match = engine.match_prefix(session, prompt);
  if (found != nullptr) *found = match;
  Logits logits;
  const auto rest = std::span(prompt).subspan(static_cast<std::size_t>(match.tokens));
  const Status status = engine.extend(session, rest, 0, [&](int, std::span<const float> values) {
    logits.emplace_back(values.begin(), values.end());
  });
  EXPECT_TRUE(status.ok()) << status.message();
  return logits;
}

std::unique_ptr<Session> open_with_salt(Engine& engine, const char* salt) {
  SessionOptions options;
  options.cache_salt = salt;
  return engine.open_session(options).value();
}

class EnginePrefixesTest : public testing::TestWithParam<const char*> {
 protected:
  static RandomModelShape shape() {
    RandomModelShape shape;
    if (slides()) shape.layers = 7;  // five slide, one sees all, one slides
    return shape;
  }
  static bool slides() { return std::string_view(GetParam()) == "gemma3"; }
  EngineOptions options(bool share) const {
    EngineOptions options = file_.options();
    options.share_prefixes = share;
    return options;
  }
  /// With room for so many pages of each layer group.
  EngineOptions budgeted(int pages, const char* policy, bool share = true) const {
    EngineOptions options = this->options(share);
    options.policy = policy;
    options.kv_budget_bytes = 96 * 1024 + file_.bytes_of_pages(pages);
    return options;
  }
  ModelFile file_{GetParam(), shape()};
};

TEST_P(EnginePrefixesTest, AHitHasTheBitsOfAMissAtEveryLength) {
  const auto sharing = ModelFile::engine(options(true));
  const auto alone = ModelFile::engine(options(false));
  const Tokens text = random_prompt(150, 1);
  const int sealed = 150 / kPageTokens * kPageTokens;
  {
    const auto first = sharing->open_session().value();
    complete(*sharing, *first, text);
  }
  for (int length = 1; length < 150; ++length) {
    // The text goes on in another way, by more than a page.
    const Tokens prompt = joined(head(text, length), random_prompt(20, 100));
    const auto session = sharing->open_session().value();
    Engine::PrefixMatch match;
    const Logits hit = complete(*sharing, *session, prompt, &match);
    const auto fresh = alone->open_session().value();
    const Logits miss = complete(*alone, *fresh, prompt);
    ASSERT_EQ(match.cached_tokens, match.tokens);
    ASSERT_GE(match.tokens, std::min(length, sealed)) << length;
    ASSERT_LT(match.tokens, length + 20);
    ASSERT_EQ(hit.size(), prompt.size() - static_cast<std::size_t>(match.tokens));
    ASSERT_EQ(miss.size(), prompt.size());
    for (std::size_t i = 0; i < hit.size(); ++i)
      ASSERT_EQ(hit[hit.size() - 1 - i], miss[miss.size() - 1 - i]) << length << " " << i;
    if (length % 10 == 0) expect_sound(*sharing);
  }
}

TEST_P(EnginePrefixesTest, OneTokenIsLeftToCompute) {
  const auto engine = ModelFile::engine(options(true));
  const Tokens text = random_prompt(64, 1);
  const auto first = engine->open_session().value();
  const GenerationResult miss = engine->generate(request_for(*first, text)).value();
  EXPECT_EQ(miss.cached_tokens, 0);
  EXPECT_EQ(miss.miss.cause, Cause::kNoEntry);
  const auto second = engine->open_session().value();
  const GenerationResult hit = engine->generate(request_for(*second, text)).value();
  EXPECT_EQ(hit.cached_tokens, 63);
  EXPECT_EQ(hit.reused_tokens, 63);
  EXPECT_EQ(hit.computed_tokens, 1 + 6 - 1);
  EXPECT_EQ(hit.tokens, miss.tokens);
  EXPECT_EQ(hit.miss.cause, Cause::kNone);
}

TEST_P(EnginePrefixesTest, GeneratedTokensAreLeftForOthersToo) {
  const auto engine = ModelFile::engine(options(true));
  const auto alone = ModelFile::engine(options(false));
  const auto first = engine->open_session().value();
  const GenerationResult answer =
      engine->generate(request_for(*first, random_prompt(20, 1), 40)).value();
  const Tokens history = joined(joined(random_prompt(20, 1), answer.tokens), random_prompt(10, 2));
  const auto second = engine->open_session().value();
  const GenerationResult hit = engine->generate(request_for(*second, history)).value();
  EXPECT_EQ(hit.cached_tokens, 48);  // of 59 that were computed
  const auto fresh = alone->open_session().value();
  EXPECT_EQ(hit.tokens, alone->generate(request_for(*fresh, history)).value().tokens);
}

TEST_P(EnginePrefixesTest, InABatchAHitIsAHit) {
  const auto engine = ModelFile::engine(options(true));
  const auto alone = ModelFile::engine(options(false));
  const Tokens text = random_prompt(100, 1);
  std::vector<std::unique_ptr<Session>> sessions;
  std::vector<GenerationResult> results(6);
  for (int round = 0; round < 2; ++round) {  // the second round finds what the first left
    sessions.clear();
    for (int i = 0; i < 6; ++i) {
      sessions.push_back(engine->open_session().value());
      const Tokens prompt =
          joined(head(text, 28 + 3 * i), random_prompt(30, static_cast<std::uint32_t>(i)));
      GenerationRequest request = request_for(*sessions.back(), prompt, 10);
      request.on_done = [&results, i](const GenerationResult& result) {
        results[static_cast<std::size_t>(i)] = result;
      };
      ASSERT_TRUE(engine->submit(std::move(request)).ok());
    }
    while (engine->step()) expect_sound(*engine);
    for (int i = 0; i < 6; ++i) {
      const Tokens prompt =
          joined(head(text, 28 + 3 * i), random_prompt(30, static_cast<std::uint32_t>(i)));
      const auto fresh = alone->open_session().value();
      const GenerationResult& result = results[static_cast<std::size_t>(i)];
      EXPECT_EQ(result.tokens, alone->generate(request_for(*fresh, prompt, 10)).value().tokens);
      EXPECT_EQ(result.cached_tokens > 0, round == 1) << i;
    }
  }
}

TEST_P(EnginePrefixesTest, TwoSaltsNeverShare) {
  const auto engine = ModelFile::engine(options(true));
  const Tokens text = random_prompt(80, 1);
  const auto a = open_with_salt(*engine, "a");
  const GenerationResult first = engine->generate(request_for(*a, text)).value();
  for (const char* salt : {"b", ""}) {
    const auto other = open_with_salt(*engine, salt);
    const GenerationResult miss = engine->generate(request_for(*other, text)).value();
    EXPECT_EQ(miss.cached_tokens, 0) << salt;
    EXPECT_EQ(miss.miss.cause, Cause::kNoEntry) << salt;
    EXPECT_EQ(miss.tokens, first.tokens);
  }
  const auto same = open_with_salt(*engine, "a");
  EXPECT_EQ(engine->generate(request_for(*same, text)).value().cached_tokens, 79);
  EXPECT_EQ(engine->prefixes()->counters().tenants, 3);
  const auto fork = engine->fork_session(*same).value();
  engine->forget_prefixes();
  engine->generate(request_for(*fork, joined(fork->tokens(), random_prompt(40, 2)))).value();
  EXPECT_EQ(engine->prefixes()->counters().tenants, 1);  // the fork's: its parent's salt
}

TEST_P(EnginePrefixesTest, OnlyTheOperatorHearsOfOtherSalts) {
  EngineOptions options = this->options(true);
  options.miss_audience = PrefixDifference::Audience::kOperator;
  const auto engine = ModelFile::engine(options);
  const Tokens text = random_prompt(80, 1);
  const auto a = open_with_salt(*engine, "a");
  complete(*engine, *a, text);
  const auto b = open_with_salt(*engine, "b");
  EXPECT_EQ(engine->match_prefix(*b, text).miss.cause, Cause::kOtherSalt);
}

TEST_P(EnginePrefixesTest, ItsOwnHistoryComesFirstAndATreeThatKnowsMoreGoesOn) {
  const auto engine = ModelFile::engine(options(true));
  const auto alone = ModelFile::engine(options(false));
  const Tokens text = random_prompt(120, 1);
  const auto other = engine->open_session().value();
  complete(*engine, *other, text);
  const auto session = engine->open_session().value();
  complete(*engine, *session, joined(head(text, 37), random_prompt(20, 2)));
  Engine::PrefixMatch match;
  const Logits hit = complete(*engine, *session, text, &match);
  EXPECT_EQ(match.tokens, 112);
  EXPECT_EQ(match.cached_tokens, 112 - 37);
  const auto fresh = alone->open_session().value();
  EXPECT_EQ(hit.back(), complete(*alone, *fresh, text).back());
  // And where the tree knows no more, the session keeps what it has.
  EXPECT_EQ(engine->match_prefix(*session, text).cached_tokens, 0);
  expect_sound(*engine);
}

TEST_P(EnginePrefixesTest, EveryMissSaysWhy) {
  const auto engine = ModelFile::engine(budgeted(40, "none"));
  const Tokens text = random_prompt(64, 1);
  const auto first = engine->open_session().value();
  complete(*engine, *first, text);
  Tokens edited = text;
  edited[40] = (edited[40] + 1) % 50;
  const auto second = engine->open_session().value();
  const PrefixDifference differs = engine->match_prefix(*second, edited).miss;
  EXPECT_EQ(differs.cause, Cause::kDiffers);
  EXPECT_EQ(differs.equal_tokens, 40);
  EXPECT_EQ(differs.planned.front(), edited[40]);
  EXPECT_EQ(differs.remembered.front(), text[40]);
  // A session's own history says it too.
  const PrefixDifference own = engine->match_prefix(*first, edited).miss;
  EXPECT_EQ(own.cause, Cause::kDiffers);
  EXPECT_EQ(own.equal_tokens, 40);
  EXPECT_EQ(own.remembered.front(), text[40]);
  EXPECT_EQ(own.before.back(), text[39]);
  engine->forget_prefixes();
  const auto third = engine->open_session().value();
  EXPECT_EQ(engine->match_prefix(*third, text).miss.cause, Cause::kEvicted);
}

TEST_P(EnginePrefixesTest, ASessionThatGoesOnMissesNothing) {
  const auto engine = ModelFile::engine(options(true));
  const auto session = engine->open_session().value();
  Tokens history = random_prompt(40, 1);
  for (int turn = 0; turn < 4; ++turn) {
    const GenerationResult result = engine->generate(request_for(*session, history)).value();
    EXPECT_EQ(result.cached_tokens, 0);
    if (turn > 0) {
      EXPECT_EQ(result.miss.cause, Cause::kNone);
    }
    history = joined(joined(history, result.tokens), random_prompt(30, 7));
  }
}

TEST_P(EnginePrefixesTest, OtherCutsHaveTheBitsOfAMissToo) {
  const auto sharing = ModelFile::engine(budgeted(100, "lru"));
  const auto alone = ModelFile::engine(budgeted(100, "lru", false));
  const Tokens text = random_prompt(90, 1);
  SessionOptions unpacked;  // pages laid together are read in other tiles
  unpacked.packs_pages = false;
  const auto first = sharing->open_session(unpacked).value();
  sharing->label(*first, labels_with_borders({20, 37, 90}));
  complete(*sharing, *first, text);
  struct Case {
    std::vector<Position> borders;
    int found;          // without windows
    int found_windows;  // full pages only, and the first slots of the next
    Cause cause;        // without windows
  };
  // The first session's pages end at 16, 20, 36, 37, 53, 69, 85; later ones find the earlier too.
  const std::vector<Case> cases = {
      {{20, 37, 90}, 85, 16, Cause::kNewText},      {{20, 45, 90}, 37, 16, Cause::kOtherBorders},
      {{20, 30, 90}, 30, 16, Cause::kOtherBorders}, {{20, 90}, 45, 16, Cause::kOtherBorders},
      {{90}, 20, 16, Cause::kOtherBorders},         {{8, 90}, 8, 8, Cause::kOtherBorders},
  };
  for (const Case& one : cases) {
    const auto session = sharing->open_session(unpacked).value();
    sharing->label(*session, labels_with_borders(one.borders));
    Engine::PrefixMatch match;
    const Logits hit = complete(*sharing, *session, text, &match);
    const auto fresh = alone->open_session(unpacked).value();
    alone->label(*fresh, labels_with_borders(one.borders));
    const Logits miss = complete(*alone, *fresh, text);
    EXPECT_EQ(match.tokens, slides() ? one.found_windows : one.found) << one.borders[0];
    EXPECT_TRUE(slides() || match.miss.cause == one.cause) << one.borders[0];
    ASSERT_FALSE(hit.empty());
    for (std::size_t i = 0; i < hit.size(); ++i)
      ASSERT_EQ(hit[hit.size() - 1 - i], miss[miss.size() - 1 - i]) << one.borders[0] << " " << i;
    expect_sound(*sharing);
  }
}

TEST_P(EnginePrefixesTest, PrefixesOfClosedSessionsGoBeforeASessionLosesAnything) {
  const auto engine = ModelFile::engine(budgeted(30, "lru"));
  {
    const auto closed = engine->open_session().value();
    complete(*engine, *closed, random_prompt(18 * kPageTokens, 1));
  }
  EXPECT_GE(engine->prefixes()->memory().cached_only_pages, 17);
  const auto session = engine->open_session().value();
  complete(*engine, *session, random_prompt(16 * kPageTokens, 2));  // half of the budget
  EXPECT_EQ(session->memory()->evicted_tokens(), 0);
  EXPECT_EQ(session->sequence().exact_tokens(), 16 * kPageTokens);
  EXPECT_GT(engine->prefixes()->counters().evicted_pages, 0U);
  expect_sound(*engine);
}

TEST_P(EnginePrefixesTest, WhatASessionDemotesOrDropsStaysItsOwnAffair) {
  const auto engine = ModelFile::engine(budgeted(24, "memdecay"));
  const auto alone = ModelFile::engine(options(false));
  const Tokens text = random_prompt(70, 1);
  const auto session = engine->open_session().value();
  Tokens history = text;
  for (std::uint32_t turn = 0; turn < 12; ++turn) {
    const GenerationResult result = engine->generate(request_for(*session, history)).value();
    ASSERT_TRUE(result.status.ok()) << result.status.message();
    expect_sound(*engine);
    history = joined(joined(history, result.tokens), random_prompt(60, 10 + turn));
  }
  if (!slides()) {
    EXPECT_LT(session->sequence().exact_tokens(), session->sequence().size());
  }
  // Whatever is still found of it has the bits of a miss.
  const Tokens prompt = joined(head(history, 60), random_prompt(5, 99));
  SessionOptions exact;  // in a full budget its own pages would take fewer bits
  exact.kv_forms = KvForms::kF16;
  exact.packs_pages = false;
  const auto other = engine->open_session(exact).value();
  const auto fresh = alone->open_session().value();
  EXPECT_EQ(complete(*engine, *other, prompt).back(), complete(*alone, *fresh, prompt).back());
}

TEST_P(EnginePrefixesTest, WithoutABudgetIdlePrefixesHaveALimit) {
  EngineOptions options = this->options(true);
  options.unbudgeted_prefix_bytes = file_.bytes_of_pages(5);
  const auto engine = ModelFile::engine(options);
  for (std::uint32_t seed = 0; seed < 8; ++seed) {
    const auto session = engine->open_session().value();
    complete(*engine, *session, random_prompt(50, seed));
    EXPECT_LE(engine->prefixes()->memory().cached_only_bytes, options.unbudgeted_prefix_bytes);
  }
  EXPECT_GT(engine->prefixes()->counters().evicted_pages, 0U);
  {
    const auto session = engine->open_session().value();
    complete(*engine, *session, random_prompt(8 * kPageTokens, 9));
  }
  EXPECT_LE(engine->prefixes()->memory().cached_only_bytes, options.unbudgeted_prefix_bytes)
      << "after a close";
  const auto session = engine->open_session().value();
  complete(*engine, *session, random_prompt(8 * kPageTokens, 10));
  ASSERT_TRUE(engine->truncate(*session, 0).ok());
  const auto other = engine->open_session().value();
  complete(*engine, *other, random_prompt(1, 11));  // seals nothing
  EXPECT_LE(engine->prefixes()->memory().cached_only_bytes, options.unbudgeted_prefix_bytes)
      << "after a step";
}

TEST_P(EnginePrefixesTest, ASessionTakesNoMoreThanItsOwnBudgetHolds) {
  const auto engine = ModelFile::engine(options(true));
  const Tokens text = random_prompt(160, 1);
  const auto other = engine->open_session().value();
  complete(*engine, *other, text);
  SessionOptions small;
  small.policy = "lru";
  small.kv_forms = KvForms::kF16;
  for (const KvLayerGroup& group : engine->cache().groups())
    if (group.window == 0) small.budget_bytes = 6 * PagePool::stride_bytes_for(group.layout);
  const auto session = engine->open_session(small).value();
  const Engine::PrefixMatch match = engine->match_prefix(*session, text);
  EXPECT_EQ(match.cached_tokens, 6 * kPageTokens);
  EXPECT_EQ(match.miss.cause, Cause::kBudget);
  EXPECT_LE(session->memory()->tracked_bytes(), small.budget_bytes);
  expect_sound(*engine);
}

TEST_P(EnginePrefixesTest, APageThatWasCutBackAndSealedHasOnePlaceInTheTree) {
  const auto engine = ModelFile::engine(budgeted(100, "lru"));
  const auto session = engine->open_session().value();
  const Tokens text = random_prompt(64, 1);
  engine->label(*session, labels_with_borders({64}));
  complete(*engine, *session, text);
  ASSERT_TRUE(engine->truncate(*session, 10).ok());
  engine->label(*session, labels_with_borders({10, 30}));
  ASSERT_TRUE(extend_without_logits(*engine, *session, random_prompt(20, 2)).ok());
  expect_sound(*engine);
  if (slides()) return;  // full pages only
  // Both are found, each with its own borders.
  for (const std::vector<Position>& borders : {std::vector<Position>{10, 31}, {65}}) {
    const auto other = engine->open_session().value();
    engine->label(*other, labels_with_borders(borders));
    Tokens prompt = borders.size() == 2 ? session->tokens() : text;
    prompt.push_back(3);
    EXPECT_EQ(engine->match_prefix(*other, prompt).cached_tokens, borders.size() == 2 ? 26 : 64);
    expect_sound(*engine);
  }
}

TEST_P(EnginePrefixesTest, WhatIsTakenInPlaceOfOwnPagesHasNoneOfTheirEvidence) {
  const auto engine = ModelFile::engine(budgeted(100, "h2o"));
  const Tokens x = random_prompt(80, 1);
  const Tokens y = joined(head(x, 20), random_prompt(60, 2));
  const auto other = engine->open_session().value();
  complete(*engine, *other, y);
  const auto session = engine->open_session().value();
  complete(*engine, *session, x);
  const auto page_two = [&] { return session->memory()->pages()[2]; };
  const std::int64_t born = session->memory()->meta(page_two()).born_step;
  EXPECT_GT(session->memory()->explain(page_two()).score, 0);
  Tokens longer = y;
  longer.push_back(3);
  const Engine::PrefixMatch match = engine->match_prefix(*session, longer);
  ASSERT_GE(match.tokens, 64);
  ASSERT_EQ(page_two().first_position, 32);
  EXPECT_EQ(session->memory()->explain(page_two()).score, 0) << "nobody has looked at it";
  EXPECT_GT(session->memory()->meta(page_two()).born_step, born);
}

TEST_P(EnginePrefixesTest, NothingIsSharedWhereItIsSwitchedOff) {
  const auto engine = ModelFile::engine(options(false));
  EXPECT_EQ(engine->prefixes(), nullptr);
  const Tokens text = random_prompt(60, 1);
  for (int i = 0; i < 2; ++i) {
    const auto session = engine->open_session().value();
    const GenerationResult result = engine->generate(request_for(*session, text)).value();
    EXPECT_EQ(result.cached_tokens, 0);
    EXPECT_EQ(result.miss.cause, Cause::kNone);
  }
  EXPECT_EQ(engine->cache().budget().current_bytes(), engine->cache().overhead_bytes());
}

TEST_P(EnginePrefixesTest, AFixedFormSharesNothing) {
  EngineOptions options = this->options(true);
  options.kv_forms = KvForms::kInt8;
  const auto engine = ModelFile::engine(options);
  const Tokens text = random_prompt(60, 1);
  for (int i = 0; i < 2; ++i) {
    const auto session = engine->open_session().value();
    EXPECT_EQ(engine->generate(request_for(*session, text)).value().cached_tokens, 0);
  }
  EXPECT_EQ(engine->prefixes()->counters().nodes, 0);
}

TEST_P(EnginePrefixesTest, WhenAllIsLetGoTheBudgetIsWhereItBegan) {
  const auto engine = ModelFile::engine(budgeted(40, "lru"));
  const std::uint64_t held = engine->other_budget_bytes();
  {
    const auto a = open_with_salt(*engine, "a");
    complete(*engine, *a, random_prompt(100, 1));
    const auto b = engine->open_session().value();
    complete(*engine, *b, random_prompt(100, 1));
  }
  EXPECT_GT(engine->prefixes()->memory().cached_only_pages, 0);
  engine->forget_prefixes();
  EXPECT_EQ(engine->prefixes()->counters().nodes, 0);
  EXPECT_EQ(engine->cache().budget().current_bytes() - engine->other_budget_bytes() + held,
            engine->cache().overhead_bytes());
  expect_sound(*engine);
}

INSTANTIATE_TEST_SUITE_P(Architectures, EnginePrefixesTest,
                         testing::Values("llama", "qwen2", "gemma3"),
                         [](const auto& instance) { return std::string(instance.param); });

}  // namespace
}  // namespace memdecay
