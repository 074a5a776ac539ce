#include "eval/report/row_values.h"

#include <gtest/gtest.h>

namespace memdecay {
namespace {

CellScores scores(double mean_bytes, std::uint64_t peak, double kept) {
  CellScores scores;
  EpisodeScores episode;
  episode.kl = {0.5, 1.5};
  episode.flips = 1;
  scores.episodes = {episode};
  scores.mean_bytes = mean_bytes;
  scores.peak_bytes = peak;
  scores.full_bytes = 1000;
  scores.evicted_tokens = 7;
  scores.kept["tool"] = kept;
  return scores;
}

TEST(RowValues, ARowJoinsTheSessionsOfACell) {
  const std::vector<CellScores> sessions = {scores(100, 200, 1.0), scores(300, 400, 0.5)};
  const nlohmann::ordered_json row = row_values(sessions);
  EXPECT_DOUBLE_EQ(row["mean_kl"]["value"].get<double>(), 1.0);
  EXPECT_DOUBLE_EQ(row["flips_per_1000"]["value"].get<double>(), 500.0);
  EXPECT_DOUBLE_EQ(row["kv_bytes"]["value"].get<double>(), 200.0);
  EXPECT_DOUBLE_EQ(row["peak_share_of_fp16"].get<double>(), 0.4);
  EXPECT_EQ(row["evicted_tokens"], 14);
  EXPECT_EQ(row["sessions"], 2);
  EXPECT_DOUBLE_EQ(row["kept"]["tool"].get<double>(), 0.75);
}

TEST(RowValues, WhatWasKeptIsAMeanOverTheSessionsThatHaveTheRegion) {
  std::vector<CellScores> sessions = {scores(100, 200, 1.0), scores(300, 400, 0.5)};
  sessions[1].kept["decision"] = 0.5;
  EXPECT_DOUBLE_EQ(row_values(sessions)["kept"]["decision"].get<double>(), 0.5);
}

TEST(RowValues, SurvivalJoinsTheLivesOfAllSessions) {
  std::vector<CellScores> sessions = {scores(100, 200, 1.0), scores(300, 400, 0.5)};
  EXPECT_EQ(row_values(sessions)["survival"], nlohmann::ordered_json::object());
  sessions[0].lives["tool"] = {{32, 1, 0}, {96, 0, 1}};
  sessions[1].lives["tool"] = {{32, 0, 1}, {64, 1, 0}};
  const auto points =
      row_values(sessions)["survival"]["tool"].get<std::vector<std::vector<double>>>();
  EXPECT_EQ(points,
            (std::vector<std::vector<double>>{{0, 1}, {32, 0.75}, {64, 0.375}, {96, 0.375}}));
}

TEST(RowValues, LatencyIsByTurnAndOverAllSteps) {
  std::vector<CellScores> sessions = {scores(100, 200, 1.0), scores(300, 400, 0.5)};
  nlohmann::ordered_json row = row_values(sessions);
  EXPECT_FALSE(row.contains("latency_by_turn_ms") || row.contains("latency_ms_p50"));
  EXPECT_FALSE(row.contains("eviction_ms_per_token"));
  sessions[0].steps = {{2, 1.0}, {2, 3.0}, {9, 5.0}};
  sessions[1].steps = {{2, 9.0}, {5, 4.0}};
  sessions[1].eviction_ms_per_token = 0.25;
  row = row_values(sessions);
  EXPECT_EQ(row["latency_by_turn_ms"], nlohmann::ordered_json::parse("[[2,3.0],[5,4.0],[9,5.0]]"));
  EXPECT_DOUBLE_EQ(row["latency_ms_p50"].get<double>(), 4.0);
  EXPECT_DOUBLE_EQ(row["latency_ms_p95"].get<double>(), 8.2);
  EXPECT_DOUBLE_EQ(row["eviction_ms_per_token"].get<double>(), 0.25);
}

TEST(RowValues, ARowTellsWhatWasRecalled) {
  CellScores asked = scores(100, 200, 1.0);
  ProbeScore fact;
  fact.kind = "fact";
  fact.region = "tool";
  fact.depth = 0.1;
  fact.age = 0.9;
  fact.right_full = fact.right = true;
  asked.probes = {fact, fact, fact};
  asked.probes[1].right = false;
  asked.probes[2].right_full = false;  // the full cache does not know it either
  const nlohmann::ordered_json row = row_values(std::vector<CellScores>{asked});
  EXPECT_DOUBLE_EQ(row["recall"]["value"].get<double>(), 0.5);
  EXPECT_TRUE(row["goal_survival"]["value"].is_null());
  ASSERT_EQ(row["recall_by"].size(), 1U);
  EXPECT_EQ(row["recall_by"][0]["depth"], "0-33%");
  EXPECT_EQ(row["recall_by"][0]["age"], "67-100%");
  EXPECT_EQ(row["recall_by"][0]["probes"], 3);
  EXPECT_EQ(row["recall_by"][0]["right_full"], 2);
  EXPECT_EQ(row["recall_by"][0]["right"], 1);
  EXPECT_FALSE(row_values(std::vector<CellScores>{scores(1, 2, 1.0)}).contains("recall"));
}

}  // namespace
}  // namespace memdecay
