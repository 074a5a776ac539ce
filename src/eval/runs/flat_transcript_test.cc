#include "eval/runs/flat_transcript.h"

#include <gtest/gtest.h>

namespace memdecay {
namespace {

using nlohmann::ordered_json;

ordered_json conversation() {
  return ordered_json::parse(R"([
    {"role": "system", "content": "Be brief."},
    {"role": "user", "content": "Book it"},
    {"role": "assistant", "content": "", "tool_calls": [
      {"type": "function", "function": {"name": "book", "arguments": {"id": 7}}}]},
    {"role": "tool", "content": "ok"},
    {"role": "assistant", "content": "Done.", "reasoning_content": "hm"}])");
}

std::string text_of(const Transcript& transcript, std::size_t piece) {
  const TranscriptPiece& own = transcript.pieces[piece];
  return transcript.text.substr(own.begin, own.end - own.begin);
}

TEST(FlatTranscriptTest, WritesTheThreeStyles) {
  constexpr std::size_t kAll = 10'000;
  EXPECT_EQ(flat_transcript(conversation(), TranscriptStyle::kBare, kAll).text,
            "Be brief.\n\nBook it\n\n\n{\"name\":\"book\",\"arguments\":{\"id\":7}}\n\nok\n\n"
            "hm\nDone.\n\n");
  EXPECT_EQ(flat_transcript(conversation(), TranscriptStyle::kHeadings, kAll).text,
            "System: Be brief.\n\nUser: Book it\n\nAssistant: \n"
            "{\"name\":\"book\",\"arguments\":{\"id\":7}}\n\nTool: ok\n\nAssistant: hm\nDone.\n\n");
  EXPECT_EQ(flat_transcript(conversation(), TranscriptStyle::kMarkers, kAll).text,
            "<|im_start|>system\nBe brief.<|im_end|>\n<|im_start|>user\nBook it<|im_end|>\n"
            "<|im_start|>assistant\n\n{\"name\":\"book\",\"arguments\":{\"id\":7}}<|im_end|>\n"
            "<|im_start|>tool\nok<|im_end|>\n<|im_start|>assistant\nhm\nDone.<|im_end|>\n");
}

TEST(FlatTranscriptTest, PiecesCoverTheTextAndKnowWhoSpeaks) {
  for (const TranscriptStyle style : kTranscriptStyles) {
    const Transcript transcript = flat_transcript(conversation(), style, 10'000);
    std::size_t at = 0;
    for (const TranscriptPiece& piece : transcript.pieces) {
      EXPECT_EQ(piece.begin, at);
      EXPECT_GT(piece.end, piece.begin);
      at = piece.end;
    }
    EXPECT_EQ(at, transcript.text.size());
  }
  const Transcript bare = flat_transcript(conversation(), TranscriptStyle::kBare, 10'000);
  ASSERT_EQ(bare.pieces.size(), 6U);
  EXPECT_EQ(bare.pieces[2].role, Role::kAssistant);
  EXPECT_EQ(bare.pieces[2].part, Part::kToolCall);
  EXPECT_EQ(bare.pieces[3].part, Part::kToolResult);
  EXPECT_EQ(bare.pieces[3].message, 3);
  EXPECT_EQ(bare.pieces[4].part, Part::kReasoning);
  EXPECT_EQ(text_of(bare, 4), "hm\n");
  EXPECT_EQ(text_of(bare, 5), "Done.\n\n");
}

TEST(FlatTranscriptTest, EndsBeforeTheMessageThatIsTooMuch) {
  EXPECT_EQ(flat_transcript(conversation(), TranscriptStyle::kBare, 1).text,
            "Be brief.\n\nBook it\n\n");
  EXPECT_EQ(flat_transcript(ordered_json::array(), TranscriptStyle::kBare, 1).text, "");
}

}  // namespace
}  // namespace memdecay
