#include "eval/report/scores_file.h"

#include <gtest/gtest.h>

#include "sys/folder_for_test.h"
#include "sys/whole_file.h"

namespace memdecay {
namespace {

const ResultKey kKey = {"m", "lru", "fp16", "25%", "d", ""};

CellScores scores(double bytes) {
  CellScores scores;
  scores.mean_bytes = bytes;
  return scores;
}

class ScoresFileTest : public testing::Test {
 protected:
  std::string text() const { return read_file(path_).value(); }
  void write(const std::string& text) const { folder_.write("scores.jsonl", text); }

  const FolderForTest folder_;
  const std::string path_ = folder_.path("scores.jsonl");
};

TEST_F(ScoresFileTest, WhatWasAddedIsFoundAgain) {
  {
    ScoresFile file = ScoresFile::open(path_).value();
    EXPECT_EQ(file.find(kKey, "a"), nullptr);
    ASSERT_TRUE(file.add(kKey, "a", scores(1)).ok());
    ASSERT_TRUE(file.add(kKey, "b", scores(2)).ok());
    EXPECT_EQ(file.find(kKey, "a")->mean_bytes, 1);
  }
  const ScoresFile again = ScoresFile::open(path_).value();
  ASSERT_NE(again.find(kKey, "b"), nullptr);
  EXPECT_EQ(again.find(kKey, "b")->mean_bytes, 2);
  ResultKey other = kKey;
  other.variant = "label noise 10 %";
  EXPECT_EQ(again.find(other, "a"), nullptr);
}

TEST_F(ScoresFileTest, ALineCutShortIsMeasuredAgain) {
  ASSERT_TRUE(ScoresFile::open(path_).value().add(kKey, "a", scores(1)).ok());
  const std::string whole = text();
  for (const std::size_t cut : {std::size_t{1}, whole.size() / 2, whole.size() - 1}) {
    write(whole + whole.substr(0, cut));
    {
      ScoresFile file = ScoresFile::open(path_).value();
      EXPECT_NE(file.find(kKey, "a"), nullptr);
      EXPECT_EQ(text(), whole) << "what is added next begins a line";
      ASSERT_TRUE(file.add(kKey, "b", scores(2)).ok());
    }
    EXPECT_NE(ScoresFile::open(path_).value().find(kKey, "b"), nullptr);
  }
}

TEST_F(ScoresFileTest, WhatIsNoScoresIsRefusedAndKept) {
  for (const char* bad :
       {"hello\n", "{}\n", "[1]\n", "{\"key\":{},\"session\":\"a\",\"scores\":{}}\n",
        "{\"key\":{},\"session\":1,\"scores\":{}}\n"}) {
    write(bad);
    EXPECT_EQ(ScoresFile::open(path_).status().code(), StatusCode::kCorrupt) << bad;
    EXPECT_EQ(text(), bad);
  }
}

TEST_F(ScoresFileTest, AFolderThatIsNotThereIsSaid) {
  ScoresFile file = ScoresFile::open(folder_.path("none/scores.jsonl")).value();
  EXPECT_EQ(file.add(kKey, "a", scores(1)).code(), StatusCode::kIoError);
}

}  // namespace
}  // namespace memdecay
