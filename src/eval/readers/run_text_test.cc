#include "eval/readers/run_text.h"

#include <gtest/gtest.h>
#include <zlib.h>

#include <vector>

namespace memdecay {
namespace {

std::span<const std::byte> bytes_of(const std::string& text) {
  return {reinterpret_cast<const std::byte*>(text.data()), text.size()};
}

std::string gzip_of(std::string text) {
  z_stream stream = {};
  EXPECT_EQ(deflateInit2(&stream, 6, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY), Z_OK);
  std::string packed(deflateBound(&stream, text.size()) + 64, '\0');
  stream.next_in = reinterpret_cast<Bytef*>(text.data());
  stream.avail_in = static_cast<uInt>(text.size());
  stream.next_out = reinterpret_cast<Bytef*>(packed.data());
  stream.avail_out = static_cast<uInt>(packed.size());
  EXPECT_EQ(deflate(&stream, Z_FINISH), Z_STREAM_END);
  packed.resize(stream.total_out);
  deflateEnd(&stream);
  return packed;
}

std::string unpacked(const std::string& bytes, std::size_t max_bytes = kLargestRunBytes) {
  const Result<std::string> text = unpack_run_text(bytes_of(bytes), "f.gz", max_bytes);
  return text.ok() ? *text : "failure: " + text.status().message();
}

TEST(RunText, PlainTextIsItself) {
  EXPECT_EQ(unpacked("{}"), "{}");
  EXPECT_EQ(unpacked(""), "");
}

TEST(RunText, GzipOfOneOrSeveralMembersIsUnpacked) {
  std::string text;
  for (int i = 0; i < 50'000; ++i) text += std::to_string(i);
  EXPECT_EQ(unpacked(gzip_of(text)), text);
  EXPECT_EQ(unpacked(gzip_of("first ") + gzip_of("second")), "first second");
  EXPECT_EQ(unpacked(gzip_of("")), "");
}

TEST(RunText, DamagedArchivesAreRefused) {
  const std::string packed = gzip_of(std::string(1000, 'a') + "b");
  for (const std::size_t size :
       {std::size_t{2}, std::size_t{9}, std::size_t{12}, packed.size() - 1})
    EXPECT_EQ(unpacked(packed.substr(0, size)), "failure: f.gz: the gzip archive ends too early");
  std::string flipped = packed;
  flipped[flipped.size() - 6] = static_cast<char>(flipped[flipped.size() - 6] ^ 1);  // the checksum
  EXPECT_EQ(unpacked(flipped), "failure: f.gz: the gzip archive is damaged after 1001 bytes");
}

TEST(RunText, SmallArchivesCannotFillTheMachine) {
  EXPECT_EQ(unpacked(gzip_of(std::string(1 << 20, 'a')), 1000),
            "failure: f.gz holds more than 1000 bytes of text");
  EXPECT_EQ(unpacked("12345", 4), "failure: f.gz holds more than 4 bytes of text");
  EXPECT_EQ(unpacked("1234", 4), "1234");
}

}  // namespace
}  // namespace memdecay
