#include "eval/report/cell_scores.h"

#include <gtest/gtest.h>

namespace memdecay {
namespace {

CellScores some_scores() {
  CellScores scores;
  EpisodeScores episode;
  episode.kl = {0.25, 1e-10, 3.0000000004};
  episode.flips = 2;
  episode.parts[1] = {4, 3, 2, 12, 11, 10, -1.5, -2.5};
  scores.episodes = {episode, EpisodeScores{}};
  scores.mean_bytes = 12.5;
  scores.peak_bytes = 1ULL << 40;
  scores.full_bytes = 1ULL << 41;
  scores.evicted_tokens = 7;
  scores.recomputed_tokens = 3;
  scores.kept = {{"system", 1.0}, {"tool", 0.125}};
  scores.lives["tool"] = {{32, 5, 0}, {64, 1, 7}};
  scores.steps = {{1, 0.5}, {3, 2.25}};
  scores.eviction_ms_per_token = 0.125;
  ProbeScore probe;
  probe.kind = "goal";
  probe.region = "decision";
  probe.depth = 0.25;
  probe.age = 0.5;
  probe.right_full = true;
  probe.log_prob = -3;
  probe.log_prob_full = -0.5;
  scores.probes = {probe};
  return scores;
}

TEST(CellScores, JsonAndBackIsTheSame) {
  const CellScores scores = some_scores();
  const auto json = nlohmann::ordered_json::parse(cell_scores_json(scores).dump());
  const Result<CellScores> back = parse_cell_scores(json);
  ASSERT_TRUE(back.ok()) << back.status().message();
  EXPECT_EQ(cell_scores_json(back.value()), cell_scores_json(scores));
  ASSERT_EQ(back.value().episodes.size(), 2U);
  EXPECT_NEAR(back.value().episodes[0].kl[2], 3.0, 1e-9);
  EXPECT_EQ(back.value().episodes[0].parts[1].kept_right, 10);
  EXPECT_EQ(back.value().episodes[0].parts[1].log_prob, -2.5);
  EXPECT_EQ(back.value().peak_bytes, 1ULL << 40);
  EXPECT_EQ(back.value().kept.at("tool"), 0.125);
  ASSERT_EQ(back.value().lives.at("tool").size(), 2U);
  EXPECT_EQ(back.value().lives.at("tool")[1].censored, 7);
  ASSERT_EQ(back.value().steps.size(), 2U);
  EXPECT_EQ(back.value().steps[1].turn, 3);
  EXPECT_EQ(back.value().steps[1].ms, 2.25);
  EXPECT_EQ(back.value().eviction_ms_per_token, 0.125);
  ASSERT_EQ(back.value().probes.size(), 1U);
  EXPECT_TRUE(back.value().probes[0].right_full);
  EXPECT_FALSE(back.value().probes[0].right);
  EXPECT_EQ(back.value().probes[0].log_prob_full, -0.5);
}

/// What older programs did not write.
bool is_new(const std::string& name) {
  return name == "lives" || name == "steps" || name == "eviction_ms_per_token";
}

TEST(CellScores, EveryMemberThatIsMissingOrSomethingElseIsNoticed) {
  const nlohmann::ordered_json whole = cell_scores_json(some_scores());
  for (const auto& [name, value] : whole.items()) {
    nlohmann::ordered_json less = whole;
    less.erase(name);
    EXPECT_EQ(parse_cell_scores(less).ok(), is_new(name)) << name;
    nlohmann::ordered_json other = whole;
    other[name] = "text";
    EXPECT_EQ(parse_cell_scores(other).status().code(), StatusCode::kCorrupt) << name;
  }
}

}  // namespace
}  // namespace memdecay
