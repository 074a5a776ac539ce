#include "eval/perplexity/logits_file.h"

#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <random>

#include "core/log_softmax.h"
#include "sys/folder_for_test.h"
#include "sys/whole_file.h"

namespace memdecay {
namespace {

constexpr int kVocab = 11;
constexpr int kContext = 9;  // scores positions 4..7
constexpr int kChunks = 2;
constexpr std::size_t kRecordBytes = 2 * (12 + 4);

class LogitsFileTest : public testing::Test {
 protected:
  static LogitsFileHeader header() {
    LogitsFileHeader header;
    header.context = kContext;
    header.vocab_size = kVocab;
    header.chunks = kChunks;
    for (int i = 0; i < kContext * kChunks; ++i) header.tokens.push_back(i % kVocab);
    return header;
  }
  static std::vector<float> logits(int position) {
    std::vector<float> logits(kVocab);
    for (std::size_t i = 0; i < logits.size(); ++i)
      logits[i] = static_cast<float>((static_cast<int>(i) * 7 + position * 3) % 10);
    return logits;
  }
  std::string good_file() {
    auto writer = LogitsFileWriter::create(path_, header()).value();
    for (int i = 0; i < kChunks * header().scored_per_chunk(); ++i)
      EXPECT_TRUE(writer.append(logits(i)).ok());
    EXPECT_TRUE(writer.close().ok());
    return read_file(path_).value();
  }
  /// What open() and reading to the end say; the empty string when all is well.
  std::string verdict(const std::string& bytes) {
    folder_.write("logits", bytes);
    auto reader = LogitsFileReader::open(path_);
    if (!reader.ok()) return reader.status().message();
    std::vector<float> log_probs(static_cast<std::size_t>(reader->header().vocab_size));
    const int records = reader->header().chunks * reader->header().scored_per_chunk();
    for (int i = 0; i < records; ++i) {
      const Status status = reader->next(log_probs);
      if (!status.ok()) return status.message();
    }
    return "";
  }
  static std::string with_number(std::string bytes, std::size_t at, std::int32_t number) {
    std::memcpy(bytes.data() + at, &number, sizeof number);
    return bytes;
  }
  const FolderForTest folder_;
  const std::string path_ = folder_.path("logits");
};

TEST_F(LogitsFileTest, WhatIsWrittenIsRead) {
  const std::string bytes = good_file();
  EXPECT_EQ(bytes.size(), 20U + 4 * kContext * kChunks + kRecordBytes * 4 * kChunks);
  auto reader = LogitsFileReader::open(path_).value();
  EXPECT_EQ(reader.header().context, kContext);
  EXPECT_EQ(reader.header().vocab_size, kVocab);
  EXPECT_EQ(reader.header().chunks, kChunks);
  EXPECT_EQ(reader.header().tokens, header().tokens);
  EXPECT_EQ(reader.header().first_scored(), 4);
  EXPECT_EQ(reader.header().scored_per_chunk(), 4);
  std::vector<float> read(kVocab);
  std::vector<double> expected(kVocab);
  for (int i = 0; i < 4 * kChunks; ++i) {
    ASSERT_TRUE(reader.next(read).ok());
    log_softmax(logits(i), expected);
    for (std::size_t v = 0; v < kVocab; ++v) EXPECT_NEAR(read[v], expected[v], 1.3e-4);
  }
  EXPECT_EQ(reader.next(read).code(), StatusCode::kIoError) << "nothing comes after the last";
}

TEST_F(LogitsFileTest, EveryLengthButTheRightOneIsRefused) {
  const std::string bytes = good_file();
  EXPECT_EQ(verdict(bytes), "");
  for (std::size_t length = 0; length < bytes.size(); ++length)
    EXPECT_NE(verdict(bytes.substr(0, length)), "") << length;
  EXPECT_NE(verdict(bytes + 'x'), "");
  EXPECT_NE(verdict(bytes + std::string(kRecordBytes, 'x')), "");
}

TEST_F(LogitsFileTest, HugeCountsAllocateNothing) {
  const std::string bytes = good_file();
  for (const std::size_t at : {8U, 12U, 16U}) {
    for (const std::int32_t number : {0, -1, 3, 1 << 16, 0x7FFFFFFF, -0x7FFFFFFF - 1}) {
      const std::string said = verdict(with_number(bytes, at, number));
      EXPECT_NE(said, "") << "count at " << at << " is " << number;
      EXPECT_NE(said.find(path_), std::string::npos) << said;
    }
  }
}

TEST_F(LogitsFileTest, TokensAndNumbersThatCannotBeAreRefused) {
  const std::string bytes = good_file();
  EXPECT_NE(verdict("_logitz_" + bytes.substr(8)).find("_logits_"), std::string::npos);
  EXPECT_NE(verdict(with_number(bytes, 20, kVocab)).find("token 11"), std::string::npos);
  EXPECT_NE(verdict(with_number(bytes, 24, -1)).find("token -1"), std::string::npos);
  const std::size_t first_record = 20 + 4 * kContext * kChunks;
  const std::int32_t nan = 0x7FC00000, minus_one = -0x40800000;
  EXPECT_NE(verdict(with_number(bytes, first_record, nan)).find("scale"), std::string::npos);
  EXPECT_NE(verdict(with_number(bytes, first_record + 4, nan)).find("minimum"), std::string::npos);
  EXPECT_NE(verdict(with_number(bytes, first_record, minus_one)), "");
}

TEST_F(LogitsFileTest, RandomDamageIsReadOrRefusedInWords) {
  const std::string bytes = good_file();
  std::mt19937 random(5);
  for (int round = 0; round < 1500; ++round) {
    std::string damaged = bytes;
    const auto changes = 1 + random() % 4;
    for (std::size_t i = 0; i < changes; ++i) {
      // The header most of the time: behind it nearly every byte is a code, and any code is right.
      const std::size_t at = random() % (random() % 4 != 0 ? 100 : damaged.size());
      damaged[at] = static_cast<char>(random());
    }
    if (random() % 8 == 0) damaged.resize(random() % damaged.size());
    const std::string said = verdict(damaged);  // must neither crash nor take the file at its word
    EXPECT_TRUE(said.empty() || said.find(path_) != std::string::npos) << said;
  }
}

TEST_F(LogitsFileTest, PathsThatCannotBeReadOrWritten) {
  EXPECT_EQ(LogitsFileReader::open(path_ + ".none").status().code(), StatusCode::kNotFound);
  EXPECT_FALSE(LogitsFileReader::open(testing::TempDir()).ok());
  EXPECT_EQ(LogitsFileWriter::create(path_ + "/x", header()).status().code(), StatusCode::kIoError);
  EXPECT_FALSE(LogitsFileWriter::create(testing::TempDir(), header()).ok());
}

TEST_F(LogitsFileTest, AFullDiskIsTold) {
  if (!std::filesystem::exists("/dev/full")) GTEST_SKIP() << "this system has no /dev/full";
  auto writer = LogitsFileWriter::create("/dev/full", header());
  Status status = writer.ok() ? Status() : writer.status();
  for (int i = 0; status.ok() && i < 8; ++i) status = writer->append(logits(i));
  if (status.ok()) status = writer->close();
  EXPECT_EQ(status.code(), StatusCode::kIoError);
}

}  // namespace
}  // namespace memdecay
