#include "engine/stable_prefix.h"

#include <gtest/gtest.h>

namespace memdecay {
namespace {

TEST(StablePrefix, TimesDatesAndIdentifiersHaveStandIns) {
  const auto normalised = [](std::string_view text) {
    return stable_text(text, StablePrefix::kNormalise);
  };
  EXPECT_EQ(normalised("It is 12:34:56 on 2026-11-30."), "It is [time] on [time].");
  EXPECT_EQ(normalised("now=2026-11-30T10:46:00Z;"), "now=[time];");
  EXPECT_EQ(normalised("request 3f2b8c1e-9d4a-4b6f-8e21-0a1b2c3d4e5f!"), "request [id]!");
  EXPECT_EQ(normalised("trace: req_8f3a2b1c9d"), "trace: [id]");
  EXPECT_EQ(normalised(""), "");
  for (const std::string text :
       {"You are a helpful agent.", "Answer in 3 steps; a budget of 1000000 EUR.",
        "Use gpt-4o, never v1.2.", "a/b.txt: 17 % -- done...", "Zürich \xff\xfe \n\n tabs\t."})
    EXPECT_EQ(normalised(text), text);
}

TEST(StablePrefix, LinesThatChangeMoveBehindThoseThatDoNot) {
  const auto moved = [](std::string_view text) { return stable_text(text, StablePrefix::kMove); };
  EXPECT_EQ(moved("The time is 12:34.\nYou are an agent.\nRequest req_8f3a2b1c9d\nBe brief."),
            "You are an agent.\nBe brief.\nThe time is 12:34.\nRequest req_8f3a2b1c9d");
  EXPECT_EQ(moved("12:34\nBe brief.\n"), "Be brief.\n12:34\n");
  EXPECT_EQ(moved("Be brief.\n12:34"), "Be brief.\n12:34");
  EXPECT_EQ(moved("12:34"), "12:34");
  EXPECT_EQ(moved(""), "");
  EXPECT_EQ(moved("\n\n"), "\n\n");
  // Two requests at other times begin alike now.
  const std::string one = moved("Now: 2026-11-30\nPolicy text.\nMore of it.");
  const std::string two = moved("Now: 2026-12-01\nPolicy text.\nMore of it.");
  EXPECT_EQ(one.substr(0, 26), two.substr(0, 26));
}

TEST(StablePrefix, OnceIsEnough) {
  for (const StablePrefix rule : {StablePrefix::kNormalise, StablePrefix::kMove}) {
    const std::string once =
        stable_text("At 09:15\nid 8f3a2b1c9d0e\nStay.\n2026-01-02 and more\n\nEnd", rule);
    EXPECT_EQ(stable_text(once, rule), once);
  }
}

TEST(StablePrefix, OnlySystemMessagesChange) {
  auto messages = nlohmann::ordered_json::parse(R"([
    {"role": "system", "content": "It is 12:34."},
    {"role": "developer", "content": [{"type": "text", "text": "On 2026-11-30."}, {"type": "image"}]},
    {"role": "user", "content": "Wake me at 12:34."},
    {"role": "system"}, {"content": "12:34"}, "12:34", 7])");
  auto expected = messages;
  expected[0]["content"] = "It is [time].";
  expected[1]["content"][0]["text"] = "On [time].";
  auto off = messages;
  make_prefix_stable(off, StablePrefix::kOff);
  EXPECT_EQ(off, messages);
  make_prefix_stable(messages, StablePrefix::kNormalise);
  EXPECT_EQ(messages, expected);
  nlohmann::ordered_json none = {{"messages", 3}};
  make_prefix_stable(none, StablePrefix::kMove);
  EXPECT_EQ(none.dump(), "{\"messages\":3}");
}

TEST(StablePrefix, NamesAreChecked) {
  EXPECT_EQ(stable_prefix_named("move").value(), StablePrefix::kMove);
  EXPECT_EQ(stable_prefix_named("normalise").value(), StablePrefix::kNormalise);
  EXPECT_EQ(stable_prefix_named("off").value(), StablePrefix::kOff);
  EXPECT_EQ(stable_prefix_named("on").status().code(), StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace memdecay
