// Small neighbouring pages are packed between passes: what that keeps, and what it never touches.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>

#include "engine/engine.h"
#include "engine/extend_without_logits.h"
#include "engine/model_file_for_test.h"

namespace memdecay {
namespace {

using Tokens = std::vector<TokenId>;

constexpr int kPageTokens = 16;

/// Runs of 3 to 60 tokens whose neighbours are of another region: some dialogue, then a tool round
/// of several, as a busy session has them.
PromptLabels random_labels(int tokens, std::uint32_t seed) {
  std::mt19937 random(seed);
  PromptLabels labels;
  for (Position at = 0; at < tokens;) {
    RegionSpan span;
    const auto number = static_cast<int>(labels.regions.size());
    const Position end = std::min<Position>(tokens, at + 3 + static_cast<Position>(random() % 58));
    span.tokens = {at, end};
    span.region = kRegions[static_cast<std::size_t>(1 + number % 4)];
    if (number % 12 > 4) span.tool_round = number / 12;
    span.tool_core = span.tool_round != kNoToolRound && number % 2 == 0;
    if (random() % 4 == 0) span.item = static_cast<int>(random() % 5);
    span.pinned = number > 0 && random() % 40 == 0;
    labels.regions.push_back(span);
    at = end;
  }
  labels.exact.assign(static_cast<std::size_t>(tokens), 0);
  labels.phases.assign(static_cast<std::size_t>(tokens), QueryPhase::kOther);
  return labels;
}

class EnginePackingTest : public testing::Test {
 protected:
  EngineOptions options(int pages) const {
    EngineOptions options = file_.options();
    options.context_tokens = 8192;
    options.adaptive_decay = false;
    options.kv_budget_bytes = 128 * 1024 + file_.bytes_of_pages(pages);
    return options;
  }
  ModelFile file_{"llama", RandomModelShape{}};
};

double utilisation(const SessionMemory& memory) {
  double tokens = 0;
  for (const SessionMemory::Page& page : memory.pages()) tokens += page.filled;
  return tokens / static_cast<double>(memory.pages().size() * kPageTokens);
}

/// What every step must leave: the memory in step with the pages, all of kv's own invariants.
void check(const Engine& engine, const Session& session) {
  expect_sound(engine);
  ASSERT_FALSE(testing::Test::HasFailure());
  const PageTable& table = session.sequence().table(LayerGroupId(0));
  const auto& pages = session.memory()->pages();
  ASSERT_EQ(pages.size(), table.view().pages.size());
  std::uint64_t bytes = 0;
  for (std::size_t i = 0; i < pages.size(); ++i) {
    const KvPageRef& ref = table.view().pages[i];
    const auto runs = table.runs().of(ref);
    ASSERT_EQ(pages[i].first_position, ref.first_position);
    ASSERT_EQ(pages[i].filled, ref.filled);
    ASSERT_EQ(pages[i].format, ref.format);
    ASSERT_TRUE(std::equal(runs.begin(), runs.end(), pages[i].runs.begin(), pages[i].runs.end()));
    ASSERT_EQ(session.memory()->meta(pages[i]).tokens, ref.filled);
    bytes += session.memory()->meta(pages[i]).bytes;
  }
  ASSERT_EQ(session.memory()->tracked_bytes(), bytes);
}

Status append(Engine& engine, Session& session, int tokens, std::uint32_t seed) {
  return extend_without_logits(engine, session, random_prompt(tokens, seed));
}

TEST_F(EnginePackingTest, ALabelledSessionKeepsItsPagesFull) {
  const auto engine = ModelFile::engine(options(400));
  const auto session = engine->open_session().value();
  const PromptLabels labels = random_labels(3000, 5);
  std::size_t unpacked = 0;
  for (const RegionSpan& span : labels.regions)
    unpacked += static_cast<std::size_t>((span.tokens.size() + kPageTokens - 1) / kPageTokens);
  engine->label(*session, labels);
  for (int i = 0; i < 100; ++i) {
    ASSERT_TRUE(append(*engine, *session, 30, static_cast<std::uint32_t>(i)).ok());
    check(*engine, *session);
    if (HasFatalFailure()) return;
  }
  EXPECT_EQ(session->memory()->evicted_tokens(), 0);
  EXPECT_LT(3000.0 / static_cast<double>(unpacked * kPageTokens), 0.84)
      << "if they were not packed";
  EXPECT_GT(utilisation(*session->memory()), 0.92);
}

TEST_F(EnginePackingTest, UnderEvictionEverythingStaysInStep) {
  for (const KvForms forms : {KvForms::kAuto, KvForms::kF16, KvForms::kInt8}) {
    EngineOptions tight = options(48);
    tight.kv_forms = forms;
    const auto engine = ModelFile::engine(tight);
    const auto session = engine->open_session().value();
    engine->label(*session, random_labels(4000, 6));
    std::mt19937 random(3);
    double sum = 0;
    int looks = 0;
    for (std::uint32_t i = 0; session->tokens().size() < 3900; ++i) {
      const Status added = append(*engine, *session, 1 + static_cast<int>(random() % 60), i);
      ASSERT_TRUE(added.ok()) << added.message();
      check(*engine, *session);
      if (HasFatalFailure()) return;
      if (i % 16 == 15) {  // an edit: the tail goes, perhaps from the middle of a packed page
        const auto size = static_cast<int>(session->tokens().size());
        ASSERT_TRUE(engine->truncate(*session, size - static_cast<int>(random() % 50)).ok());
        check(*engine, *session);
        if (HasFatalFailure()) return;
      }
      if (session->tokens().size() < 1000) continue;
      sum += utilisation(*session->memory());
      ++looks;
    }
    EXPECT_GT(session->memory()->evicted_tokens(), 0);
    EXPECT_GT(sum / looks, 0.82) << static_cast<int>(forms);
  }
}

TEST_F(EnginePackingTest, PagesThatAForkSharesAreLeftAlone) {
  const auto engine = ModelFile::engine(options(400));
  auto parent = engine->open_session().value();
  PromptLabels labels = random_labels(600, 7);
  labels.regions.clear();
  RegionSpan span;
  span.region = Region::kTool;
  for (Position at = 0; at < 240; at += 6) {  // too small for a page each
    span.tokens = {at, at + 6};
    labels.regions.push_back(span);
  }
  span.tokens = {240, 600};
  labels.regions.push_back(span);
  engine->label(*parent, labels);
  // So fast that only some pages are packed before the fork shares the rest.
  ASSERT_TRUE(append(*engine, *parent, 240, 1).ok());
  auto fork = engine->fork_session(*parent).value();
  std::vector<Position> shared;
  for (const auto& page : parent->memory()->pages()) shared.push_back(page.first_position);
  EXPECT_LT(utilisation(*parent->memory()), 0.8);
  for (std::uint32_t i = 0; i < 10; ++i) ASSERT_TRUE(append(*engine, *parent, 16, i).ok());
  check(*engine, *parent);
  for (std::size_t i = 0; i + 1 < shared.size(); ++i)
    EXPECT_EQ(parent->memory()->pages()[i].first_position, shared[i]);
  fork.reset();
  for (std::uint32_t i = 0; i < 20; ++i) ASSERT_TRUE(append(*engine, *parent, 10, i).ok());
  check(*engine, *parent);
  EXPECT_GT(utilisation(*parent->memory()), 0.97);
}

// Packing copies bits and computes nothing. But attention sums in tiles of 128 slots, counted from
// the first page, so other pages mean other partial sums: the last bits of fp32 sums differ, as
// they do between a session with page borders and one without.
TEST_F(EnginePackingTest, LogitsDifferByRoundingOnly) {
  EngineOptions exact = options(1200);
  exact.precision = Precision::kExact;
  const auto engine = ModelFile::engine(exact);
  std::vector<float> logits[2];
  std::size_t pages[2] = {};
  for (const bool packs : {false, true}) {
    SessionOptions options;
    options.packs_pages = packs;
    const auto session = engine->open_session(options).value();
    engine->label(*session, random_labels(900, 8));
    std::vector<float>& out = logits[packs ? 1 : 0];
    for (std::uint32_t i = 0; i < 30; ++i) {
      ASSERT_TRUE(engine
                      ->extend(*session, random_prompt(30, i), 0,
                               [&](int, std::span<const float> row) {
                                 out.insert(out.end(), row.begin(), row.end());
                               })
                      .ok());
    }
    pages[packs ? 1 : 0] = session->memory()->pages().size();
  }
  EXPECT_LT(pages[1] + 8, pages[0]) << "it was packed";
  ASSERT_EQ(logits[0].size(), logits[1].size());
  double most = 0, largest = 0;
  for (std::size_t i = 0; i < logits[0].size(); ++i) {
    most = std::max(most, static_cast<double>(std::abs(logits[0][i] - logits[1][i])));
    largest = std::max(largest, static_cast<double>(std::abs(logits[0][i])));
  }
  EXPECT_LT(most, 2e-5 * largest);
}

}  // namespace
}  // namespace memdecay
