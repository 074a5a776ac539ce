#include "model/gguf/gguf_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "model/gguf/gguf_builder_for_test.h"
#include "sys/folder_for_test.h"

namespace memdecay {
namespace {

using testing::ElementsAre;
using testing::EndsWith;
using testing::HasSubstr;

std::string failure_of(const std::vector<std::byte>& bytes) {
  const auto file = GgufFile::from_bytes(bytes, "m.gguf");
  return file.ok() ? "ok" : file.status().message();
}

std::string failure_of(std::string text) {
  const auto bytes = std::as_bytes(std::span(text));
  return failure_of(std::vector<std::byte>(bytes.begin(), bytes.end()));
}

GgufBuilder typical() {
  GgufBuilder builder;
  builder.add("general.architecture", "llama")
      .add("a.u8", std::uint8_t{200})
      .add("a.i8", std::int8_t{-3})
      .add("a.u32", std::uint32_t{4000000000})
      .add("a.i64", std::int64_t{-5000000000})
      .add("a.u64", std::uint64_t{1} << 63)
      .add("a.f32", 1.5F)
      .add("a.f64", 0.1)
      .add("a.yes", true)
      .add_strings("a.words", {"alpha", "", "gamma"})
      .add_array<std::int32_t>("a.numbers", {-1, 0, 7})
      .add_array<float>("a.scores", {0.5F, -2.0F})
      .add_tensor("token_embd.weight", {64, 3}, WeightType::kQ8_0)
      .add_tensor("output_norm.weight", {7})
      .add_raw_tensor("odd.weight", {256, 2}, 17, 148);
  return builder;
}

class GgufFileTest : public testing::Test {
 protected:
  void SetUp() override {
    bytes_ = typical().build();
    auto file = GgufFile::from_bytes(bytes_, "m.gguf");
    ASSERT_TRUE(file.ok()) << file.status().message();
    file_.emplace(std::move(file).value());
  }
  std::vector<std::byte> bytes_;
  std::optional<GgufFile> file_;
};

TEST_F(GgufFileTest, ConvertsIntegersExactlyOrNotAtAll) {
  EXPECT_EQ(file_->required<int>("a.u8").value(), 200);
  EXPECT_EQ(file_->required<std::int64_t>("a.u32").value(), 4000000000);
  EXPECT_EQ(file_->required<int>("a.i8").value(), -3);
  EXPECT_EQ(file_->required<std::uint64_t>("a.u64").value(), std::uint64_t{1} << 63);
  EXPECT_EQ(file_->required<std::int64_t>("a.i64").value(), -5000000000);
  EXPECT_EQ(file_->required<std::int32_t>("a.u32").status().message(),
            "m.gguf: the value of a.u32: the value 4000000000 is out of range");
  EXPECT_FALSE(file_->required<unsigned>("a.i8").ok());
  EXPECT_FALSE(file_->required<std::int8_t>("a.u8").ok());
  EXPECT_FALSE(file_->required<std::int64_t>("a.u64").ok());
}

TEST_F(GgufFileTest, ConvertsNothingElse) {
  EXPECT_EQ(file_->required<float>("a.f32").value(), 1.5F);
  EXPECT_EQ(file_->required<double>("a.f32").value(), 1.5);
  EXPECT_EQ(file_->required<float>("a.f64").value(), 0.1F);
  EXPECT_EQ(file_->required<bool>("a.yes").value(), true);
  EXPECT_EQ(file_->required<std::string_view>("general.architecture").value(), "llama");
  EXPECT_EQ(file_->required<int>("a.f32").status().message(),
            "m.gguf: the value of a.f32: it has type float32 where an integer belongs");
  EXPECT_FALSE(file_->required<float>("a.u8").ok());
  EXPECT_FALSE(file_->required<int>("a.yes").ok());
  EXPECT_FALSE(file_->required<bool>("a.u8").ok());
  EXPECT_FALSE(file_->required<std::string_view>("a.words").ok());
  EXPECT_FALSE(file_->required<GgufArray>("general.architecture").ok());
}

TEST_F(GgufFileTest, TellsMissingFromWrong) {
  EXPECT_EQ(file_->required<int>("a.none").status().message(), "m.gguf: the key a.none is missing");
  EXPECT_EQ(file_->optional<int>("a.none").value(), std::nullopt);
  EXPECT_EQ(file_->optional<int>("a.u8").value(), 200);
  EXPECT_FALSE(file_->optional<int>("a.f32").ok());
  EXPECT_EQ(file_->find("a"), std::nullopt);
  EXPECT_EQ(file_->find("a.yess"), std::nullopt);
}

TEST_F(GgufFileTest, ArraysAreViewsIntoTheFile) {
  const auto words = file_->strings("a.words").value();
  EXPECT_EQ(words.size(), 3U);
  EXPECT_THAT(std::vector<std::string_view>(words.begin(), words.end()),
              ElementsAre("alpha", "", "gamma"));
  const auto* const first = reinterpret_cast<const std::byte*>((*words.begin()).data());
  EXPECT_TRUE(first > bytes_.data() && first < bytes_.data() + bytes_.size());
  const auto numbers = file_->numbers<int>("a.numbers").value();
  ASSERT_EQ(numbers.size(), 3U);
  EXPECT_EQ(numbers[0], -1);
  EXPECT_EQ(numbers[2], 7);
  EXPECT_EQ(file_->numbers<float>("a.scores").value()[1], -2.0F);
  EXPECT_EQ(file_->numbers<unsigned>("a.numbers").status().message(),
            "m.gguf: the value of a.numbers: the value -1 is out of range");
  EXPECT_FALSE(file_->numbers<float>("a.numbers").ok());
  EXPECT_FALSE(file_->strings("a.numbers").ok());
  EXPECT_FALSE(file_->numbers<int>("a.words").ok());
}

TEST_F(GgufFileTest, ListsMetadataInTheFilesOrder) {
  ASSERT_EQ(file_->metadata_count(), 12U);
  EXPECT_EQ(file_->key(0), "general.architecture");
  EXPECT_EQ(file_->value(0).describe(), "\"llama\"");
  EXPECT_EQ(file_->key(11), "a.scores");
  EXPECT_EQ(file_->value(11).describe(), "[0.5, -2]");
  EXPECT_EQ(file_->find("a.i8")->describe(), "-3");
  EXPECT_EQ(file_->find("a.words")->describe(), "[\"alpha\", \"\", \"gamma\"]");
}

TEST_F(GgufFileTest, GivesTensorsWithTheirBytes) {
  ASSERT_EQ(file_->tensor_count(), 3U);
  const auto embedding = file_->readable_tensor("token_embd.weight").value();
  EXPECT_EQ(embedding.type, WeightType::kQ8_0);
  EXPECT_EQ(embedding.row_values(), 64);
  EXPECT_EQ(embedding.rows(), 3);
  EXPECT_EQ(embedding.bytes.size(), 3U * 2 * 34);
  EXPECT_EQ(embedding.file_offset, file_->data_offset());
  EXPECT_EQ(embedding.shape_text(), "[64, 3]");
  const auto norm = file_->readable_tensor("output_norm.weight").value();
  EXPECT_EQ(norm.bytes.data(), bytes_.data() + file_->data_offset() + 224);
  EXPECT_EQ(norm.bytes.size(), 28U);
  EXPECT_EQ(norm.shape_text(), "[7]");
}

TEST_F(GgufFileTest, NamesWhatIsMissing) {
  EXPECT_EQ(file_->readable_tensor("output.weight").status().message(),
            "m.gguf: the tensor output.weight is missing");
  const auto failure = file_->readable_tensor("odd.weight").status();
  EXPECT_EQ(failure.code(), StatusCode::kUnsupported);
  EXPECT_EQ(failure.message(),
            "m.gguf: the tensor odd.weight has type IQ2_XS, which this build cannot read");
  EXPECT_TRUE(file_->find_tensor("odd.weight")->bytes.empty());
}

TEST(GgufFile, ReadsVersionTwoAndOtherAlignments) {
  GgufBuilder builder = typical();
  builder.version = 2;
  builder.alignment = 4096;
  builder.add("general.alignment", std::uint32_t{4096});
  const auto bytes = builder.build();
  const auto file = GgufFile::from_bytes(bytes, "m");
  ASSERT_TRUE(file.ok()) << file.status().message();
  EXPECT_EQ(file->version(), 2U);
  EXPECT_EQ(file->data_offset() % 4096, 0U);
  EXPECT_EQ(file->find_tensor("output_norm.weight")->file_offset, file->data_offset() + 4096);
}

TEST(GgufFile, ReadsAFileWithoutTensorsOrKeys) {
  EXPECT_EQ(failure_of(GgufBuilder().build()), "ok");
  auto bytes = GgufBuilder().build();
  bytes.resize(24);  // no padding behind the header
  EXPECT_EQ(failure_of(bytes), "ok");
}

TEST(GgufFile, ReadsNestedArraysToASmallDepth) {
  const auto nested = [](int depth) {
    std::string value = GgufBuilder::array_head(4, 1) + GgufBuilder::little_endian(77U);
    for (int i = 1; i < depth; ++i) value = GgufBuilder::array_head(9, 1) + value;
    return GgufBuilder().add_raw("deep", 9, value).build();
  };
  const auto bytes = nested(4);
  const auto file = GgufFile::from_bytes(bytes, "m");
  ASSERT_TRUE(file.ok()) << file.status().message();
  GgufArray array = file->required<GgufArray>("deep").value();
  for (int i = 1; i < 4; ++i) array = array.element(0).as<GgufArray>().value();
  EXPECT_EQ(array.element(0).as<int>().value(), 77);
  EXPECT_EQ(failure_of(nested(5)), "m.gguf: the value of deep: arrays are nested more than 4 deep");
}

TEST(GgufFile, RecognisesOtherFiles) {
  EXPECT_THAT(failure_of("PK\x03\x04 and more"), HasSubstr("PyTorch checkpoint"));
  EXPECT_THAT(failure_of("\x80\x02}q"), HasSubstr("pickle"));
  EXPECT_THAT(failure_of(std::string("\x10\0\0\0\0\0\0\0{\"a\":1}", 15)), HasSubstr("safetensors"));
  EXPECT_THAT(failure_of("<!DOCTYPE html>"), HasSubstr("web page"));
  EXPECT_THAT(failure_of("version https://git-lfs.github.com/spec/v1"), HasSubstr("Git LFS"));
  EXPECT_EQ(failure_of("hello"),
            "m.gguf: this is not a GGUF file: it does not begin with the letters GGUF");
  EXPECT_EQ(failure_of(""),
            "m.gguf: this is not a GGUF file: it does not begin with the letters GGUF");
}

TEST(GgufFile, RefusesOtherVersionsAndSplitFiles) {
  const auto of_version = [](std::uint32_t version) {
    GgufBuilder builder;
    builder.version = version;
    return failure_of(builder.build());
  };
  EXPECT_THAT(of_version(1), EndsWith("of version 1; this build reads versions 2 and 3"));
  EXPECT_THAT(of_version(4), HasSubstr("of version 4"));
  EXPECT_THAT(of_version(0x03000000), HasSubstr("big-endian"));
  EXPECT_THAT(failure_of(GgufBuilder().add("split.count", std::uint16_t{3}).build()),
              HasSubstr("one of 3 parts of a split model"));
  EXPECT_EQ(failure_of(GgufBuilder().add("split.count", std::uint16_t{1}).build()), "ok");
}

TEST(GgufFile, OpensThroughTheFileSystem) {
  const FolderForTest folder;
  const auto bytes = typical().build();
  const std::string path =
      folder.write("a.gguf", {reinterpret_cast<const char*>(bytes.data()), bytes.size()});
  auto file = GgufFile::open(path);
  ASSERT_TRUE(file.ok()) << file.status().message();
  const GgufFile moved = std::move(file).value();
  EXPECT_EQ(moved.required<int>("a.u8").value(), 200);
  ASSERT_NE(moved.mapping(), nullptr);
  EXPECT_EQ(moved.mapping()->path(), path);
  EXPECT_EQ(moved.find_tensor("output_norm.weight")->bytes.size(), 28U);
  EXPECT_EQ(GgufFile::open(path + ".no").status().message(), "there is no file " + path + ".no");
}

TEST(GgufText, QuotesWhatCannotBeShown) {
  EXPECT_EQ(quote_gguf_text("a\nb\x01"), R"("a\nb\x01")");
  EXPECT_EQ(quote_gguf_text("d\xc3\xa9j\xc3\xa0"), "\"d\xc3\xa9j\xc3\xa0\"");
  EXPECT_EQ(quote_gguf_text("\xff\xc3"), R"("\xff\xc3")");
  EXPECT_EQ(quote_gguf_text("\xed\xa0\x80"), R"("\xed\xa0\x80")");  // a surrogate
  EXPECT_EQ(quote_gguf_text("abcdef", 3), "\"abc...\"");
  EXPECT_EQ(quote_gguf_text("abc", 3), "\"abc\"");
}

}  // namespace
}  // namespace memdecay
