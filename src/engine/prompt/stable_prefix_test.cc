#include "engine/prompt/stable_prefix.h"

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

TEST(StablePrefix, DatesWithTheMonthsNameHaveOneStandIn) {
  const auto normalised = [](std::string_view text) {
    return stable_text(text, StablePrefix::kNormalise);
  };
  for (const std::string date :
       {"November 30, 2026", "30 November 2026", "Mon, 30 Nov 2026", "Monday, November 30th, 2026",
        "Nov. 30, 2026", "NOV 30", "30th of November", "November 2026", "30-Nov-2026", "May 5",
        "Sunday 1st May", "Sept 3 2026", "1/Dec/2026", "30. November 2026", "30/Nov/2026:10:46:00",
        "30-Nov-2026T10:46", "30-Nov-2026T10:46:07.25Z", "Nov 30, 2026T10:46+01:00"}) {
    EXPECT_EQ(normalised("Today is " + date + "."), "Today is [time].");
    EXPECT_EQ(normalised(date), "[time]");
    EXPECT_EQ(normalised("<" + date + ">\nx"), "<[time]>\nx");
  }
  EXPECT_EQ(normalised("Mon, 30 Nov 2026 10:46:00 GMT"), "[time] [time] GMT");
  for (const std::string text :
       {"May I march 3 miles, may 5 come?", "On Monday we close.", "In March.", "30 days",
        "Mon, 30 days", "Marching 30", "30 Novembers", "March", "Nov 30x", "Nov 333",
        "the 3 of them", "Decade 30", "30", "", "Mon", "Mon, Nov", "2. May I help",
        "We have 3, March on", "Nov 2026Tx"})
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
  nlohmann::ordered_json conversation;
  conversation["messages"] = nlohmann::ordered_json::parse(R"([
    {"role": "system", "content": "It is 12:34."},
    {"role": "developer", "content": [{"type": "text", "text": "On 2026-11-30."}, {"type": "image"}]},
    {"role": "user", "content": "Wake me at 12:34."},
    {"role": "system"}, {"content": "12:34"}, "12:34", 7])");
  auto expected = conversation;
  expected["messages"][0]["content"] = "It is [time].";
  expected["messages"][1]["content"][0]["text"] = "On [time].";
  auto off = conversation;
  make_prefix_stable(off, StablePrefix::kOff);
  EXPECT_EQ(off, conversation);
  make_prefix_stable(conversation, StablePrefix::kNormalise);
  EXPECT_EQ(conversation, expected);
  for (const char* text : {R"({"messages":3})", "[]", "7", R"({"tools":[1]})"}) {
    auto none = nlohmann::ordered_json::parse(text);
    make_prefix_stable(none, StablePrefix::kMove);
    EXPECT_EQ(none.dump(), text);
  }
}

TEST(StablePrefix, BeforeToolsLinesMoveIntoTheFirstUserMessage) {
  const auto moved = [](nlohmann::ordered_json messages, bool tools) {
    nlohmann::ordered_json conversation = {{"messages", std::move(messages)}};
    if (tools) conversation["tools"] = {{{"type", "function"}}};
    make_prefix_stable(conversation, StablePrefix::kMove);
    const auto once = conversation;
    make_prefix_stable(conversation, StablePrefix::kMove);
    EXPECT_EQ(conversation, once) << "once is enough";
    return once["messages"];
  };
  const auto messages = nlohmann::ordered_json::parse(R"([
    {"role": "system", "content": "Now: 12:34\nBe brief."},
    {"role": "developer", "content": [{"type": "text", "text": "It is May 5."}, {"type": "image"}]},
    {"role": "user", "content": "Hello"},
    {"role": "system", "content": "12:40\nGo on."},
    {"role": "user", "content": "Bye"}])");
  auto expected = messages;
  expected[0]["content"] = "Be brief.\nNow: 12:34";
  expected[3]["content"] = "Go on.\n12:40";
  EXPECT_EQ(moved(messages, false), expected);
  expected[0]["content"] = "Be brief.";
  expected[1]["content"][0]["text"] = "";
  expected[2]["content"] = "Now: 12:34\nIt is May 5.\nHello";
  EXPECT_EQ(moved(messages, true), expected);
  const auto parts = nlohmann::ordered_json::parse(R"([
    {"role": "system", "content": "12:34"},
    {"role": "user", "content": [{"type": "text", "text": "Hello"}]}])");
  EXPECT_EQ(moved(parts, true)[1]["content"][0]["text"], "12:34\n");
  const auto unasked =
      nlohmann::ordered_json::parse(R"([{"role": "system", "content": "12:34\nBe brief."}])");
  EXPECT_EQ(moved(unasked, true)[0]["content"], "Be brief.\n12:34");
}

TEST(StablePrefix, NamesAreChecked) {
  EXPECT_EQ(stable_prefix_named("move").value(), StablePrefix::kMove);
  EXPECT_EQ(stable_prefix_named("normalise").value(), StablePrefix::kNormalise);
  EXPECT_EQ(stable_prefix_named("off").value(), StablePrefix::kOff);
  EXPECT_EQ(stable_prefix_named("on").status().code(), StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace memdecay
