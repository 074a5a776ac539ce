#include "sys/mapped_file.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <string>

#include "sys/folder_for_test.h"

namespace memdecay {
namespace {

class MappedFileTest : public testing::Test {
 protected:
  std::string path(const std::string& name) const { return folder_.path(name); }
  std::string write(const std::string& name, const std::string& content) const {
    return folder_.write(name, content);
  }

  const FolderForTest folder_;
};

std::string text(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

/// Pages of files that are resident in this process.
std::size_t resident_file_pages() {
  std::ifstream statm("/proc/self/statm");
  std::size_t size = 0, resident = 0, shared = 0;
  statm >> size >> resident >> shared;
  return shared;
}

TEST_F(MappedFileTest, GivesTheBytesOfTheFile) {
  std::string content(12345, '\0');
  for (std::size_t i = 0; i < content.size(); ++i) content[i] = static_cast<char>(i * 7);
  const auto file = MappedFile::open(write("a", content));
  ASSERT_TRUE(file.ok()) << file.status().message();
  EXPECT_EQ(text(file->bytes()), content);
  EXPECT_EQ(file->path(), path("a"));
}

TEST_F(MappedFileTest, OneByteIsAFile) {
  const auto file = MappedFile::open(write("one", "x"));
  ASSERT_TRUE(file.ok());
  file->drop(file->bytes());
  EXPECT_EQ(text(file->bytes()), "x");
}

TEST_F(MappedFileTest, SaysWhatIsWrong) {
  auto failure = MappedFile::open(path("missing")).status();
  EXPECT_EQ(failure.code(), StatusCode::kNotFound);
  EXPECT_EQ(failure.message(), "there is no file " + path("missing"));

  failure = MappedFile::open(folder_.path()).status();
  EXPECT_EQ(failure.code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(failure.message(), folder_.path() + " is a directory, not a file");

  failure = MappedFile::open(write("empty", "")).status();
  EXPECT_EQ(failure.code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(failure.message(), path("empty") + " is empty");

  ASSERT_EQ(::mkfifo(path("pipe").c_str(), 0600), 0);
  failure = MappedFile::open(path("pipe")).status();
  EXPECT_EQ(failure.message(), path("pipe") + " is not a regular file");
}

TEST_F(MappedFileTest, SaysWhenItMayNotRead) {
  if (::geteuid() == 0) GTEST_SKIP() << "root may read everything";
  ASSERT_EQ(::chmod(write("secret", "x").c_str(), 0), 0);
  const auto failure = MappedFile::open(path("secret")).status();
  EXPECT_EQ(failure.code(), StatusCode::kIoError);
  EXPECT_EQ(failure.message(), "cannot open " + path("secret") + ": Permission denied");
}

TEST_F(MappedFileTest, MovesItsMapping) {
  auto first = MappedFile::open(write("a", "first"));
  auto second = MappedFile::open(write("b", "second"));
  ASSERT_TRUE(first.ok() && second.ok());
  MappedFile moved = std::move(*first);
  EXPECT_EQ(text(moved.bytes()), "first");
  EXPECT_TRUE(first->bytes().empty());
  moved = std::move(*second);
  EXPECT_EQ(text(moved.bytes()), "second");
}

TEST_F(MappedFileTest, DropLowersResidenceAndKeepsTheBytes) {
  const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  const std::size_t pages = 4096;
  const auto file = MappedFile::open(write("big", std::string(pages * page, 'q')));
  ASSERT_TRUE(file.ok());
  file->advise_sequential();
  const auto count_q = [&] {
    return std::count(file->bytes().begin(), file->bytes().end(), std::byte{'q'});
  };
  ASSERT_EQ(count_q(), static_cast<std::ptrdiff_t>(pages * page));
  const std::size_t touched = resident_file_pages();
  // Unaligned at both ends: only whole pages go.
  file->drop(file->bytes().subspan(5, (pages - 1) * page));
  EXPECT_LT(resident_file_pages() + pages / 2, touched);
  EXPECT_EQ(count_q(), static_cast<std::ptrdiff_t>(pages * page));
}

}  // namespace
}  // namespace memdecay
