#include "core/status.h"

#include <gtest/gtest.h>

namespace memdecay {
namespace {

Result<int> half(int value) {
  if (value % 2 != 0) return make_status(StatusCode::kInvalidArgument, "{} is odd", value);
  return value / 2;
}

Result<int> quarter(int value) {
  MEMDECAY_ASSIGN_OR_RETURN(const int halved, half(value));
  return half(halved);
}

TEST(Status, OkHasNoMessage) {
  EXPECT_TRUE(Status().ok());
  EXPECT_EQ(Status().code(), StatusCode::kOk);
  EXPECT_EQ(Status().message(), "");
  EXPECT_EQ(sizeof(Status), sizeof(void*));
}

TEST(Status, CopyKeepsTheFailure) {
  const Status failure(StatusCode::kCorrupt, "bad magic");
  const Status copy = failure;  // NOLINT(performance-*): the copy is what is tested
  EXPECT_EQ(copy.code(), StatusCode::kCorrupt);
  EXPECT_EQ(copy.message(), "bad magic");
  EXPECT_EQ(copy.with_context("model.gguf").message(), "model.gguf: bad magic");
}

TEST(Result, CarriesValueOrFailureThroughTheMacro) {
  EXPECT_EQ(quarter(8).value(), 2);
  EXPECT_EQ(quarter(7).status().message(), "7 is odd");
  EXPECT_EQ(quarter(6).status().message(), "3 is odd");
}

TEST(ResultDeathTest, ValueOfAFailureIsABug) {
  EXPECT_DEATH(std::ignore = half(3).value(), "CHECK failed");
}

}  // namespace
}  // namespace memdecay
