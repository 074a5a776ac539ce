#include "kv/prefix/miss_report.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace memdecay {
namespace {

using Cause = PrefixDifference::Cause;

/// Every byte is a token; positions below 10 are tools, then messages of 20 tokens each.
class BytePrompt final : public PromptText {
 public:
  std::string text(std::span<const TokenId> tokens) const override {
    return {tokens.begin(), tokens.end()};
  }
  TokenOrigin origin(Position position) const override {
    if (position < 10) return {-1, "", true};
    const std::int32_t message = (position - 10) / 20;
    return {message, message == 0 ? "system" : "user", false};
  }
};

std::vector<TokenId> bytes(const std::string& text) {
  return {text.begin(), text.end()};
}

PrefixDifference differs(Position at, const char* remembered, const char* planned) {
  return {Cause::kDiffers, at, at, bytes("It is \"07:"), bytes(remembered), bytes(planned)};
}

TEST(MissReport, SaysWhichTokenMessageAndTextParted) {
  const MissReport report = explain_miss(differs(35, "04:31\nHi", "05:02\nHi"), 80, BytePrompt());
  EXPECT_EQ(report.kind, MissKind::kClock);
  EXPECT_EQ(report.matched_tokens, 35);
  EXPECT_EQ(report.first_missed_token, 35);
  EXPECT_EQ(report.message, 1);
  EXPECT_EQ(report.role, "user");
  EXPECT_EQ(report.before, "It is \"07:");
  EXPECT_EQ(report.remembered, "04:31\nHi");
  EXPECT_EQ(report.planned, "05:02\nHi");
  EXPECT_EQ(report.sentence(),
            "clock: 35 of 80 tokens were found; from token 35 (message 1, user) a time or "
            "date differs: after \"It is \\\"07:\" comes \"05:02\\nHi\" where \"04:31\\nHi\" is "
            "remembered");
}

TEST(MissReport, KnowsTheToolsBlock) {
  EXPECT_EQ(explain_miss(differs(3, "get", "set"), 80, BytePrompt()).kind,
            MissKind::kDifferentTools);
  EXPECT_EQ(explain_miss(differs(12, "get", "set"), 80, BytePrompt()).kind,
            MissKind::kEditedMessage);
}

TEST(MissReport, EveryCauseHasItsKindAndSentence) {
  const struct {
    Cause cause;
    MissKind kind;
    const char* name;
    const char* reason;
  } rows[] = {
      {Cause::kNewText, MissKind::kNewText, "new_text", "everything is new"},
      {Cause::kNoEntry, MissKind::kNoEntry, "no_entry", "nothing like it is remembered"},
      {Cause::kEvicted, MissKind::kEvicted, "evicted",
       "it was remembered, and evicted for want of room"},
      {Cause::kOtherBorders, MissKind::kOtherBorders, "other_borders",
       "it is remembered, but cut into other pages"},
      {Cause::kBudget, MissKind::kBudget, "budget", "the session's own budget holds no more of it"},
      {Cause::kOtherSalt, MissKind::kOtherSalt, "other_salt",
       "another tenant has more of it, and tenants do not share"},
  };
  for (const auto& row : rows) {
    const MissReport report = explain_miss({row.cause, 16, 40, {}, {}, {}}, 80, BytePrompt());
    EXPECT_EQ(report.kind, row.kind);
    EXPECT_EQ(report.first_missed_token, 16);
    EXPECT_EQ(report.sentence(), std::string(row.name) +
                                     ": 16 of 80 tokens were found; from token 16 (message 0, "
                                     "system) " +
                                     row.reason);
  }
}

TEST(MissReport, AHitHasNoMissedToken) {
  const MissReport report = explain_miss({Cause::kNone, 80, 80, {}, {}, {}}, 80, BytePrompt());
  EXPECT_EQ(report.kind, MissKind::kHit);
  EXPECT_EQ(report.first_missed_token, 80);
  EXPECT_EQ(report.message, -1);
  EXPECT_EQ(report.sentence(), "hit: 80 of 80 tokens were found; everything was found");
}

TEST(MissReport, LongTextsAreCutNearTheDifferenceAndControlBytesDoNotPass) {
  PrefixDifference difference = differs(12, "", "\x1B[31mred\x7F");
  difference.before = bytes(std::string(50, 'a') + "end");
  difference.remembered = bytes("start" + std::string(50, 'b'));
  const std::string text = explain_miss(difference, 80, BytePrompt()).sentence();
  EXPECT_NE(text.find("\"" + std::string(37, 'a') + "end\""), std::string::npos) << text;
  EXPECT_NE(text.find("\"start" + std::string(35, 'b') + "\""), std::string::npos) << text;
  EXPECT_NE(text.find("\" [31mred \""), std::string::npos) << text;
}

}  // namespace
}  // namespace memdecay
