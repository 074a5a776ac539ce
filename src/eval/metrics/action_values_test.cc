#include "eval/metrics/action_values.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace memdecay {
namespace {

using nlohmann::ordered_json;

/// A conversation rendered as the hermes manner does it, with the extents of its messages.
struct Rendered {
  ordered_json messages;
  std::string text;
  std::vector<MessageExtent> extents;

  explicit Rendered(ordered_json conversation) : messages(std::move(conversation)) {
    for (const ordered_json& message : messages) {
      MessageExtent extent;
      extent.first_byte = static_cast<std::uint32_t>(text.size());
      text += "<|" + message.at("role").get<std::string>() + "|>\n" +
              message.at("content").get<std::string>();
      for (const ordered_json& call : message.value("tool_calls", ordered_json::array())) {
        text += "\n<tool_call>{\"name\": " + call.at("function").at("name").dump() +
                ", \"arguments\": " + call.at("function").at("arguments").dump() + "}</tool_call>";
      }
      text += "<|end|>\n";
      extent.end_byte = static_cast<std::uint32_t>(text.size());
      extents.push_back(extent);
    }
  }

  /// "part:text@mention" of each piece of the last message.
  std::vector<std::string> pieces() const {
    std::vector<std::string> said;
    for (const ActionPiece& piece :
         find_action_pieces({messages, text, extents}, messages.size() - 1)) {
      EXPECT_EQ(piece.message, static_cast<std::int32_t>(messages.size()) - 1);
      said.push_back(std::string(action_part_name(piece.part)) + ":" +
                     text.substr(piece.bytes.begin, piece.bytes.size()) +
                     (piece.last_mention < 0 ? "" : "@" + std::to_string(piece.last_mention)));
    }
    return said;
  }
  std::size_t offset_of(std::size_t piece) const {
    return find_action_pieces({messages, text, extents}, messages.size() - 1)[piece].bytes.begin;
  }
};

ordered_json call(const std::string& name, ordered_json arguments) {
  return {{"type", "function"},
          {"function", {{"name", name}, {"arguments", std::move(arguments)}}}};
}

ordered_json acting(const std::string& content, ordered_json one_call) {
  ordered_json calls = ordered_json::array();
  calls.push_back(std::move(one_call));
  return {{"role", "assistant"}, {"content", content}, {"tool_calls", std::move(calls)}};
}

ordered_json says(const char* role, const std::string& content) {
  return {{"role", role}, {"content", content}};
}

using Strings = std::vector<std::string>;

TEST(ActionValues, NamesKeysAndValuesOfANativeCall) {
  const Rendered rendered(ordered_json::array(
      {says("user", "I am mia_li_3668, from \"JFK\"."), says("tool", "seat 12A, mia_li_3668x"),
       acting("Booking get_user now.",
              call("get_user", {{"user_id", "mia_li_3668"},
                                {"from", "JFK"},
                                {"legs", {{{"no", "HAT136"}, {"bags", 2}}}},
                                {"note", "say \"hi\"\n"}}))}));
  EXPECT_EQ(rendered.pieces(),
            (Strings{"tool_name:get_user", "argument_key:user_id", "argument_value:mia_li_3668",
                     "recalled:mia_li_3668@0", "argument_key:from", "argument_value:JFK",
                     "recalled:JFK@0", "argument_key:legs", "argument_key:no",
                     "argument_value:HAT136", "argument_key:bags", "argument_value:2",
                     "argument_key:note", "argument_value:say \\\"hi\\\"\\n"}));
  // The name inside the content is not the call's.
  EXPECT_GT(rendered.offset_of(0), rendered.text.find("now."));
}

TEST(ActionValues, AValueIsRecalledWhereTheTurnSaysItFirst) {
  const Rendered rendered(ordered_json::array(
      {says("user", "code QX77Z"), says("assistant", "QX77Z, yes"), says("user", "go"),
       acting("I look up QX77Z.", call("find", {{"code", "QX77Z"}, {"again", "QX77Z"}}))}));
  EXPECT_EQ(rendered.pieces(),
            (Strings{"recalled:QX77Z@1", "tool_name:find", "argument_key:code",
                     "argument_value:QX77Z", "argument_key:again", "argument_value:QX77Z"}));
}

TEST(ActionValues, LongTextsRecallTheExactValuesInThem) {
  const Rendered rendered(ordered_json::array(
      {says("tool", "file src/a_b.py has 4711 lines"),
       acting("", call("run", {{"command", "sed -n 4711p src/a_b.py | less"}}))}));
  EXPECT_EQ(rendered.pieces(),
            (Strings{"tool_name:run", "argument_key:command",
                     "argument_value:sed -n 4711p src/a_b.py | less", "recalled:src/a_b.py@0"}));
}

TEST(ActionValues, CommandsInText) {
  const Rendered rendered(ordered_json::array(
      {says("user", "see tests/missing.py"),
       says("assistant", "\n Open it.\n```\nopen --all tests/missing.py 12\n```\n")}));
  EXPECT_EQ(rendered.pieces(),
            (Strings{"tool_name:open", "argument_key:--all", "argument_value:tests/missing.py",
                     "recalled:tests/missing.py@0", "argument_value:12"}));
}

TEST(ActionValues, ContentThatATemplateTrimmedIsFoundAllTheSame) {
  Rendered rendered(ordered_json::array({says("assistant", "```\nls x1\n```")}));
  rendered.messages[0]["content"] = "  \n```\nls x1\n```  ";
  EXPECT_EQ(rendered.pieces(), (Strings{"tool_name:ls", "argument_value:x1"}));
}

TEST(ActionValues, CallsWrittenAsText) {
  const Rendered rendered(ordered_json::array(
      {says("user", "mia_li"), says("assistant",
                                    "<tool_call>\n{\"name\": \"get\", \"arguments\": {\"id\": "
                                    "\"mia_li\"}}\n</tool_call>")}));
  EXPECT_EQ(rendered.pieces(), (Strings{"tool_name:get", "argument_key:id", "argument_value:mia_li",
                                        "recalled:mia_li@0"}));
  EXPECT_EQ(
      Rendered(ordered_json::array({says("assistant", "<tool_call>{\"name\": 3}</tool_call>")}))
          .pieces(),
      Strings());
}

TEST(ActionValues, ACallNestedTooDeepIsNoCall) {
  const std::string deep = std::string(200000, '[') + std::string(200000, ']');
  const std::string call = R"({"name": "get", "arguments": {"id": )" + deep + "}}";
  const Rendered rendered(
      ordered_json::array({says("assistant", "<tool_call>" + call + "</tool_call>")}));
  EXPECT_EQ(rendered.pieces(), Strings());
}

TEST(ActionValues, WhoDoesNotActHasNoPieces) {
  EXPECT_EQ(Rendered(ordered_json::array({says("user", "```\nls\n```")})).pieces(), Strings());
  EXPECT_EQ(Rendered(ordered_json::array({says("assistant", "Hello.")})).pieces(), Strings());
}

TEST(ActionValues, BytesBecomeTheTokensThatTheyTouch) {
  const std::vector<std::uint32_t> ends = {0, 3, 7, 8, 12};
  EXPECT_EQ(tokens_of_bytes({0, 1}, ends), (TokenSpan{1, 2}));
  EXPECT_EQ(tokens_of_bytes({2, 4}, ends), (TokenSpan{1, 3}));
  EXPECT_EQ(tokens_of_bytes({3, 7}, ends), (TokenSpan{2, 3}));
  EXPECT_EQ(tokens_of_bytes({7, 12}, ends), (TokenSpan{3, 5}));
  EXPECT_EQ(tokens_of_bytes({11, 12}, ends), (TokenSpan{4, 5}));
}

}  // namespace
}  // namespace memdecay
