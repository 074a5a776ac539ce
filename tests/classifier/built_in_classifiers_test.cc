// The region classifiers that are built in: their files read, and they reach what was recorded on
// made-up runs (episodes.json) that are like no recording they learnt from.
#include <gtest/gtest.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "engine/memory/token_regions.h"
#include "eval/runs/labelled_episode.h"
#include "policy/regions/region_confusion.h"
#include "sys/user_folders.h"

namespace memdecay {
namespace {

/// What was measured when the files were made, less two points for other builds' rounding.
struct Recorded {
  const char* model;
  double accuracy;
  double macro_f1;
};

class BuiltInClassifier : public testing::TestWithParam<Recorded> {};

std::vector<Trajectory> made_up_runs() {
  const auto json =
      nlohmann::ordered_json::parse(std::ifstream(MEMDECAY_CLASSIFIER_FOLDER "/episodes.json"));
  std::vector<Trajectory> runs;
  for (const auto& conversation : json) runs.emplace_back().conversation = conversation;
  return runs;
}

TEST_P(BuiltInClassifier, TheFileReadsAndIsSmall) {
  std::ifstream stream(std::string(MEMDECAY_CLASSIFIER_FILES "/") + GetParam().model + ".bin",
                       std::ios::binary);
  std::stringstream bytes;
  bytes << stream.rdbuf();
  EXPECT_LT(bytes.str().size(), 200'000U);
  const auto file = parse_classifier(bytes.str());
  ASSERT_TRUE(file.ok()) << file.status().message();
  EXPECT_EQ(serialize_classifier(*file), bytes.str());
}

TEST_P(BuiltInClassifier, ReachesWhatWasRecorded) {
  const auto path = cached_model_path(GetParam().model);
  if (!path.ok() || !std::filesystem::exists(*path)) {
    GTEST_SKIP() << GetParam().model << " is not in the cache; tools/fetch_model.py fetches it";
  }
  ThreadTeam team(1);
  const auto model = Model::load(path->string(), Precision::kFast, team);
  ASSERT_TRUE(model.ok()) << model.status().message();
  RegionConfusion confusion, without;
  for (const Trajectory& run : made_up_runs()) {
    for (const TranscriptStyle style : kTranscriptStyles) {
      const auto episode = label_episode(**model, run, style, 100'000);
      ASSERT_TRUE(episode.ok()) << episode.status().message();
      const auto named = classify_tokens(**model, episode->tokens);
      ASSERT_TRUE(named.has_value()) << "the built-in classifier does not know its model";
      confusion.add(regions_of(episode->spans), *named);
      without.add(regions_of(episode->spans), episode->without);
    }
  }
  std::printf("%s: accuracy %.3f, macro F1 %.3f; rules without structure %.3f, %.3f\n",
              GetParam().model, confusion.accuracy(), confusion.macro_f1(), without.accuracy(),
              without.macro_f1());
  EXPECT_GE(confusion.accuracy(), GetParam().accuracy);
  EXPECT_GE(confusion.macro_f1(), GetParam().macro_f1);
  EXPECT_GT(confusion.macro_f1(), without.macro_f1() + 0.2);
}

INSTANTIATE_TEST_SUITE_P(All, BuiltInClassifier,
                         testing::Values(Recorded{"smollm2", 0.737, 0.589},
                                         Recorded{"qwen-0.5b", 0.646, 0.505}),
                         [](const auto& test) {
                           std::string name = test.param.model;
                           for (char& c : name) {
                             if (c == '-' || c == '.') c = '_';
                           }
                           return name;
                         });

}  // namespace
}  // namespace memdecay
