#include "eval/runs/plain_action.h"

#include <gtest/gtest.h>

#include <string>

namespace memdecay {
namespace {

/// "name | keys | values", each between blanks.
std::string say(const std::string& text) {
  const PlainAction action = find_plain_action(text);
  if (!action.found()) return "none";
  const auto of = [&](TextSpan span) { return text.substr(span.begin, span.size()); };
  if (action.json) return "json " + of(action.whole);
  std::string said = of(action.name) + " |";
  for (const TextSpan key : action.keys) said += " <" + of(key) + ">";
  said += " |";
  for (const TextSpan value : action.values) said += " <" + of(value) + ">";
  return said;
}

TEST(PlainAction, CommandsInFencesAndTags) {
  EXPECT_EQ(say("Look.\n```bash\ngrep -rn --include=*.py \"class A\" src/x.py\n```"),
            "grep | <-rn> <--include> | <*.py> <class A> <src/x.py>");
  EXPECT_EQ(say("first\n```\nls -F\n```\nno, this:\n```\npwd\n```\n"), "pwd | |");
  EXPECT_EQ(say("ok\n<command>\nopen \"a b.py\" 12\n</command>"), "open | | <a b.py> <12>");
  EXPECT_EQ(say("```\nedit 1:1\nimport x\n  y()\nend_of_edit\n```"),
            "edit | | <1:1> <import x\n  y()\nend_of_edit>");
  EXPECT_EQ(say("```bash\npython -c \"a\nb\" -3 x\n```"), "python | <-c> | <a\nb> <-3> <x>");
  EXPECT_EQ(say("```bash\necho 'it\n```"), "echo | | <'it>");
}

TEST(PlainAction, CallsAsJsonText) {
  EXPECT_EQ(say("I will.\n<tool_call>\n{\"name\": \"f\"}\n</tool_call>"), "json {\"name\": \"f\"}");
  EXPECT_EQ(say("<tool_call>{\"name\": \"f\"}"), "json {\"name\": \"f\"}");  // never closed
}

TEST(PlainAction, TextWithoutAnAction) {
  for (const char* text :
       {"", "hello", "```", "``````", "```\n```", "``` ``", "<command></command>", "<tool_call>"}) {
    EXPECT_EQ(say(text), "none") << text;
  }
}

}  // namespace
}  // namespace memdecay
