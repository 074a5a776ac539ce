#include "eval/evaluation.h"

#include <gtest/gtest.h>

#include "engine/model_file_for_test.h"
#include "sys/folder_for_test.h"

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

TEST(Evaluation, ARowJoinsTheSessionsOfACell) {
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

TEST(Evaluation, CellsThatHaveARowAreNotMeasuredAgain) {
  const FolderForTest folder;
  ResultsFile results = ResultsFile::open(folder.path("results.json")).value();
  const std::vector<MemoryCell> cells = {{"lru", "fp16", parse_cell_budget("50%").value()}};
  ASSERT_TRUE(results.add({"m", "lru", "fp16", "50%", "d", ""}, {{"mean_kl", nullptr}}).ok());
  const ModelFile file("llama");
  const auto engine = file.engine();
  ChainedSession broken;  // fails when it is read: the model has no chat template
  broken.conversation = {{"messages", nlohmann::ordered_json::array()}};
  const std::vector<const ChainedSession*> sessions = {&broken};
  const auto never = [](std::size_t, double) { ADD_FAILURE() << "something was measured"; };
  EXPECT_TRUE(evaluate_data_set(*engine, {"m", "d", sessions, cells, {}}, results, never).ok());
  EvaluationTask noisy{"m", "d", sessions, cells, {}};
  noisy.options.label_noise = 0.1;
  EXPECT_FALSE(evaluate_data_set(*engine, noisy, results, [](std::size_t, double) {}).ok())
      << "another variant is another row";
}

}  // namespace
}  // namespace memdecay
