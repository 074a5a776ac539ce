#include "eval/runs/message_tokens.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <numeric>

#include "eval/metrics/action_values.h"
#include "eval/runs/template_fit.h"
#include "sys/user_folders.h"

namespace memdecay {
namespace {

using nlohmann::ordered_json;

TEST(MessageTokens, ExtentsCoverTheTextByMessage) {
  Prompt prompt;
  prompt.text = "abcdefghij";
  prompt.tokens = {1, 2, 3, 4, 5};
  const auto of = [](std::int32_t message) {
    return Origin{message < 0 ? PromptPart::kMarkup : PromptPart::kContent, message};
  };
  prompt.origins = {of(-1), of(0), of(2), of(-1), of(2)};
  prompt.token_ends = {0, 4, 6, 9, 10};
  const std::vector<MessageExtent> extents = message_extents(prompt, 3);
  ASSERT_EQ(extents.size(), 3U);
  const auto expect = [](const MessageExtent& extent, int token, int end_token, unsigned byte,
                         unsigned end_byte) {
    EXPECT_EQ(extent.first_token, token);
    EXPECT_EQ(extent.end_token, end_token);
    EXPECT_EQ(extent.first_byte, byte);
    EXPECT_EQ(extent.end_byte, end_byte);
  };
  expect(extents[0], 0, 2, 0, 4);
  expect(extents[1], 2, 2, 4, 4);  // left no text
  expect(extents[2], 2, 5, 4, 10);
}

ordered_json conversation() {
  return ordered_json::parse(R"({"messages": [
    {"role": "system", "content": "You book flights."},
    {"role": "user", "content": "I am mia_li_3668 – café."},
    {"role": "assistant", "content": "Let me see.", "tool_calls": [{"type": "function",
      "function": {"name": "get_user", "arguments": {"user_id": "mia_li_3668", "n": [1, 2]}}}]},
    {"role": "tool", "content": "{\"city\": \"Rome\"}"}]})");
}

TEST(TemplateFit, CallsAsTextLookAsModelsWereTrainedToWriteThem) {
  EXPECT_EQ(with_calls_as_text(conversation()).at("messages")[2].dump(),
            ordered_json({{"role", "assistant"},
                          {"content",
                           "Let me see.\n<tool_call>\n{\"name\": \"get_user\", "
                           "\"arguments\": {\"user_id\": \"mia_li_3668\", \"n\": [1, "
                           "2]}}\n</tool_call>"}})
                .dump());
}

/// With the models of the user's cache, where they are.
class RealModel : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    const Result<std::filesystem::path> path = cached_model_path(GetParam());
    if (!path.ok() || !std::filesystem::exists(*path)) GTEST_SKIP() << "the model is not here";
    Result<std::unique_ptr<Model>> model = Model::load_vocabulary_only(path->string());
    ASSERT_TRUE(model.ok()) << model.status().message();
    model_ = std::move(model).value();
  }
  std::unique_ptr<Model> model_;
};

TEST_P(RealModel, FindsTheActionInItsOwnPrompt) {
  const ordered_json fitted = fit_to_template(*model_, conversation());
  EXPECT_EQ(writes_tool_calls(*model_), fitted.at("messages")[2].contains("tool_calls"));
  const Result<Prompt> prompt = render_prompt(*model_, fitted, false);
  ASSERT_TRUE(prompt.ok()) << prompt.status().message();
  EXPECT_EQ(prompt->token_ends.back(), prompt->text.size());
  const std::vector<MessageExtent> extents = message_extents(*prompt, 4);
  EXPECT_EQ(extents.back().end_token, static_cast<std::int32_t>(prompt->tokens.size()));
  std::string said;
  for (const ActionPiece& piece :
       find_action_pieces({fitted.at("messages"), prompt->text, extents}, 2)) {
    said += prompt->text.substr(piece.bytes.begin, piece.bytes.size()) + " ";
    const TokenSpan tokens = tokens_of_bytes(piece.bytes, prompt->token_ends);
    EXPECT_LE(extents[2].first_token, tokens.begin);
    EXPECT_LE(tokens.end, extents[2].end_token);
    std::string spelled;
    for (std::int32_t i = tokens.begin; i < tokens.end; ++i)
      spelled += model_->token_text(prompt->tokens[static_cast<std::size_t>(i)]);
    EXPECT_NE(spelled.find(prompt->text.substr(piece.bytes.begin, piece.bytes.size())),
              std::string::npos);
  }
  EXPECT_EQ(said, "get_user user_id mia_li_3668 mia_li_3668 n 1 2 ");
}

TEST_P(RealModel, CountsAddUpToThePrompt) {
  const auto counts = token_counter(*model_)(conversation());
  ASSERT_TRUE(counts.ok()) << counts.status().message();
  const Result<Prompt> prompt =
      render_prompt(*model_, fit_to_template(*model_, conversation()), false);
  EXPECT_EQ(counts->size(), 4U);
  EXPECT_EQ(std::accumulate(counts->begin(), counts->end(), 0),
            static_cast<int>(prompt->tokens.size()));
  for (const std::int32_t count : *counts) EXPECT_GT(count, 5);
}

INSTANTIATE_TEST_SUITE_P(MessageTokens, RealModel, testing::Values("smollm2", "qwen-0.5b"),
                         [](const auto& instance) {
                           std::string name = instance.param;
                           for (char& c : name) c = c == '-' || c == '.' ? '_' : c;
                           return name;
                         });

}  // namespace
}  // namespace memdecay
