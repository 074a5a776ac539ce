#include "eval/runs/chained_session.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <set>

namespace memdecay {
namespace {

using nlohmann::ordered_json;

/// One token a byte of content.
Result<std::vector<std::int32_t>> count_bytes(const ordered_json& conversation) {
  std::vector<std::int32_t> counts;
  for (const ordered_json& message : conversation.at("messages")) {
    counts.push_back(
        static_cast<std::int32_t>(message.at("content").get_ref<const std::string&>().size()));
  }
  return counts;
}

Trajectory run(const std::string& task, int trial, const std::string& policy, int body_tokens) {
  Trajectory run;
  run.id = task + "/" + std::to_string(trial);
  run.task = task;
  run.data_set = "airline";
  run.source = run.id;
  ordered_json messages = ordered_json::array();
  if (!policy.empty()) messages.push_back({{"role", "system"}, {"content", policy}});
  const int half = body_tokens / 2;
  const std::string name = run.id;
  messages.push_back(
      {{"role", "user"},
       {"content", name + std::string(static_cast<std::size_t>(half) - name.size(), 'u')}});
  messages.push_back({{"role", "assistant"},
                      {"content", std::string(static_cast<std::size_t>(body_tokens - half), 'a')}});
  run.recorded.assign(messages.size(), 0);
  run.recorded.back() = 1;
  run.conversation["messages"] = std::move(messages);
  return run;
}

std::vector<Trajectory> shift() {
  std::vector<Trajectory> runs;
  for (int task = 0; task < 10; ++task) {
    for (int trial = 0; trial < 4; ++trial)
      runs.push_back(run("t" + std::to_string(task), trial, "policy", 20 + 2 * task));
  }
  return runs;
}

Chains chain(const std::vector<Trajectory>& runs, const ChainOptions& options) {
  Result<Chains> chains = chain_sessions(runs, count_bytes, options);
  EXPECT_TRUE(chains.ok()) << chains.status().message();
  return std::move(chains).value();
}

ChainOptions options_of(int min_tokens, int max_tokens) {
  ChainOptions options;
  options.min_tokens = min_tokens;
  options.max_tokens = max_tokens;
  return options;
}

void expect_sound(const ChainedSession& session) {
  const ordered_json& messages = session.conversation.at("messages");
  ASSERT_EQ(session.sources.size(), messages.size());
  ASSERT_EQ(session.recorded.size(), messages.size());
  ASSERT_EQ(session.tokens_of.size(), messages.size());
  EXPECT_EQ(std::accumulate(session.tokens_of.begin(), session.tokens_of.end(), 0), session.tokens);
  EXPECT_EQ(std::set<std::string>(session.tasks.begin(), session.tasks.end()).size(),
            session.episodes.size());
  std::int32_t episode = -1;
  for (std::size_t i = 0; i < messages.size(); ++i) {
    const MessageSource& source = session.sources[i];
    EXPECT_EQ(messages[i].at("role") == "system", source.episode == -1);
    if (source.episode < 0) continue;
    EXPECT_TRUE(source.episode == episode || source.episode == episode + 1);
    episode = source.episode;
    if (messages[i].at("role") == "user") {
      EXPECT_TRUE(messages[i].at("content").get<std::string>().starts_with(
          session.episodes[static_cast<std::size_t>(episode)]));
    }
  }
}

TEST(ChainedSession, AllEpisodesComeOnceUnderOnePolicyText) {
  const Chains chains = chain(shift(), options_of(90, 150));
  std::multiset<std::string> seen;
  int short_sessions = 0;
  for (const ChainedSession& session : chains.sessions) {
    expect_sound(session);
    seen.insert(session.episodes.begin(), session.episodes.end());
    EXPECT_LE(session.tokens, 150);
    EXPECT_EQ(session.is_short, session.tokens < 90);
    short_sessions += session.is_short ? 1 : 0;
    EXPECT_EQ(session.conversation.at("messages").size(), 1 + 2 * session.episodes.size());
  }
  EXPECT_EQ(seen.size(), 40U);
  EXPECT_EQ(std::set<std::string>(seen.begin(), seen.end()).size(), 40U);
  EXPECT_LE(short_sessions, 1);
  EXPECT_TRUE(chains.notes.empty());
}

TEST(ChainedSession, SeedsDecideAndNothingElse) {
  const auto episodes = [](const Chains& chains) {
    std::vector<std::string> names;
    for (const ChainedSession& session : chains.sessions)
      names.insert(names.end(), session.episodes.begin(), session.episodes.end());
    return names;
  };
  ChainOptions options = options_of(90, 150);
  const auto first = episodes(chain(shift(), options));
  EXPECT_EQ(first, episodes(chain(shift(), options)));
  options.seed = 2;
  EXPECT_NE(first, episodes(chain(shift(), options)));
}

TEST(ChainedSession, PolicyTextsAndDataSetsDoNotMix) {
  std::vector<Trajectory> runs = {run("a", 0, "one", 20), run("b", 0, "two", 20),
                                  run("c", 0, "", 20), run("d", 0, "one", 20), run("e", 0, "", 20)};
  runs[3].data_set = "retail";
  const Chains chains = chain(runs, options_of(100, 200));
  std::vector<std::size_t> sizes;
  for (const ChainedSession& session : chains.sessions) {
    sizes.push_back(session.episodes.size());
    EXPECT_TRUE(session.is_short);
  }
  std::sort(sizes.begin(), sizes.end());
  EXPECT_EQ(sizes, (std::vector<std::size_t>{1, 1, 1, 2}));  // c and e have no policy text
}

TEST(ChainedSession, LongEpisodesAreCutAtAMessageAndSaidSo) {
  std::vector<Trajectory> runs = {run("long", 0, "policy", 200), run("giant", 0, "policy", 4000)};
  const Trajectory more = run("more", 0, "", 200);
  for (std::size_t i = 0; i < 2; ++i) {
    runs[0].conversation["messages"].push_back(more.messages()[i]);
    runs[0].recorded.push_back(more.recorded[i]);
  }
  const Chains chains = chain(runs, options_of(90, 250));
  ASSERT_EQ(chains.sessions.size(), 1U);
  EXPECT_EQ(chains.sessions[0].tokens, 206);
  EXPECT_EQ(chains.sessions[0].cut_messages, 2);
  std::vector<std::string> notes = chains.notes;
  std::sort(notes.begin(), notes.end());
  EXPECT_EQ(notes, (std::vector<std::string>{
                       "giant/0 was left out: its first messages alone are longer than 250 tokens",
                       "long/0 was cut after 206 tokens: 2 of 5 messages fell off"}));
}

TEST(ChainedSession, TasksAreSplitAndEpisodesGoWithThem) {
  ChainOptions options = options_of(30, 60);
  std::map<std::string, int> sides;
  std::size_t episodes = 0;
  for (const Split split : {Split::kDevelopment, Split::kTest}) {
    options.split = split;
    for (const ChainedSession& session : chain(shift(), options).sessions) {
      episodes += session.episodes.size();
      for (const std::string& task : session.tasks) sides[task] |= split == Split::kTest ? 2 : 1;
    }
  }
  EXPECT_EQ(episodes, 40U);
  EXPECT_EQ(sides.size(), 10U);
  for (const auto& [task, side] : sides) EXPECT_NE(side, 3) << task;
}

TEST(ChainedSession, ContradictoryLimitsAreRefused) {
  EXPECT_EQ(chain_sessions({}, count_bytes, options_of(10, 5)).status().message(),
            "sessions of 10 to 5 tokens cannot be made: the limits contradict each other");
  EXPECT_TRUE(chain({}, ChainOptions()).sessions.empty());
}

}  // namespace
}  // namespace memdecay
