#include "eval/calibration/classifier_study.h"

#include <gtest/gtest.h>

#include "core/seeded_random.h"
#include "engine/memory/token_regions.h"
#include "eval/calibration/letter_model_for_test.h"
#include "eval/runs/labelled_episode.h"

namespace memdecay {
namespace {

using nlohmann::ordered_json;

/// Words of some letters only, so that who speaks shows in every token.
std::string words(SeededRandom& random, std::string_view letters, int count) {
  std::string text;
  for (int i = 0; i < count; ++i) {
    if (i > 0) text += ' ';
    for (int c = 0; c < 5; ++c) text += letters[random.below(letters.size())];
  }
  return text;
}

Trajectory run_of(const std::string& data_set, int task, int trial) {
  SeededRandom random(static_cast<std::uint64_t>(100 * task + trial));
  Trajectory run;
  run.id = data_set + std::to_string(task) + "." + std::to_string(trial);
  run.task = data_set + std::to_string(task);
  run.data_set = data_set;
  run.source = run.id;
  ordered_json messages = ordered_json::array();
  const auto say = [&](const char* role, const std::string& text) {
    messages.push_back({{"role", role}, {"content", text}});
  };
  say("system", words(random, "abcde", 60));
  say("user", words(random, "fghij", 30));
  for (int turn = 0; turn < 4; ++turn) {
    say("assistant", words(random, "klmno", 20));
    say("tool", words(random, "xyz", 12));
    say("user", words(random, "pqrst", 20));
  }
  run.conversation["messages"] = std::move(messages);
  return run;
}

std::vector<Trajectory> runs_of(const std::string& data_set, int tasks) {
  std::vector<Trajectory> runs;
  for (int task = 0; task < tasks; ++task) {
    for (int trial = 0; trial < 2; ++trial) runs.push_back(run_of(data_set, task, trial));
  }
  return runs;
}

StudyOptions quick_options() {
  StudyOptions options;
  options.training.epochs = 4;
  options.training.shape.hidden_width = 16;
  options.training.shape.projected_width = 8;
  return options;
}

const RegionConfusion& row(const ClassifierStudy& study, const std::string& method,
                           const std::string& data_set = "all") {
  for (const StudyRow& row : study.rows) {
    if (row.method == method && row.data_set == data_set && row.style == "all")
      return row.confusion;
  }
  ADD_FAILURE() << "no row " << method;
  return study.rows.front().confusion;
}

TEST(LabelledEpisodeTest, KnowsTheRegionOfEveryToken) {
  const LetterModel letters;
  Trajectory run;
  run.conversation["messages"] = ordered_json::parse(
      R"([{"role": "system", "content": "ab"}, {"role": "user", "content": "cd"},
          {"role": "assistant", "content": "ef"}])");
  const auto episode = label_episode(letters.model(), run, TranscriptStyle::kBare, 1000);
  ASSERT_TRUE(episode.ok()) << episode.status().message();
  ASSERT_EQ(episode->tokens.size(), 12U);
  using enum Region;
  EXPECT_EQ(regions_of(episode->spans),
            (std::vector<Region>{kSystem, kSystem, kSystem, kSystem, kDecision, kDecision,
                                 kDecision, kDecision, kRecent, kRecent, kRecent, kRecent}));
  EXPECT_EQ(episode->without, std::vector<Region>(12, kDecision));
  EXPECT_EQ(episode->places, (std::vector<std::int32_t>{0, 1, 2, 3, 0, 1, 2, 3, 0, 1, 2, 3}));
}

TEST(ClassifierStudyTest, LearnsTellsItsShareAndMeasuresTheRules) {
  const LetterModel letters;
  const std::vector<Trajectory> runs = runs_of("shop", 10);
  const auto study = study_classifier(letters.model(), runs, quick_options());
  ASSERT_TRUE(study.ok()) << study.status().message();
  EXPECT_EQ(study->test_tasks, 2U);
  EXPECT_EQ(study->held_out_tasks, 1U);
  EXPECT_EQ(study->training_tasks, 7U);
  EXPECT_GT(row(*study, "classifier").accuracy(), 0.9);
  EXPECT_EQ(row(*study, "classifier").tokens(), static_cast<std::int64_t>(study->test_tokens));
  EXPECT_DOUBLE_EQ(row(*study, "rules with structure, 0 % noise").accuracy(), 1.0);
  EXPECT_LT(row(*study, "rules with structure, 30 % noise").accuracy(), 0.95);
  const RegionConfusion& without = row(*study, "rules without structure");
  EXPECT_DOUBLE_EQ(without.accuracy(), static_cast<double>(without.occurrences(Region::kDecision)) /
                                           static_cast<double>(without.tokens()));
  EXPECT_TRUE(classifier_fits(study->file, letters.model()));
  EXPECT_TRUE(study_json(*study).at("rows").size() == study->rows.size());
}

TEST(ClassifierStudyTest, TheSameRunsGiveTheSameFile) {
  const LetterModel letters;
  const std::vector<Trajectory> runs = runs_of("shop", 4);
  StudyOptions options = quick_options();
  options.training.epochs = 1;
  const auto file = [&](double noise) {
    options.noise = noise;
    const auto study = study_classifier(letters.model(), runs, options);
    EXPECT_TRUE(study.ok());
    return serialize_classifier(study->file);
  };
  const std::string clean = file(0.0);
  EXPECT_EQ(clean, file(0.0));
  EXPECT_NE(clean, file(0.3));
}

TEST(ClassifierStudyTest, ADataSetThatIsLeftOutIsOnlyMeasuredOn) {
  const LetterModel letters;
  std::vector<Trajectory> runs = runs_of("shop", 4);
  for (Trajectory& run : runs_of("bank", 2)) runs.push_back(std::move(run));
  StudyOptions options = quick_options();
  options.training.epochs = 1;
  options.leave_out = "bank";
  const auto study = study_classifier(letters.model(), runs, options);
  ASSERT_TRUE(study.ok()) << study.status().message();
  EXPECT_EQ(study->test_tasks, 2U);
  EXPECT_EQ(study->training_tasks + study->held_out_tasks, 3U);
  EXPECT_EQ(row(*study, "classifier", "bank").tokens(), row(*study, "classifier").tokens());
  options.leave_out = "moon";
  const auto refused = study_classifier(letters.model(), runs, options);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.status().message(), "no run is of the data set moon; there are bank, shop");
}

TEST(ClassifierStudyTest, TooFewTasksAreRefused) {
  const LetterModel letters;
  const auto study = study_classifier(letters.model(), runs_of("shop", 2), quick_options());
  ASSERT_FALSE(study.ok());
  EXPECT_EQ(study.status().code(), StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace memdecay
