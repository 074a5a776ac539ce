#include "eval/cells/lockstep.h"

#include <gtest/gtest.h>

#include <optional>
#include <set>

#include "core/units.h"
#include "engine/model_file_for_test.h"

namespace memdecay {
namespace {

constexpr int kTokens = 600;

PromptLabels plain_labels() {
  PromptLabels labels;
  RegionSpan span;
  span.tokens = {0, kTokens};
  span.region = Region::kRecent;
  labels.regions = {span};
  labels.exact.assign(kTokens, 0);
  labels.phases.assign(kTokens, QueryPhase::kAct);
  return labels;
}

class LockstepTest : public testing::Test {
 protected:
  LockstepTest() {
    EngineOptions options = file_.options();
    options.context_tokens = 4096;
    options.pools_for_all_forms = true;
    engine_ = ModelFile::engine(options);
    judged_.assign(kTokens, 0);
    for (int i = 0; i < kTokens; ++i) judged_[static_cast<std::size_t>(i)] = i % 50 >= 30 ? 1 : 0;
  }
  SessionOptions memory(const char* policy, KvForms forms, int pages) const {
    SessionOptions options;
    options.policy = policy;
    options.kv_forms = forms;
    if (pages > 0) options.budget_bytes = file_.bytes_of_pages(pages);
    return options;
  }
  struct Seen {
    std::set<Position> positions;
    double difference = 0;
  };
  /// `falls_out`: this memory does, and is forked as such.
  std::vector<Seen> play(const std::vector<SessionOptions>& memories,
                         std::optional<std::size_t> falls_out = std::nullopt) {
    const auto lockstep = Lockstep::open(*engine_, memories).value();
    std::vector<Seen> seen(memories.size());
    const auto tokens = random_prompt(kTokens, 3);
    const Status status = lockstep->play(
        tokens, plain_labels(), judged_, {16, 16},
        [&](const ComparedToken& token) {
          Seen& one = seen[token.memory];
          EXPECT_TRUE(one.positions.insert(token.position).second);
          EXPECT_EQ(token.token, tokens[static_cast<std::size_t>(token.position)]);
          for (std::size_t i = 0; i < token.logits.size(); ++i)
            one.difference +=
                std::abs(static_cast<double>(token.logits[i] - token.reference_logits[i]));
        },
        [] { return Status(); });
    EXPECT_TRUE(status.ok()) << status.message();
    const auto fork = lockstep->fork(kTokens / 2).value();
    for (std::size_t i = 0; i < memories.size(); ++i) {
      EXPECT_EQ(lockstep->status(i).message(), fork->status(i).message());
      if (i == falls_out) {
        const std::string own =
            "the KV budget of " + format_bytes(memories[i].budget_bytes) + " is full";
        EXPECT_EQ(lockstep->status(i).code(), StatusCode::kResourceExhausted);
        EXPECT_NE(lockstep->status(i).message().find(own), std::string::npos);
        continue;
      }
      EXPECT_TRUE(lockstep->status(i).ok()) << lockstep->status(i).message();
      EXPECT_EQ(lockstep->session(i).tokens().size(), static_cast<std::size_t>(kTokens));
    }
    return seen;
  }
  ModelFile file_{"llama", RandomModelShape{}};
  std::unique_ptr<Engine> engine_;
  std::vector<std::uint8_t> judged_;
};

TEST_F(LockstepTest, EveryJudgedTokenIsComparedOnceInEveryMemory) {
  const auto seen = play({memory("window", KvForms::kF16, 12), memory("lru", KvForms::kAuto, 12)});
  std::set<Position> expected;
  for (int i = 0; i < kTokens; ++i)
    if (judged_[static_cast<std::size_t>(i)] != 0) expected.insert(i);
  for (const Seen& one : seen) EXPECT_EQ(one.positions, expected);
}

TEST_F(LockstepTest, AMemoryThatForgetsNothingIsTheReference) {
  const auto seen = play({memory("none", KvForms::kF16, 0), memory("window", KvForms::kF16, 12)});
  EXPECT_EQ(seen[0].difference, 0.0);
  EXPECT_GT(seen[1].difference, 0.0);
}

TEST_F(LockstepTest, NeighboursDoNotChangeWhatAMemorySays) {
  const auto alone = play({memory("h2o", KvForms::kAuto, 14)});
  const auto together =
      play({memory("window", KvForms::kInt8, 20), memory("h2o", KvForms::kAuto, 14),
            memory("random", KvForms::kF16, 12)});
  EXPECT_EQ(alone[0].difference, together[1].difference);
}

TEST_F(LockstepTest, AfterTheFactAMemoryIsTheReferenceUntilItShrinks) {
  SessionOptions options = memory("h2o", KvForms::kF16, 14);
  options.evicts_when_asked = true;
  const auto lockstep = Lockstep::open(*engine_, std::vector<SessionOptions>{options}).value();
  const auto tokens = random_prompt(kTokens, 3);
  Position shrunk_at = 0;
  double before = 0, after = 0;
  const Status status = lockstep->play(
      tokens, plain_labels(), judged_, {16, 16},
      [&](const ComparedToken& token) {
        double& difference = shrunk_at == 0 ? before : after;
        for (std::size_t i = 0; i < token.logits.size(); ++i)
          difference = std::max(
              difference, std::abs(double{token.logits[i]} - double{token.reference_logits[i]}));
      },
      [&] {
        const auto held = static_cast<Position>(lockstep->session(0).tokens().size());
        if (shrunk_at > 0 || held < 450) return Status();
        shrunk_at = held;
        return lockstep->shrink(0, options.budget_bytes);
      });
  ASSERT_TRUE(status.ok()) << status.message();
  EXPECT_LT(before, 1e-3);
  EXPECT_GT(after, 10 * before);
}

TEST_F(LockstepTest, AForkPlaysOnWithoutTheOriginal) {
  const auto tokens = random_prompt(kTokens, 3);
  const std::vector<SessionOptions> memories = {memory("window", KvForms::kF16, 14)};
  const auto play_rest = [&](Lockstep& lockstep, std::size_t from) {
    std::vector<float> last;
    const Status status = lockstep.play(
        std::span(tokens).subspan(from), plain_labels(), std::span(judged_).subspan(from), {16, 4},
        [&](const ComparedToken& token) { last.assign(token.logits.begin(), token.logits.end()); },
        [] { return Status(); });
    EXPECT_TRUE(status.ok()) << status.message();
    return last;
  };
  const auto lockstep = Lockstep::open(*engine_, memories).value();
  const std::size_t half = kTokens / 2;
  EXPECT_TRUE(lockstep
                  ->play(
                      std::span(tokens).first(half), plain_labels(), std::span(judged_).first(half),
                      {16, 4}, [](const ComparedToken&) {}, [] { return Status(); })
                  .ok());
  EXPECT_EQ(lockstep->fork(half - 40).value()->session(0).tokens().size(), half - 40);
  const std::vector<float> of_fork = play_rest(*lockstep->fork(half).value(), half);
  EXPECT_EQ(lockstep->session(0).tokens().size(), half);
  EXPECT_EQ(play_rest(*lockstep, half), of_fork) << "the fork has left no trace";
}

TEST_F(LockstepTest, AMemoryThatCannotHoldItsNewestPagesFallsOutAndTheOthersPlayOn) {
  const SessionOptions small = memory("window", KvForms::kF16, 1);
  const std::vector<SessionOptions> memories = {memory("h2o", KvForms::kAuto, 14), small,
                                                memory("lru", KvForms::kF16, 12)};
  const auto seen = play(memories, /*falls_out=*/1);
  const auto alone = play({memories[0], memories[2]});
  EXPECT_EQ(seen[0].difference, alone[0].difference) << "what fell out has left no trace";
  EXPECT_EQ(seen[2].difference, alone[1].difference);
}

TEST_F(LockstepTest, WhoHasNoRoomForAWholePassGetsItInPartsAndTheOthersDoNot) {
  const std::vector<SessionOptions> memories = {memory("h2o", KvForms::kAuto, 14),
                                                memory("window", KvForms::kF16, 4)};
  const auto seen = play(memories);
  EXPECT_EQ(seen[0].positions, seen[1].positions);
  EXPECT_EQ(seen[0].difference, play({memories[0]})[0].difference);
}

TEST_F(LockstepTest, WhatTheReferenceCannotHoldEndsThePlay) {
  EngineOptions options = file_.options();
  options.context_tokens = 4096;
  options.kv_budget_bytes = file_.bytes_of_pages(6);
  const auto engine = ModelFile::engine(options);
  const auto lockstep = Lockstep::open(*engine, {}).value();
  std::size_t of_whole_passes = 0;
  const Status status = lockstep->play(
      random_prompt(kTokens, 3), plain_labels(), judged_, {24, 24}, [](const ComparedToken&) {},
      [&] {
        of_whole_passes = lockstep->tokens_played();
        return Status();
      });
  EXPECT_EQ(status.code(), StatusCode::kResourceExhausted);
  EXPECT_EQ(lockstep->tokens_played(), of_whole_passes) << "it tries no pass in parts";
}

}  // namespace
}  // namespace memdecay
