#include "sys/whole_file.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <string>
#include <thread>
#include <vector>

#include "sys/folder_for_test.h"

namespace memdecay {
namespace {

std::vector<std::string> names_in(const FolderForTest& folder) {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(folder.path()))
    names.push_back(entry.path().filename());
  return names;
}

TEST(WholeFile, GivesBackEveryByte) {
  const FolderForTest folder;
  std::string bytes(100'000, '\0');
  for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<char>(i * 31);
  for (const std::string& content : {std::string(), std::string("\n"), bytes}) {
    ASSERT_TRUE(replace_file(folder.path("a"), content).ok());
    EXPECT_EQ(read_file(folder.path("a")).value(), content);
    EXPECT_EQ(names_in(folder), std::vector<std::string>{"a"}) << "nothing is left beside it";
  }
}

TEST(WholeFile, SaysWhyItCannotBeRead) {
  const FolderForTest folder;
  const Status missing = read_file(folder.path("none")).status();
  EXPECT_EQ(missing.code(), StatusCode::kNotFound);
  EXPECT_EQ(missing.message(),
            "\"" + folder.path("none") + "\" cannot be read: No such file or directory");
  const Status directory = read_file(folder.path()).status();
  EXPECT_EQ(directory.code(), StatusCode::kIoError);
  EXPECT_EQ(directory.message(), "\"" + folder.path() + "\" cannot be read: Is a directory");
}

TEST(WholeFile, WhoReadsSeesTheOldFileOrTheNewOne) {
  const FolderForTest folder;
  const std::string path = folder.write("a", "old");
  std::ifstream reader(path);  // holds the old file open
  ASSERT_TRUE(replace_file(path, "new").ok());
  std::string seen;
  reader >> seen;
  EXPECT_EQ(seen, "old");
  EXPECT_EQ(read_file(path).value(), "new");
}

TEST(WholeFile, AFailureLeavesWhatWasThereAndNothingElse) {
  const FolderForTest folder;
  const Status nowhere = replace_file(folder.path("none/a"), "x");
  EXPECT_EQ(nowhere.code(), StatusCode::kIoError);
  EXPECT_EQ(nowhere.message(),
            "\"" + folder.path("none/a") + "\" cannot be written: No such file or directory");
  std::filesystem::create_directory(folder.path("b"));
  EXPECT_EQ(replace_file(folder.path("b"), "x").message(),
            "\"" + folder.path("b") + "\" cannot be written: Is a directory");
  EXPECT_EQ(names_in(folder), std::vector<std::string>{"b"});
}

TEST(WholeFile, WhatIsNoRegularFileIsWrittenIntoAndStays) {
  const FolderForTest folder;
  const std::string target = folder.write("target", "old");
  std::filesystem::create_symlink(target, folder.path("link"));
  ASSERT_TRUE(replace_file(folder.path("link"), "new").ok());
  EXPECT_TRUE(std::filesystem::is_symlink(folder.path("link")));
  EXPECT_EQ(read_file(target).value(), "new");

  ASSERT_EQ(::mkfifo(folder.path("pipe").c_str(), 0600), 0);
  std::thread writer([&] { EXPECT_TRUE(replace_file(folder.path("pipe"), "through").ok()); });
  EXPECT_EQ(read_file(folder.path("pipe")).value(), "through");
  writer.join();
  EXPECT_TRUE(std::filesystem::is_fifo(folder.path("pipe")));

  const Status full = replace_file("/dev/full", "x");
  EXPECT_EQ(full.message(), "\"/dev/full\" cannot be written: No space left on device");
}

TEST(WholeFile, MakesFoldersOnceAndAgain) {
  const FolderForTest folder;
  ASSERT_TRUE(make_folder(folder.path("a/b/c")).ok());
  EXPECT_TRUE(make_folder(folder.path("a/b/c")).ok());
  EXPECT_TRUE(std::filesystem::is_directory(folder.path("a/b/c")));
  folder.write("file", "");
  const Status failure = make_folder(folder.path("file/c"));
  EXPECT_EQ(failure.code(), StatusCode::kIoError);
  EXPECT_EQ(failure.message(),
            "the folder \"" + folder.path("file/c") + "\" cannot be made: Not a directory");
}

}  // namespace
}  // namespace memdecay
