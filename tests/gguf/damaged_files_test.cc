// Each damaged file gives one sentence, crashes nothing and allocates no more than the file is
// long.
#include "damaged_files.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <random>
#include <string>

#include "allocation_meter.h"
#include "model/gguf/model_tensors.h"
#include "model/gguf/tiny_model_for_test.h"
#include "sys/folder_for_test.h"

namespace memdecay {
namespace {

/// For the text of a sentence and its context, while it is passed from hand to hand.
constexpr std::size_t kSentenceBytes = 2048;

/// Reads all that a program would read of a model file.
Status use_whole(const Result<GgufFile>& file) {
  if (!file.ok()) return file.status();
  std::size_t seen = 0;
  for (std::size_t i = 0; i < file->metadata_count(); ++i) {
    const GgufValue value = file->value(i);
    seen += file->key(i).size() + value.describe(40).size();
    if (value.type() != GgufValueType::kArray) continue;
    const GgufArray array = value.as<GgufArray>().value();
    if (const auto strings = array.strings(); strings.ok())
      for (const std::string_view text : *strings) seen += text.size();
    if (const auto numbers = array.numbers<std::int64_t>(); numbers.ok())
      for (std::size_t n = 0; n < numbers->size(); ++n) seen += (*numbers)[n] != 0 ? 1U : 0U;
  }
  MEMDECAY_ASSIGN_OR_RETURN(const ModelConfig config, ModelConfig::read(*file));
  MEMDECAY_ASSIGN_OR_RETURN(const ModelTensors tensors, ModelTensors::find(*file, config));
  for (int layer = 0; layer < config.layers; ++layer)
    for (const std::byte byte : tensors.layer(layer).down.bytes)
      seen += std::to_integer<std::size_t>(byte);
  return seen > 0 ? Status() : Status(StatusCode::kCorrupt, "there is nothing in this file");
}

void expect_one_sentence(const Status& status, const std::string& how) {
  ASSERT_FALSE(status.ok()) << how << " was accepted";
  const std::string& sentence = status.message();
  EXPECT_GE(std::count(sentence.begin(), sentence.end(), ' '), 2) << how << ": " << sentence;
  EXPECT_LT(sentence.size(), 400U) << how;
  EXPECT_NE(sentence.back(), '.') << how << ": " << sentence;
  EXPECT_TRUE(
      std::none_of(sentence.begin(), sentence.end(),
                   [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == '\x7F'; }))
      << how << ": " << sentence;
}

struct Cost {
  std::size_t largest, peak;
};

template <typename Open>
Status measured(const Open& open, Cost& cost) {
  AllocationMeter meter;
  Status status = use_whole(open());
  cost = {meter.largest_bytes(), meter.peak_bytes()};
  return status;
}

void expect_cheap(const Cost& cost, std::size_t file_bytes, const std::string& how) {
  EXPECT_LE(cost.largest, std::max(file_bytes, kSentenceBytes / 4)) << how;
  EXPECT_LE(cost.peak, file_bytes + kSentenceBytes) << how;
}

class DamagedFiles : public testing::Test {
 protected:
  /// Each once from memory, so that a sanitizer sees the first byte beyond, and once through a
  /// file.
  void check(const std::vector<DamagedFile>& files, std::size_t at_least) {
    EXPECT_GE(files.size(), at_least);
    const FolderForTest folder;
    for (const DamagedFile& file : files) {
      SCOPED_TRACE(file.how);
      Cost cost{};
      const auto from_memory = [&] { return GgufFile::from_bytes(file.bytes, "m.gguf"); };
      expect_one_sentence(measured(from_memory, cost), file.how);
      expect_cheap(cost, file.bytes.size(), file.how);
      const std::string path = folder.write(
          "damaged.gguf", {reinterpret_cast<const char*>(file.bytes.data()), file.bytes.size()});
      expect_one_sentence(measured([&] { return GgufFile::open(path); }, cost), file.how);
      expect_cheap(cost, file.bytes.size(), file.how);
    }
    RecordProperty("damaged_files", static_cast<int>(files.size()));
    std::printf("%zu damaged files, a sentence each\n", files.size());
  }
};

TEST_F(DamagedFiles, Truncated) {
  check(truncated_files(), 100);
}
TEST_F(DamagedFiles, WithALie) {
  check(files_with_a_lie(), 200);
}
TEST_F(DamagedFiles, WithBadMetadata) {
  check(files_with_bad_metadata(), 100);
}
TEST_F(DamagedFiles, WithBadTensors) {
  check(files_with_bad_tensors(), 80);
}

// Flipped bytes may leave a file that can be read; what counts is that nothing worse happens.
TEST_F(DamagedFiles, WithFlippedBytes) {
  std::mt19937 random(7);
  for (const char* architecture : {"llama", "qwen2", "qwen3", "gemma3"}) {
    GgufBuilder builder = tiny_model(architecture);
    const std::vector<std::byte> right = builder.build();
    const std::size_t header = builder.places().back().offset;
    for (int round = 0; round < 500; ++round) {
      std::vector<std::byte> bytes = right;
      for (int flips = 1 + round % 3; flips > 0; --flips)
        bytes[random() % header] = static_cast<std::byte>(random());
      Cost cost{};
      const auto from_memory = [&] { return GgufFile::from_bytes(bytes, "m.gguf"); };
      static_cast<void>(measured(from_memory, cost));
      expect_cheap(cost, bytes.size(), architecture + std::to_string(round));
    }
  }
}

TEST(GgufCost, TheMeterCounts) {
  AllocationMeter meter;
  // Called by name: a compiler may leave out a new-expression that nobody looks at.
  ::operator delete(::operator new(100000));
  ::operator delete(::operator new(50000));
  EXPECT_EQ(meter.largest_bytes(), 100000U);
  EXPECT_GE(meter.peak_bytes(), 100000U);
  EXPECT_LT(meter.peak_bytes(), 150000U);
}

// A file whose entries are as small as entries can be costs the most directory per byte.
TEST(GgufCost, DirectoryIsSmallerThanTheFile) {
  GgufBuilder builder;
  for (int i = 0; i < 20000; ++i)
    builder.add_again(
        std::string{static_cast<char>('!' + i % 90), static_cast<char>('!' + i / 90 % 90),
                    static_cast<char>('!' + i / 8100)},
        0, "x");
  const auto bytes = builder.build();
  AllocationMeter meter;
  const auto file = GgufFile::from_bytes(bytes, "m");
  ASSERT_TRUE(file.ok()) << file.status().message();
  EXPECT_EQ(file->metadata_count(), 20000U);
  EXPECT_LE(meter.peak_bytes(), bytes.size());
}

TEST(GgufCost, RightFilesAreAccepted) {
  for (const char* architecture : {"llama", "qwen2", "qwen3", "gemma3"}) {
    const auto bytes = tiny_model(architecture).build();
    Cost cost{};
    const Status status = measured([&] { return GgufFile::from_bytes(bytes, "m"); }, cost);
    EXPECT_TRUE(status.ok()) << status.message();
    expect_cheap(cost, bytes.size(), architecture);
  }
}

}  // namespace
}  // namespace memdecay
