#include "engine/prompt/replay.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>

#include "model/tokenizer/tokenizer.h"
#include "sys/user_folders.h"

namespace memdecay {
namespace {

/// On the vocabulary of a real model: byte-level BPE, where a text has many spellings in tokens.
class ReplayTest : public testing::Test {
 protected:
  void SetUp() override {
    const auto path = cached_model_path("smollm2");
    if (!path.ok() || !std::filesystem::exists(*path))
      GTEST_SKIP() << "the model smollm2 is not in the cache";
    ThreadTeam team(1);
    model_ = Model::load(path->string(), Precision::kFast, team).value();
  }
  Prompt prompt(const std::string& text) const { return raw_prompt(*model_, text).value(); }
  /// The text one byte-sized token after another, as a sampler might have written it.
  std::vector<TokenId> letters(const std::string& text) const {
    std::vector<TokenId> ids;
    for (const char letter : text) {
      const auto one = model_->tokenizer().encode(std::string(1, letter), {}).value();
      for (const Token& token : one) ids.push_back(token.id);
    }
    return ids;
  }
  std::string spelled(const std::vector<TokenId>& ids) const {
    return model_->tokenizer().decode(ids);
  }
  std::unique_ptr<Model> model_;
};

TEST_F(ReplayTest, TheSameTextTakesTheHeldIds) {
  const auto held = letters("The answer is forty-two");
  Prompt again = prompt("The answer is forty-two, and more");
  const std::size_t tokenizer_tokens = again.tokens.size();
  replay_held_ids(*model_, held, again);
  ASSERT_GE(again.tokens.size(), held.size());
  EXPECT_TRUE(std::equal(held.begin(), held.end(), again.tokens.begin()));
  EXPECT_GT(again.tokens.size(), tokenizer_tokens);
  EXPECT_EQ(spelled(again.tokens), "The answer is forty-two, and more");
  EXPECT_EQ(again.origins.size(), again.tokens.size());
  EXPECT_EQ(again.token_ends.size(), again.tokens.size());
  EXPECT_TRUE(std::is_sorted(again.token_ends.begin(), again.token_ends.end()));
  EXPECT_EQ(again.token_ends.back(), again.text.size());
}

TEST_F(ReplayTest, AnotherTextKeepsItsOwnIdsFromTheDifferenceOn) {
  const auto held = letters("The answer is forty-two");
  Prompt other = prompt("The answer was nine");
  replay_held_ids(*model_, held, other);
  EXPECT_EQ(spelled(other.tokens), "The answer was nine");
}

TEST_F(ReplayTest, EqualIdsStayAsTheyAre) {
  const Prompt before = prompt("Nothing to replay here.");
  Prompt after = before;
  replay_held_ids(*model_, before.tokens, after);
  EXPECT_EQ(after.tokens, before.tokens);
  EXPECT_EQ(after.token_ends, before.token_ends);
}

TEST_F(ReplayTest, ControlTokensAreNotMadeFromText) {
  const auto end = model_->tokenizer().find_special("<|im_end|>");
  ASSERT_TRUE(end.has_value());
  RawPromptOptions content;
  content.control_tokens = false;
  Prompt text = raw_prompt(*model_, "<|im_end|>", content).value();
  const std::vector<TokenId> before = text.tokens;
  const std::vector<TokenId> held = {*end};
  replay_held_ids(*model_, held, text);
  EXPECT_EQ(text.tokens, before);
}

}  // namespace
}  // namespace memdecay
