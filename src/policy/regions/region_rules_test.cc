#include "policy/regions/region_rules.h"

#include <gtest/gtest.h>

#include <deque>
#include <string>

namespace memdecay {
namespace {

/// A conversation whose tokens are words with the space before them.
class Conversation {
 public:
  Conversation& say(Role role, Part part, const std::string& text, bool with_ends = true) {
    texts_.push_back(text);
    ends_.emplace_back();
    std::vector<std::uint32_t>& ends = ends_.back();
    for (std::uint32_t i = 1; i <= text.size(); ++i) {
      if (i == text.size() || text[i] == ' ' || text[i] == '\n') ends.push_back(i);
    }
    MessageSpan span;
    span.role = role;
    span.part = part;
    span.message = messages_++;
    span.text = texts_.back();
    span.tokens = {end_, end_ + static_cast<Position>(ends.size())};
    if (with_ends) span.token_ends = ends;
    end_ = span.tokens.end;
    spans_.push_back(span);
    return *this;
  }
  Conversation& same_message() {
    --messages_;
    return *this;
  }
  std::vector<MessageSpan>& spans() { return spans_; }

 private:
  std::deque<std::string> texts_;
  std::deque<std::vector<std::uint32_t>> ends_;
  std::vector<MessageSpan> spans_;
  std::int32_t messages_ = 0;
  Position end_ = 0;
};

std::string words(int count, const std::string& word = "word") {
  std::string text;
  for (int i = 0; i < count; ++i) text += (i == 0 ? "" : " ") + word;
  return text;
}

std::vector<RegionSpan> classify(Conversation& conversation,
                                 const RegionRuleOptions& options = {}) {
  RegionRules rules(options);
  auto result = rules.classify(conversation.spans());
  EXPECT_TRUE(result.ok()) << result.status().message();
  return result.ok() ? *result : std::vector<RegionSpan>{};
}

TEST(RegionRules, SystemGoalAndDialogue) {
  Conversation c;
  c.say(Role::kSystem, Part::kText, words(5));
  c.say(Role::kUser, Part::kText, words(4));
  c.say(Role::kAssistant, Part::kReasoning, words(3));
  c.say(Role::kAssistant, Part::kText, words(6));
  c.say(Role::kUser, Part::kText, words(7));
  const auto spans = classify(c);
  ASSERT_EQ(spans.size(), 5U);
  EXPECT_EQ(spans[0].region, Region::kSystem);
  EXPECT_TRUE(spans[0].pinned);
  EXPECT_EQ(spans[0].item, 0);
  EXPECT_EQ(spans[1].region, Region::kDecision);
  EXPECT_EQ(spans[1].reason, RegionReason::kGoal);
  EXPECT_TRUE(spans[1].pinned);
  EXPECT_EQ(spans[1].item, 1);
  EXPECT_EQ(spans[2].region, Region::kOrdinary);
  EXPECT_EQ(spans[3].region, Region::kRecent);
  EXPECT_EQ(spans[4].region, Region::kRecent) << "only the first user turn is the goal";
  EXPECT_FALSE(spans[4].pinned);
}

TEST(RegionRules, OnlyTheHeadOfALongGoalIsPinned) {
  Conversation c;
  c.say(Role::kUser, Part::kText, words(300));
  const auto spans = classify(c);
  ASSERT_EQ(spans.size(), 2U);
  EXPECT_EQ(spans[0].tokens, (TokenRange{0, 256}));
  EXPECT_TRUE(spans[0].pinned);
  EXPECT_FALSE(spans[1].pinned);
  EXPECT_EQ(spans[1].region, Region::kDecision);
}

TEST(RegionRules, DecisionSentencesTakeTheirNeighbours) {
  Conversation c;
  c.say(Role::kUser, Part::kText, "goal");
  c.say(Role::kAssistant, Part::kText, words(10) + ". We decided on red. " + words(10));
  const auto spans = classify(c);
  // Token 1..10 are words, 11..14 the sentence, 15..24 words; three on each side go with it.
  ASSERT_EQ(spans.size(), 6U);
  EXPECT_EQ(spans[1].tokens, (TokenRange{1, 8}));
  EXPECT_EQ(spans[2].tokens, (TokenRange{8, 11}));
  EXPECT_EQ(spans[2].reason, RegionReason::kNeighbour);
  EXPECT_EQ(spans[3].tokens, (TokenRange{11, 15}));
  EXPECT_EQ(spans[3].reason, RegionReason::kDecisionWords);
  EXPECT_EQ(spans[4].tokens, (TokenRange{15, 18}));
  EXPECT_EQ(spans[4].region, Region::kDecision);
  EXPECT_EQ(spans[5].tokens, (TokenRange{18, 25}));
  EXPECT_EQ(spans[5].region, Region::kRecent);
}

TEST(RegionRules, NoNeighboursWhereTheRuleIsOff) {
  Conversation c;
  c.say(Role::kUser, Part::kText, "goal");
  c.say(Role::kAssistant, Part::kText, words(10) + ". We decided on red. " + words(10));
  RegionRuleOptions options;
  options.neighbours = 0;
  EXPECT_EQ(classify(c, options).size(), 4U);
}

TEST(RegionRules, ToolRoundsOfCallsAndResults) {
  Conversation c;
  c.say(Role::kUser, Part::kText, "goal");
  c.say(Role::kAssistant, Part::kToolCall, words(4));
  c.same_message().say(Role::kAssistant, Part::kToolCall, words(3, "more"));
  c.say(Role::kTool, Part::kToolResult, words(5));
  c.say(Role::kAssistant, Part::kText, words(2));
  c.say(Role::kAssistant, Part::kToolCall, words(4));
  c.say(Role::kTool, Part::kToolResult, words(5));
  const auto spans = classify(c);
  ASSERT_EQ(spans.size(), 6U);  // the two calls of one message are one span
  EXPECT_EQ(spans[1].tokens.size(), 7);
  EXPECT_EQ(spans[1].tool_round, 0);
  EXPECT_TRUE(spans[1].tool_core);
  EXPECT_EQ(spans[2].tool_round, 0);
  EXPECT_EQ(spans[2].region, Region::kTool);
  EXPECT_EQ(spans[3].tool_round, kNoToolRound);
  EXPECT_EQ(spans[4].tool_round, 1);
  EXPECT_EQ(spans[5].tool_round, 1);
  EXPECT_NE(spans[2].item, spans[5].item);
}

TEST(RegionRules, LongResultsKeepHeadErrorsAndValues) {
  Conversation c;
  c.say(Role::kUser, Part::kText, "goal");
  c.say(Role::kAssistant, Part::kToolCall, "ls");
  c.say(Role::kTool, Part::kToolResult,
        words(100) + "\nfatal error here\n" + words(100) + " HAT170 " + words(100));
  const auto spans = classify(c);
  ASSERT_EQ(spans.size(), 2U + 11U);
  EXPECT_EQ(spans[2].tokens, (TokenRange{2, 2 + 32}));
  EXPECT_EQ(spans[2].reason, RegionReason::kKeptResult);
  EXPECT_EQ(spans[3].reason, RegionReason::kNeighbour);
  EXPECT_EQ(spans[3].tokens.size(), 3);
  EXPECT_EQ(spans[4].reason, RegionReason::kRawResult);
  EXPECT_FALSE(spans[4].tool_core);
  EXPECT_EQ(spans[4].tool_round, 0) << "raw output still belongs to its round";
  EXPECT_EQ(spans[6].reason, RegionReason::kKeptResult);
  EXPECT_EQ(spans[6].tokens.size(), 4);  // the error's line, whose end is in the next word's token
  EXPECT_EQ(spans[8].region, Region::kOrdinary);
  EXPECT_EQ(spans[10].tokens.size(), 1);  // HAT170
  EXPECT_TRUE(spans[10].tool_core);
  Position end = 0;
  for (const RegionSpan& span : spans) {
    EXPECT_EQ(span.tokens.begin, end);
    end = span.tokens.end;
  }
  EXPECT_EQ(end, c.spans().back().tokens.end);
}

TEST(RegionRules, TheClientOverridesEveryRule) {
  Conversation c;
  c.say(Role::kSystem, Part::kText, words(3));
  c.say(Role::kUser, Part::kText, words(3));
  c.spans()[0].client_region = Region::kOrdinary;
  c.spans()[1].client_region = Region::kSystem;
  const auto spans = classify(c);
  EXPECT_EQ(spans[0].region, Region::kOrdinary);
  EXPECT_FALSE(spans[0].pinned);
  EXPECT_EQ(spans[0].reason, RegionReason::kClient);
  EXPECT_EQ(spans[1].region, Region::kSystem);
  EXPECT_TRUE(spans[1].pinned);
}

TEST(RegionRules, WithoutTokenEndsASpanStaysWhole) {
  Conversation c;
  c.say(Role::kUser, Part::kText, "goal");
  c.say(Role::kAssistant, Part::kText, words(9) + ". We decided.", false);
  const auto spans = classify(c);
  ASSERT_EQ(spans.size(), 2U);
  EXPECT_EQ(spans[1].region, Region::kRecent);
}

TEST(RegionRules, TurnByTurnEqualsAtOnce) {
  Conversation c;
  c.say(Role::kSystem, Part::kText, words(5));
  c.say(Role::kUser, Part::kText, words(4));
  c.say(Role::kAssistant, Part::kToolCall, words(3));
  c.say(Role::kTool, Part::kToolResult, words(90) + " id_7 " + words(30));
  c.say(Role::kAssistant, Part::kText, "Important: go. " + words(20));
  const auto at_once = classify(c);
  RegionRules rules;
  std::vector<RegionSpan> by_turn;
  for (const MessageSpan& span : c.spans()) {
    const auto part = rules.classify({&span, 1});
    ASSERT_TRUE(part.ok());
    by_turn.insert(by_turn.end(), part->begin(), part->end());
  }
  EXPECT_EQ(by_turn, at_once);
  EXPECT_EQ(rules.tool_rounds(), 1);
}

TEST(RegionRules, WrongSpansAreRefusedAndChangeNothing) {
  Conversation c;
  c.say(Role::kUser, Part::kText, words(3));
  c.say(Role::kUser, Part::kText, words(3));
  RegionRules rules;
  EXPECT_FALSE(rules.classify({&c.spans()[1], 1}).ok()) << "a gap before it";
  MessageSpan wrong = c.spans()[0];
  const std::vector<std::uint32_t> falling = {9, 4, 14};
  wrong.token_ends = falling;
  EXPECT_EQ(rules.classify({&wrong, 1}).status().code(), StatusCode::kInvalidArgument);
  const std::vector<std::uint32_t> beyond = {1, 2, 99};
  wrong.token_ends = beyond;
  EXPECT_FALSE(rules.classify({&wrong, 1}).ok());
  wrong.token_ends = std::span(beyond).first(2);
  EXPECT_FALSE(rules.classify({&wrong, 1}).ok());
  EXPECT_TRUE(rules.classify(c.spans()).ok());
}

}  // namespace
}  // namespace memdecay
