#include "sys/user_folders.h"

#include <gtest/gtest.h>

#include <cstdlib>

namespace memdecay {
namespace {

std::string folder(const char* memdecay_cache, const char* xdg_cache_home, const char* home) {
  return cache_folder_of({memdecay_cache, xdg_cache_home, home}).value().string();
}

TEST(UserFolders, TheMostSpecificVariableWins) {
  EXPECT_EQ(folder("/a", "/b", "/c"), "/a");
  EXPECT_EQ(folder(nullptr, "/b", "/c"), "/b/memdecay");
  EXPECT_EQ(folder(nullptr, nullptr, "/c"), "/c/.cache/memdecay");
}

TEST(UserFolders, EmptyCountsAsUnsetAndRelativeXdgIsIgnored) {
  EXPECT_EQ(folder("", "", "/c"), "/c/.cache/memdecay");
  EXPECT_EQ(folder(nullptr, "relative/cache", "/c"), "/c/.cache/memdecay");
  EXPECT_EQ(folder("own folder", "/b", "/c"), "own folder");
}

TEST(UserFolders, NothingSetIsASentence) {
  const auto result = cache_folder_of({});
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.status().code(), StatusCode::kNotFound);
}

TEST(UserFolders, WithoutHomeThePasswordDatabaseAnswers) {
  const char* home = std::getenv("HOME");
  const std::string before = home == nullptr ? "" : home;
  unsetenv("HOME");
  EXPECT_TRUE(cache_folder().ok());
  if (home != nullptr) setenv("HOME", before.c_str(), 1);
}

TEST(UserFolders, AModelLiesUnderItsName) {
  const auto cache = cache_folder();
  ASSERT_TRUE(cache.ok());
  EXPECT_EQ(cached_model_path("qwen-0.5b").value(), *cache / "models" / "qwen-0.5b.gguf");
}

TEST(UserFoldersDeathTest, APathIsNoModelName) {
  EXPECT_DEATH(std::ignore = cached_model_path("../x"), "CHECK failed");
}

}  // namespace
}  // namespace memdecay
