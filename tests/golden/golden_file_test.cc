#include "golden_file.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>
#include <cstring>

#include "sys/folder_for_test.h"

namespace memdecay {
namespace {

// Writes a golden file of one chunk of three tokens over a vocabulary of four.
class FileOnDisk {
 public:
  explicit FileOnDisk(const std::string& content) : path_(folder_.write("a.golden", content)) {}
  const std::string& path() const { return path_; }

 private:
  const FolderForTest folder_;
  std::string path_;
};

template <typename T>
std::string bytes_of(std::initializer_list<T> values) {
  std::string out(values.size() * sizeof(T), '\0');
  std::memcpy(out.data(), values.begin(), out.size());
  return out;
}

// Position 1 lists ids 2 (0.5) and 0 (0.25); ids 1 and 3 share the rest of 0.25. The next token
// is 3.
std::string three_tokens() {
  return "MDGOLD1\n" + std::string(32, 'x') + bytes_of<std::uint32_t>({3, 4, 1, 1, 2}) +
         bytes_of<std::int32_t>({1, 2, 3}) + bytes_of<std::uint16_t>({2}) +
         bytes_of<float>({std::log(0.125F)}) + bytes_of<float>({std::log(0.25F)}) +
         bytes_of<std::uint32_t>({2, 0}) + bytes_of<float>({std::log(0.5F), std::log(0.25F)});
}

TEST(GoldenFile, KlCountsTheRestAsOneBucket) {
  const FileOnDisk file(three_tokens());
  const auto golden = GoldenFile::read(file.path());
  ASSERT_TRUE(golden.ok()) << golden.status().message();
  ASSERT_EQ(golden->scored_per_chunk(), 1);
  EXPECT_NEAR(golden->reference_perplexity(), 8.0, 1e-5);

  // The same buckets, split differently inside the rest, plus a constant: no divergence.
  const std::array<float, 4> same{std::log(0.25F) + 7, std::log(0.2F) + 7, std::log(0.5F) + 7,
                                  std::log(0.05F) + 7};
  const GoldenVerdict equal = golden->judge(0, 0, same);
  EXPECT_NEAR(equal.kl, 0.0, 1e-6);
  EXPECT_TRUE(equal.same_top);
  EXPECT_NEAR(equal.target_log_prob, std::log(0.05), 1e-6);

  const std::array<float, 4> uniform{0, 0, 0, 0};
  const GoldenVerdict flat = golden->judge(0, 0, uniform);
  const double expected = 0.5 * std::log(0.5 / 0.25) + 0.25 * std::log(0.25 / 0.5);
  EXPECT_NEAR(flat.kl, expected, 1e-6);
  EXPECT_FALSE(flat.same_top);
  EXPECT_NEAR(flat.largest_difference, std::log(2.0), 1e-6);
}

TEST(GoldenFile, EveryTruncationAndEveryWrongCountIsRefused) {
  const std::string whole = three_tokens();
  for (std::size_t length = 0; length < whole.size(); ++length) {
    const FileOnDisk file(whole.substr(0, length));
    EXPECT_FALSE(GoldenFile::read(file.path()).ok()) << length;
  }
  for (std::size_t at = 40; at < 60; at += 4) {
    std::string wrong = whole;
    wrong.replace(at, 4, "\xff\xff\xff\xff");
    const FileOnDisk file(wrong);
    EXPECT_FALSE(GoldenFile::read(file.path()).ok()) << at;
  }
  const FileOnDisk longer(whole + "x");
  EXPECT_FALSE(GoldenFile::read(longer.path()).ok());
  EXPECT_FALSE(GoldenFile::read("no/such/file").ok());
}

TEST(GoldenFile, EveryCommittedFileReads) {
  int files = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(MEMDECAY_GOLDEN_FOLDER)) {
    if (entry.path().extension() != ".golden") continue;
    const auto golden = GoldenFile::read(entry.path().string());
    ASSERT_TRUE(golden.ok()) << golden.status().message();
    EXPECT_GT(golden->reference_perplexity(), 1.0) << entry.path();
    ++files;
  }
  EXPECT_GE(files, 22);
}

TEST(GoldenSummary, QuantileInterpolatesBetweenSortedValues) {
  GoldenSummary summary;
  for (const double kl : {3.0, 1.0, 2.0, 10.0}) summary.add({kl, kl < 3, std::log(0.5), 0.25});
  EXPECT_DOUBLE_EQ(summary.mean_kl(), 4.0);
  EXPECT_DOUBLE_EQ(summary.kl_quantile(0.5), 2.5);
  EXPECT_DOUBLE_EQ(summary.kl_quantile(0.99), 3.0 + 0.97 * 7.0);
  EXPECT_DOUBLE_EQ(summary.kl_quantile(1.0), 10.0);
  EXPECT_DOUBLE_EQ(summary.same_top(), 0.5);
  EXPECT_NEAR(summary.perplexity(), 2.0, 1e-12);
}

}  // namespace
}  // namespace memdecay
