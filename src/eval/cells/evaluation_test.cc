#include "eval/cells/evaluation.h"

#include <gtest/gtest.h>

#include "core/text_hash.h"
#include "engine/model_file_for_test.h"
#include "sys/folder_for_test.h"

namespace memdecay {
namespace {

class EvaluationFilesTest : public testing::Test {
 protected:
  /// A session that fails when it is read: the model has no chat template.
  static ChainedSession unreadable(const std::string& id) {
    ChainedSession session;
    session.id = id;
    session.tokens = 300;
    session.conversation = {{"messages", nlohmann::ordered_json::array()}};
    return session;
  }
  Status evaluate(const EvaluationTask& task) {
    ResultsFile results = ResultsFile::open(folder_.path("results.json")).value();
    ScoresFile scores = ScoresFile::open(folder_.path("scores.jsonl")).value();
    const Status status = evaluate_data_set(
        *engine_, task, {results, scores}, {[](std::size_t, double) {}, [](const std::string&) {}});
    rows_ = results.json().at("rows");
    return status;
  }

  const FolderForTest folder_;
  const ModelFile file_{"llama"};
  const std::unique_ptr<Engine> engine_ = file_.engine();
  nlohmann::ordered_json rows_;
};

TEST_F(EvaluationFilesTest, WhatWasScoredIsNotMeasuredAgain) {
  const std::vector<MemoryCell> cells = {{"lru", "fp16", parse_cell_budget("50%").value()}};
  const ChainedSession known = unreadable("known");
  const ChainedSession unknown = unreadable("unknown");
  {
    ScoresFile kept = ScoresFile::open(folder_.path("scores.jsonl")).value();
    const std::string name = fmt::format("known@{:016x}", text_hash("{\"messages\":[]}", 1));
    ASSERT_TRUE(kept.add({"m", "lru", "fp16", "50%", "d", ""}, name, CellScores()).ok());
  }
  std::vector<const ChainedSession*> both = {&known, &unknown};
  const std::vector<double> missing = missing_tokens(
      {"m", "d", both, cells, {}}, ScoresFile::open(folder_.path("scores.jsonl")).value());
  EXPECT_EQ(missing, (std::vector<double>{0, 300})) << "what is known takes no time";
  std::vector<const ChainedSession*> sessions = {&known};
  EXPECT_TRUE(evaluate({"m", "d", sessions, cells, {}}).ok());
  ASSERT_EQ(rows_.size(), 1U);
  EXPECT_EQ(rows_[0]["sessions"], 1);
  std::vector<MemoryCell> newer = cells;
  newer[0].version = "1-abc";
  EXPECT_FALSE(evaluate({"m", "d", sessions, newer, {}}).ok()) << "other settings, other scores";
  EvaluationTask other_seed{"m", "d", sessions, cells, {}};
  other_seed.options.seed = 5;
  EXPECT_FALSE(evaluate(other_seed).ok());
  EvaluationTask noisy{"m", "d", sessions, cells, {}};
  noisy.options.label_noise = 0.1;
  EXPECT_FALSE(evaluate(noisy).ok()) << "another variant has other scores";
  sessions = {&known, &unknown};
  EXPECT_FALSE(evaluate({"m", "d", sessions, cells, {}}).ok()) << "one more session is measured";
  ASSERT_EQ(rows_.size(), 1U);
  EXPECT_EQ(rows_[0]["sessions"], 1) << "and the row of those before stays";
}

}  // namespace
}  // namespace memdecay
