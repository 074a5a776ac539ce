#include "eval/readers/read_runs.h"

#include <gtest/gtest.h>

#include "sys/folder_for_test.h"

namespace memdecay {
namespace {

using nlohmann::ordered_json;

RunContents read_ok(const std::string& text) {
  RunContents contents;
  const Status status = read_run_text_into(text, "runs.json", contents);
  EXPECT_TRUE(status.ok()) << status.message();
  finish_runs(contents);
  return contents;
}

std::string failure(const std::string& text) {
  RunContents contents;
  const Status status = read_run_text_into(text, "runs.json", contents);
  EXPECT_FALSE(status.ok());
  return status.message();
}

constexpr const char* kTau = R"([
 {"task_id": 3, "reward": 1.0, "trial": 0, "traj": [
  {"role": "system", "content": "# Airline Agent Policy\nBe kind."},
  {"role": "user", "content": "Hi, I am mia_li_3668."},
  {"content": null, "role": "assistant", "tool_calls": [{"id": "call_1", "type": "function",
    "function": {"name": "get_user", "arguments": "{\"user_id\": \"mia_li_3668\", \"n\": 2}"}}]},
  {"role": "tool", "tool_call_id": "call_1", "name": "get_user", "content": "{\"city\": \"Rome\"}"},
  {"content": "You live in Rome.", "role": "assistant"}]},
 {"task_id": 3, "trial": 1, "traj": [{"role": "user", "content": "again"}]}])";

TEST(ReadRuns, TauBenchEpisodesKeepTheirTaskAndTheirCalls) {
  const RunContents contents = read_ok(kTau);
  ASSERT_EQ(contents.trajectories.size(), 2U);
  const Trajectory& first = contents.trajectories[0];
  EXPECT_EQ(first.data_set, "airline");
  EXPECT_EQ(first.task, "airline-3");
  EXPECT_EQ(first.id, "airline/airline-3/0");
  EXPECT_EQ(first.source, "runs.json, element 1");
  EXPECT_EQ(first.recorded, (std::vector<std::uint8_t>{0, 0, 1, 0, 1}));
  EXPECT_EQ(first.messages()[2].dump(),
            R"({"role":"assistant","content":"","tool_calls":[{"id":"call_1","type":"function",)"
            R"("function":{"name":"get_user","arguments":{"user_id":"mia_li_3668","n":2}}}]})");
  EXPECT_EQ(first.messages()[3].dump(), R"({"role":"tool","content":"{\"city\": \"Rome\"}",)"
                                        R"("name":"get_user","tool_call_id":"call_1"})");
  EXPECT_EQ(contents.trajectories[1].data_set, "service");  // no policy that says which
}

TEST(ReadRuns, DisplaysAreCutAtSpeakersAndLeaveOutUnseenCalls) {
  const RunContents contents = read_ok(
      R"({"messages_display": "user: Hi\nsecond line: yes\nassistant: None\ntool: ok\nassistant: Done"})");
  ASSERT_EQ(contents.trajectories.size(), 1U);
  EXPECT_EQ(contents.trajectories[0].messages().dump(),
            R"([{"role":"user","content":"Hi\nsecond line: yes"},{"role":"tool","content":"ok"},)"
            R"({"role":"assistant","content":"Done"}])");
  EXPECT_EQ(contents.trajectories[0].recorded, (std::vector<std::uint8_t>{0, 0, 1}));
}

TEST(ReadRuns, AWebAgentsStepsBecomeTurnsWithCalls) {
  const RunContents contents = read_ok(R"j({"question": "Where?", "mistake_step": "2", "history": [
    {"content": "Where?", "role": "human"},
    {"content": "Plan: search.", "role": "Orchestrator (thought)"},
    {"content": "Please search", "role": "Orchestrator (-> WebSurfer)"},
    {"content": "Next speaker WebSurfer", "role": "Orchestrator (thought)"},
    {"content": "I typed it.", "role": "WebSurfer"},
    {"content": "Think about it", "role": "Orchestrator (-> Assistant)"},
    {"content": "It is Rome.", "role": "Assistant"},
    {"content": "Max rounds reached.", "role": "Orchestrator (termination condition)"}]
})j");
  ASSERT_EQ(contents.trajectories.size(), 1U);
  const Trajectory& run = contents.trajectories[0];
  EXPECT_EQ(run.data_set, "web_agent");
  EXPECT_EQ(
      run.messages().dump(),
      R"([{"role":"user","content":"Where?"},)"
      R"({"role":"assistant","content":"Plan: search.\n\nNext speaker WebSurfer","tool_calls":)"
      R"([{"type":"function","function":{"name":"WebSurfer","arguments":{"request":"Please search"}}}]},)"
      R"({"role":"tool","content":"I typed it.","name":"WebSurfer"},)"
      R"({"role":"assistant","content":"Think about it\n\nIt is Rome."},)"
      R"({"role":"user","content":"Max rounds reached."}])");
  EXPECT_EQ(run.recorded, (std::vector<std::uint8_t>{0, 1, 0, 1, 0}));
}

TEST(ReadRuns, SweAgentRunsOnOneIssueAreOneTaskAndDemonstrationsAreNotRecorded) {
  const auto run_of = [](const std::string& goal) {
    const ordered_json run = {
        {"history", ordered_json::array(
                        {ordered_json{{"role", "user"}, {"content", "demo"}, {"is_demo", true}},
                         ordered_json{{"role", "assistant"}, {"content", "x"}, {"is_demo", true}},
                         ordered_json{{"role", "user"}, {"content", goal}},
                         ordered_json{{"role", "assistant"}, {"content", "ls"}}})}};
    return run.dump();
  };
  const RunContents contents =
      read_ok(run_of("We solve\nISSUE:\nIt  fails\n\nINSTRUCTIONS:\nuse edit") + "\n" +
              run_of("ISSUE: It fails\nINSTRUCTIONS: other") + "\n" + run_of("ISSUE: no"));
  ASSERT_EQ(contents.trajectories.size(), 3U);
  EXPECT_EQ(contents.trajectories[0].task, contents.trajectories[1].task);
  EXPECT_NE(contents.trajectories[0].task, contents.trajectories[2].task);
  EXPECT_EQ(contents.trajectories[0].recorded, (std::vector<std::uint8_t>{0, 0, 0, 1}));
  EXPECT_EQ(contents.trajectories[1].source, "runs.json, line 2");
  EXPECT_EQ(contents.trajectories[1].data_set, "coding_agent");
  EXPECT_TRUE(contents.trajectories[1].id.ends_with("/1"));
}

TEST(ReadRuns, CallsWithGrowingInputsBecomeOneConversation) {
  const RunContents contents = read_ok(
      R"({"timestamp": "20", "input": "fix\n\nfound 3", "output": "third", "session_id": "a"}
{"timestamp": "9", "input": "fix", "output": "first", "session_id": "a"}

{"timestamp": 5, "input": "other", "output": "o", "session_id": "b"})");
  ASSERT_EQ(contents.trajectories.size(), 2U);
  EXPECT_EQ(contents.trajectories[0].messages().dump(),
            R"([{"role":"user","content":"fix"},{"role":"assistant","content":"first"},)"
            R"({"role":"tool","content":"found 3"},{"role":"assistant","content":"third"}])");
  EXPECT_EQ(contents.trajectories[1].source, "runs.json, line 4");
}

TEST(ReadRuns, SweAgentTasksThatAreListsOfPartsAreTold) {
  const auto run = [](const char* issue) {
    return ordered_json{
        {"history", {{{"role", "user"}, {"content", {{{"type", "text"}, {"text", issue}}}}}}}};
  };
  const RunContents contents =
      read_ok(ordered_json({run("ISSUE: it leaks"), run("ISSUE: it crashes")}).dump());
  ASSERT_EQ(contents.trajectories.size(), 2U);
  EXPECT_NE(contents.trajectories[0].task, contents.trajectories[1].task);
}

TEST(ReadRuns, TimesMayHaveFractionsAndCompactedHistoriesAreLeftOut) {
  const RunContents contents = read_ok(
      R"({"timestamp": 1.75, "input": "fix\n\nfound", "output": "b", "session_id": "a"}
{"timestamp": 1.5, "input": "fix", "output": "a", "session_id": "a"}
{"timestamp": 1, "input": "ab", "output": "", "session_id": "c"}
{"timestamp": 2, "input": "ba", "output": "", "session_id": "c"})");
  ASSERT_EQ(contents.trajectories.size(), 1U);
  EXPECT_EQ(contents.trajectories[0].messages()[1].at("content"), "a");
  EXPECT_EQ(contents.notes,
            std::vector<std::string>{"runs.json, line 4: the input does not go on where the call "
                                     "before it ended; the run was left out"});
}

TEST(ReadRuns, QuestionsFindTheConversationThatHoldsTheirSource) {
  RunContents contents;
  const auto add = [&](const char* text) {
    const Status status = read_run_text_into(text, "f", contents);
    EXPECT_TRUE(status.ok()) << status.message();
  };
  add(R"({"id": "m_1-c-1", "question": [[{"role": "user", "content": "How old am I?"}]], "involved_classes": []})");
  add(R"({"id": "p_0-c-0", "topic": "Hi", "question": [[{"role": "user", "content": "I'm Al."}], [{"role": "user", "content": "I'm 35 years old."}]]})");
  add(R"({"id": "m_1-c-1", "ground_truth": ["35"], "source": "...35 years old..."})");
  add(R"({"id": "m_2-c-2", "ground_truth": ["x"], "source": "nowhere"})");
  finish_runs(contents);
  ASSERT_EQ(contents.trajectories.size(), 1U);
  const Trajectory& chat = contents.trajectories[0];
  EXPECT_EQ(chat.task, "c-Hi");
  EXPECT_EQ(chat.messages().size(), 4U);
  EXPECT_EQ(chat.recorded, (std::vector<std::uint8_t>{0, 0, 0, 0}));
  ASSERT_EQ(chat.questions.size(), 1U);
  EXPECT_EQ(chat.questions[0].question, "How old am I?");
  EXPECT_EQ(chat.questions[0].answers, std::vector<std::string>{"35"});
  EXPECT_EQ(chat.questions[0].message, 2U);
  ASSERT_EQ(contents.notes.size(), 1U);
  EXPECT_EQ(contents.notes[0], "the question m_2-c-2 was left out: question or answer is missing");
}

TEST(ReadRuns, PlainConversationsWithOrWithoutTools) {
  const RunContents contents = read_ok(
      R"({"messages": [{"role": "developer", "content": "S"}, {"role": "user", "content": "u"}], "tools": [{"type": "function"}]})");
  ASSERT_EQ(contents.trajectories.size(), 1U);
  EXPECT_EQ(contents.trajectories[0].conversation.dump(),
            R"({"messages":[{"role":"system","content":"S"},{"role":"user","content":"u"}],)"
            R"("tools":[{"type":"function"}]})");
  EXPECT_EQ(read_ok(R"([{"role": "user", "content": "u"}])").trajectories.size(), 1U);
}

TEST(ReadRuns, ARegionThatIsNoneOfTheMemorysIsLeftOut) {
  const RunContents contents =
      read_ok(R"({"messages": [{"role": "user", "content": "a", "region": "decision"},)"
              R"({"role": "user", "content": "b", "region": "us-east-1"},)"
              R"({"role": "user", "content": "c", "region": null},)"
              R"({"role": "user", "content": "d", "region": ["tool"]}]})");
  ASSERT_EQ(contents.trajectories.size(), 1U);
  EXPECT_EQ(contents.trajectories[0].messages().dump(),
            R"([{"role":"user","content":"a","region":"decision"},{"role":"user","content":"b"},)"
            R"({"role":"user","content":"c"},{"role":"user","content":"d"}])");
}

TEST(ReadRuns, DamageIsNamedWithItsPlace) {
  EXPECT_EQ(failure(""), "runs.json holds no text");
  EXPECT_EQ(failure("  \n"), "runs.json holds no text");
  EXPECT_EQ(failure("[]"), "runs.json holds an empty list");
  EXPECT_EQ(failure("hello"), "runs.json: byte 1 is not JSON");
  EXPECT_EQ(failure(std::string(kTau).substr(0, 300)),
            "runs.json: the text ends in the middle of a JSON value");
  EXPECT_EQ(failure(R"([{"task_id": 1, "traj": 5}])"), "runs.json, element 1: \"traj\" is no list");
  EXPECT_EQ(failure(R"([{"task_id": 1, "traj": []}])"), "runs.json, element 1 has no messages");
  EXPECT_EQ(failure(R"([{"traj": [{"role": "user"}]}, 7])"),
            "runs.json, element 2 is not a JSON object");
  EXPECT_EQ(failure(R"([{"traj": [{"role": "king"}]}])"),
            "runs.json, element 1, message 1: the role \"king\" is none of a chat");
  EXPECT_EQ(failure(R"([{"traj": [{"role": "user", "content": 5}]}])"),
            "runs.json, element 1, message 1: \"content\" is no text");
  EXPECT_EQ(
      failure(R"([{"traj": [{"role": "assistant", "tool_calls": [{"function": {"name": 1}}]}]}])"),
      "runs.json, element 1, message 1, tool call 1: \"name\" is no text");
  EXPECT_EQ(failure("{\"timestamp\": 1, \"input\": \"ab\", \"output\": \"\"}\n{\"time"),
            "runs.json, line 2: the text ends in the middle of a JSON value");
  EXPECT_EQ(failure(std::string(200, '[')), "runs.json: values nest deeper than 128 levels");
  EXPECT_EQ(failure(R"({"hash_ids": [1], "input_length": 5})"),
            "runs.json is a trace of lengths and times without text: there is nothing to read");
  EXPECT_TRUE(failure(R"({"a": 1})").starts_with("runs.json is no recorded run that is known"));
}

TEST(ReadRuns, ArgumentsThatAreNoJsonStayTheirText) {
  const RunContents contents = read_ok(
      R"({"messages": [{"role": "assistant", "content": "", "tool_calls": [{"name": "f", "arguments": "{bad"}]}]})");
  EXPECT_EQ(contents.trajectories[0].messages()[0].at("tool_calls").dump(),
            R"([{"type":"function","function":{"name":"f","arguments":"{bad"}}])");
}

class RunFolder : public testing::Test {
 protected:
  RunFolder() { std::filesystem::create_directory(home_.path("deep")); }
  void put(const std::string& name, const std::string& text) const { home_.write(name, text); }
  const FolderForTest home_;
  const std::string folder_ = home_.path();
};

TEST_F(RunFolder, FoldersAreReadInOrderAndLeaveOutWhatIsNoRun) {
  put("b.json", R"({"messages": [{"role": "user", "content": "b"}]})");
  put("deep/a.txt", R"({"messages": [{"role": "user", "content": "a"}]})");
  put("LICENSE", "MIT");
  put("trace.jsonl", R"({"hash_ids": []})");
  const std::vector<std::string> paths = {folder_};
  const Result<RunContents> contents = read_runs(paths);
  ASSERT_TRUE(contents.ok()) << contents.status().message();
  ASSERT_EQ(contents->trajectories.size(), 2U);
  EXPECT_EQ(contents->trajectories[0].messages()[0].at("content"), "b");
  EXPECT_EQ(contents->notes.size(), 2U);
}

TEST_F(RunFolder, ADamagedRunInAFolderIsNotedAndANamedFileMustBeARun) {
  put("a.json", R"({"messages": [{"role": "user", "content": "a"}]})");
  // Its first record is whole, the second is not.
  put("b.json", R"([{"messages": [{"role": "user", "content": "b"}]}, {"messages": 5}])");
  put("half.json", R"({"messages": [{"role": "user", )");
  put("README.md", "[runs](https://example.org): what they are");
  put("LICENSE", "MIT");
  std::vector<std::string> paths = {folder_};
  const Result<RunContents> contents = read_runs(paths);
  ASSERT_TRUE(contents.ok()) << contents.status().message();
  EXPECT_EQ(contents->trajectories.size(), 1U);
  EXPECT_EQ(contents->notes.size(), 4U);
  paths = {folder_ + "/half.json"};
  EXPECT_EQ(read_runs(paths).status().message(),
            folder_ + "/half.json: the text ends in the middle of a JSON value");
  paths = {folder_ + "/LICENSE"};
  EXPECT_EQ(read_runs(paths).status().message(), folder_ + "/LICENSE: byte 1 is not JSON");
  paths = {folder_ + "/none"};
  EXPECT_EQ(read_runs(paths).status().code(), StatusCode::kNotFound);
}

}  // namespace
}  // namespace memdecay
