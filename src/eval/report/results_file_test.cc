#include "eval/report/results_file.h"

#include <gtest/gtest.h>

#include "sys/folder_for_test.h"
#include "sys/whole_file.h"

namespace memdecay {
namespace {

class Results : public testing::Test {
 protected:
  ResultsFile open() const {
    Result<ResultsFile> file = ResultsFile::open(path_);
    EXPECT_TRUE(file.ok()) << file.status().message();
    return std::move(file).value();
  }
  const FolderForTest folder_;
  const std::string path_ = folder_.path("results.json");
  const ResultKey key_ = {"qwen-0.5b", "memdecay", "auto", "25%", "airline", ""};
};

TEST_F(Results, RowsOutliveTheRunAndAreFoundByTheirKey) {
  ResultsFile file = open();
  EXPECT_EQ(file.rows(), 0U);
  ASSERT_TRUE(file.add(key_, {{"mean_kl", {{"value", 0.5}}}}).ok());
  ResultKey noisy = key_;
  noisy.variant = "label noise 10 %";
  EXPECT_EQ(file.rows(), 1U);
  ASSERT_TRUE(file.add(noisy, {{"mean_kl", {{"value", 0.7}}}}).ok());
  const ResultsFile again = open();
  EXPECT_EQ(again.rows(), 2U);
  EXPECT_EQ(again.json().dump(),
            R"({"rows":[{"model":"qwen-0.5b","policy":"memdecay","kv_format":"auto",)"
            R"("budget":"25%","data_set":"airline","variant":"","mean_kl":{"value":0.5}},)"
            R"({"model":"qwen-0.5b","policy":"memdecay","kv_format":"auto","budget":"25%",)"
            R"("data_set":"airline","variant":"label noise 10 %","mean_kl":{"value":0.7}}]})");
}

TEST_F(Results, ARowThatComesAgainReplacesTheOld) {
  ResultsFile file = open();
  ASSERT_TRUE(file.add(key_, {{"x", 1}}).ok());
  ASSERT_TRUE(file.add(key_, {{"x", 2}}).ok());
  EXPECT_EQ(file.rows(), 1U);
  EXPECT_EQ(open().json().at("rows")[0].at("x"), 2);
}

TEST_F(Results, WhatIsNoResultsFileIsNotOverwritten) {
  for (const char* text : {"", "[]", "{\"rows\": 3}", "{\"rows\": [1]}", "{\"rows\": ["}) {
    folder_.write("results.json", text);
    const Result<ResultsFile> file = ResultsFile::open(path_);
    ASSERT_FALSE(file.ok()) << text;
    EXPECT_EQ(file.status().code(), StatusCode::kCorrupt);
    EXPECT_EQ(read_file(path_).value(), text);
  }
}

TEST_F(Results, AFolderThatIsNotThereIsAFailure) {
  Result<ResultsFile> file = ResultsFile::open(path_ + ".none/results.json");
  ASSERT_TRUE(file.ok());
  EXPECT_EQ(file->add(key_, {{"x", 1}}).code(), StatusCode::kIoError);
}

}  // namespace
}  // namespace memdecay
