#include "model/chat_template/chat_template.h"

#include <gtest/gtest.h>

#include <string>
#include <tuple>
#include <vector>

namespace memdecay {
namespace {

using Json = nlohmann::ordered_json;

Result<RenderedPrompt> render(const std::string& source, const Json& context,
                              RenderOptions options = {}) {
  auto parsed = ChatTemplate::parse(source);
  if (!parsed.ok()) return parsed.status();
  return (*parsed)->render(context, options);
}

std::string text_of(const std::string& source, const Json& context = Json::object()) {
  const auto prompt = render(source, context);
  return prompt.ok() ? prompt->text : prompt.status().message();
}

/// Each segment as its text, part and message.
std::vector<std::tuple<std::string, std::string, int>> pieces(const RenderedPrompt& prompt) {
  std::vector<std::tuple<std::string, std::string, int>> out;
  std::size_t at = 0;
  for (const Segment& segment : prompt.segments) {
    EXPECT_EQ(segment.begin, at);
    EXPECT_LT(segment.begin, segment.end);
    at = segment.end;
    out.emplace_back(prompt.text.substr(segment.begin, segment.end - segment.begin),
                     prompt_part_name(segment.origin.part), segment.origin.message);
  }
  EXPECT_EQ(at, prompt.text.size());
  return out;
}

using Pieces = std::vector<std::tuple<std::string, std::string, int>>;

TEST(ChatTemplate, KnowsMessageAndPartOfEveryByte) {
  const Json context = Json::parse(
      R"({"messages": [{"role": "user", "content": " h\u00e9 <eos> "},
          {"role": "tool", "content": "r"}]})");
  const auto prompt = render(
      "<bos>{% for m in messages %}<{{ m.role }}>{{ m.content|trim|upper }}\n{% endfor %}<go>",
      context);
  ASSERT_TRUE(prompt.ok()) << prompt.status().message();
  const Pieces expected = {{"<bos>", "markup", -1},
                           {"<", "markup", 0},
                           {"user", "role", 0},
                           {">", "markup", 0},
                           {"H\u00c9 <EOS>", "content", 0},
                           {"\n", "markup", 0},
                           {"<", "markup", 1},
                           {"tool", "role", 1},
                           {">", "markup", 1},
                           {"R", "tool_result", 1},
                           {"\n", "markup", 1},
                           {"<go>", "markup", -1}};
  EXPECT_EQ(pieces(*prompt), expected);
  EXPECT_EQ(prompt->roles, (std::vector<std::string>{"user", "tool"}));
}

TEST(ChatTemplate, KeepsOriginsThroughStringOperations) {
  const Json context = Json::parse(R"({"messages": [{"role": "user", "content": "a-b-c"}]})");
  const auto origin_of = [&](const std::string& expression) {
    const auto prompt = render("{{ " + expression + " }}", context);
    EXPECT_TRUE(prompt.ok()) << expression << prompt.status().message();
    return pieces(*prompt);
  };
  const std::string content = "messages[0].content";
  EXPECT_EQ(origin_of(content + ".replace('-', '+')"), (Pieces{{"a", "content", 0},
                                                               {"+", "markup", -1},
                                                               {"b", "content", 0},
                                                               {"+", "markup", -1},
                                                               {"c", "content", 0}}));
  EXPECT_EQ(origin_of(content + ".split('-')|join('|')"), (Pieces{{"a", "content", 0},
                                                                  {"|", "markup", -1},
                                                                  {"b", "content", 0},
                                                                  {"|", "markup", -1},
                                                                  {"c", "content", 0}}));
  EXPECT_EQ(origin_of("('<' ~ " + content + " + '>')[::-1]"),
            (Pieces{{">", "markup", -1}, {"c-b-a", "content", 0}, {"<", "markup", -1}}));
  EXPECT_EQ(origin_of(content + "|tojson"), (Pieces{{"\"a-b-c\"", "content", 0}}));
  EXPECT_EQ(origin_of("'<%s>' % " + content),
            (Pieces{{"<", "markup", -1}, {"a-b-c", "content", 0}, {">", "markup", -1}}));
  EXPECT_EQ(origin_of("'<{}>'.format(" + content + ")"),
            (Pieces{{"<", "markup", -1}, {"a-b-c", "content", 0}, {">", "markup", -1}}));
  EXPECT_EQ(origin_of("messages[0]|tojson")[0], (Pieces::value_type{"{", "other", 0}));
  EXPECT_EQ(origin_of(content + "|length + 1"), (Pieces{{"6", "content", 0}}));
}

TEST(ChatTemplate, KnowsToolsAndCalls) {
  const Json context = Json::parse(R"({"tools": [{"name": "f"}], "messages": [
    {"role": "assistant", "content": null, "reasoning_content": "hm", "tool_calls": [
      {"id": "1", "function": {"name": "f", "arguments": {"x": 1}}}]}]})");
  const auto prompt = render(
      "{{ tools|tojson }}{% for m in messages %}{{ m.reasoning_content }}{% for c in m.tool_calls "
      "%}{{ c.id }}{{ c.function.name }}{{ c.function.arguments|tojson }}{% endfor %}{% endfor %}",
      context);
  ASSERT_TRUE(prompt.ok()) << prompt.status().message();
  const Pieces expected = {{"[{\"name\": \"f\"}]", "tool_schema", -1},
                           {"hm", "reasoning", 0},
                           {"1", "other", 0},
                           {"f", "tool_call_name", 0},
                           {"{\"x\": 1}", "tool_call_arguments", 0}};
  EXPECT_EQ(pieces(*prompt), expected);
}

TEST(ChatTemplate, FollowsMessagesThroughSlicesIndicesAndMacros) {
  const Json context = Json::parse(
      R"({"messages": [{"role": "system", "content": "s"}, {"role": "user", "content": "u"}]})");
  const auto sliced = render("{% for m in messages[1:] %}[{{ m.content }}]{% endfor %}", context);
  ASSERT_TRUE(sliced.ok());
  EXPECT_EQ(pieces(*sliced), (Pieces{{"[", "markup", 1}, {"u", "content", 1}, {"]", "markup", 1}}));
  const auto indexed = render(
      "{% macro show(m) %}({{ m.content }}){% endmacro %}{% for i in range(2) %}{% set m = "
      "messages[i] %}{{ show(m) }}{% endfor %}",
      context);
  ASSERT_TRUE(indexed.ok());
  EXPECT_EQ(pieces(*indexed), (Pieces{{"(", "markup", 0},
                                      {"s", "content", 0},
                                      {")", "markup", 0},
                                      {"(", "markup", 1},
                                      {"u", "content", 1},
                                      {")", "markup", 1}}));
}

TEST(ChatTemplate, NeverParsesContentAsTemplate) {
  EXPECT_EQ(text_of("{{ x }}", {{"x", "{{ 1 }}{% if %}"}}), "{{ 1 }}{% if %}");
}

TEST(ChatTemplate, TokensComeFromTheOptions) {
  RenderOptions options;
  options.bos_token = "<s>";
  options.add_generation_prompt = true;
  const auto prompt =
      render("{{ bos_token }}{{ eos_token }}{{ add_generation_prompt }}", Json::object(), options);
  ASSERT_TRUE(prompt.ok());
  EXPECT_EQ(prompt->text, "<s>True");
  EXPECT_TRUE(prompt->segments[0].origin.from_template());
}

TEST(ChatTemplate, ClockIsInjected) {
  RenderOptions options;
  options.now.emplace();
  options.now->tm_year = 125;
  options.now->tm_mon = 6;
  options.now->tm_mday = 4;
  const auto prompt = render("{{ strftime_now('%d %b %Y') }}", Json::object(), options);
  ASSERT_TRUE(prompt.ok()) << prompt.status().message();
  EXPECT_EQ(prompt->text, "04 Jul 2025");
  EXPECT_EQ(text_of("{{ strftime_now is defined }}"), "False");
}

TEST(ChatTemplate, NamesWhatFailsAndWhere) {
  const auto raised = render("a\n{{ raise_exception('no system role') }}", Json::object());
  EXPECT_EQ(raised.status().code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(raised.status().message(), "chat template, line 2: the template says: no system role");
  EXPECT_EQ(text_of("\n\n{% include 'x' %}"),
            "chat template, line 3: not supported: the statement 'include'");
  EXPECT_EQ(text_of("{{ x|urlize }}"), "chat template, line 1: not supported: the filter 'urlize'");
  EXPECT_EQ(text_of("{% if x %}"), "chat template, line 1: the template ends where 'endif' is due");
  EXPECT_EQ(text_of("{{ messages[0].x }}"), "chat template, line 1: 'messages' is undefined");
  EXPECT_EQ(text_of("{{ 9223372036854775807 + 1 }}"),
            "chat template, line 1: not supported: an integer that does not fit 64 bits");
}

TEST(ChatTemplate, SandboxForbidsChangingLists) {
  EXPECT_EQ(text_of("{{ [1].append(2) }}"),
            "chat template, line 1: access to attribute 'append' of 'list' object is unsafe");
  EXPECT_EQ(text_of("{{ {}.update({}) }}"),
            "chat template, line 1: access to attribute 'update' of 'dict' object is unsafe");
}

TEST(ChatTemplate, HostileTemplatesEndInASentence) {
  RenderOptions options;
  options.limits.work = 200'000;
  options.limits.characters = 1'000'000;
  options.limits.output_characters = 100'000;
  const std::vector<std::string> hostile = {
      "{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}{% endfor %}",
      "{{ 'x' * 1000000000 }}",
      "{{ [1] * 1000000000 }}",
      "{{ '%99999d' % 1 ~ 'x' * 999999 }}",
      "{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}",
      "{% set n = namespace(a=[]) %}{% for i in range(5000) %}{% set n.a = [n.a] %}{% endfor %}"
      "{{ n.a }}",
      "{% set n = namespace() %}{% set n.a = n %}{{ n }}",
      "{% set n = namespace(s='xxxxxxxx') %}{% for i in range(60) %}{% set n.s = n.s + n.s %}"
      "{% endfor %}",
      "{% for i in range(60000) %}xxxx{% endfor %}",
      "{{ 'x'.center(99999999999) }}",
  };
  for (const std::string& source : hostile) {
    const auto prompt = render(source, Json::object(), options);
    EXPECT_EQ(prompt.status().code(), StatusCode::kResourceExhausted) << source;
  }
}

TEST(ChatTemplate, DeepSourceEndsInASentence) {
  const std::string deep(100'000, '(');
  EXPECT_EQ(render("{{ " + deep, Json::object()).status().code(), StatusCode::kInvalidArgument);
  std::string sum = "{{ 1";
  for (int i = 0; i < 100'000; ++i) sum += "+1";
  EXPECT_EQ(render(sum + " }}", Json::object()).status().code(), StatusCode::kInvalidArgument);
  std::string blocks;
  for (int i = 0; i < 100'000; ++i) blocks += "{% if 1 %}";
  EXPECT_EQ(render(blocks, Json::object()).status().code(), StatusCode::kInvalidArgument);
}

TEST(ChatTemplate, RejectsWhatIsNotUtf8) {
  EXPECT_EQ(render("\xff", Json::object()).status().code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(render("{{ x }}", {{"x", "\xc3"}}).status().code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(render("{{ x }}", Json::array()).status().code(), StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace memdecay
