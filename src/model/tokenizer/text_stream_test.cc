#include "model/tokenizer/text_stream.h"

#include <gtest/gtest.h>

#include "model/tokenizer/tiny_vocabulary.h"
#include "model/tokenizer/tokenizer.h"
#include "model/tokenizer/utf8.h"

namespace memdecay {
namespace {

class TextStreamTest : public testing::Test {
 protected:
  std::unique_ptr<Tokenizer> tokenizer_ = std::move(Tokenizer::create(tiny_bpe()).value());
  TextStream stream_{*tokenizer_};
};

TEST_F(TextStreamTest, HoldsBackAnUnfinishedCharacter) {
  EXPECT_EQ(stream_.append(0xF0), "");  // in the tiny vocabulary a byte is its own id
  EXPECT_EQ(stream_.append(0x9F), "");
  EXPECT_EQ(stream_.append(0x98), "");
  EXPECT_EQ(stream_.held_back(), "\xF0\x9F\x98");
  EXPECT_EQ(stream_.append(0x80), "😀");
  EXPECT_EQ(stream_.held_back(), "");
  EXPECT_EQ(stream_.flush(), "");
}

TEST_F(TextStreamTest, ReplacesWhatCannotBeCompleted) {
  EXPECT_EQ(stream_.append(0xE4), "");
  EXPECT_EQ(stream_.append('a'), "\uFFFDa");
  EXPECT_EQ(stream_.append_bytes("\xFF\xC0\x80x"), "\uFFFD\uFFFD\uFFFDx");
  EXPECT_EQ(stream_.append_bytes("\xED\xA0\x80"), "\uFFFD\uFFFD\uFFFD");  // a surrogate
  EXPECT_EQ(stream_.append_bytes("\xF4\x90\x80\x80"), "\uFFFD\uFFFD\uFFFD\uFFFD");
  EXPECT_EQ(stream_.append_bytes("\xF0\x9F\x98"
                                 "b"),
            "\uFFFDb");                                         // one maximal subpart
  EXPECT_EQ(stream_.append_bytes("\xE0\x80"), "\uFFFD\uFFFD");  // overlong
}

TEST_F(TextStreamTest, FlushReplacesTheRestOnce) {
  EXPECT_EQ(stream_.append_bytes("ok\xE4\xB8"), "ok");
  EXPECT_EQ(stream_.flush(), "\uFFFD");
  EXPECT_EQ(stream_.flush(), "");
  EXPECT_EQ(stream_.append('x'), "x");
}

TEST_F(TextStreamTest, ControlTokensAreSilentUnlessWanted) {
  EXPECT_EQ(stream_.append(tokenizer_->eos()), "");
  TextStream loud(*tokenizer_, true);
  EXPECT_EQ(loud.append(tokenizer_->eos()), "<|ab|>");
}

TEST_F(TextStreamTest, AnyCutGivesTheSameText) {
  const std::string bytes = "aé中😀\xFF\xE4\xB8z\xF0\x9F\xED\xA0\x80";
  const std::string whole = stream_.append_bytes(bytes) + stream_.flush();
  EXPECT_EQ(utf8_valid_prefix(whole), whole.size());
  for (std::size_t first = 0; first <= bytes.size(); ++first) {
    for (std::size_t second = first; second <= bytes.size(); ++second) {
      TextStream cut(*tokenizer_);
      std::string text = cut.append_bytes(bytes.substr(0, first));
      text += cut.append_bytes(bytes.substr(first, second - first));
      text += cut.append_bytes(bytes.substr(second));
      EXPECT_EQ(text + cut.flush(), whole);
    }
  }
}

}  // namespace
}  // namespace memdecay
