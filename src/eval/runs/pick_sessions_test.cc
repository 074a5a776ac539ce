#include "eval/runs/pick_sessions.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <string>

namespace memdecay {
namespace {

TEST(PickSessions, TakesTheFirstOfEachDataSetThatFit) {
  Chains chains;
  const auto add = [&](const char* data_set, std::int32_t tokens, bool is_short = false) {
    ChainedSession session;
    session.id = fmt::format("{}{}", data_set, chains.sessions.size());
    session.data_set = data_set;
    session.tokens = tokens;
    session.is_short = is_short;
    chains.sessions.push_back(std::move(session));
  };
  add("a", 101);
  add("b", 100);
  add("a", 100);
  add("a", 10, true);
  add("a", 50);
  add("b", 60);
  add("a", 40);
  const auto picked = [&](std::int32_t context_tokens, int most) {
    std::vector<std::string> ids;
    for (const ChainedSession& session : pick_sessions(chains, context_tokens, most).sessions)
      ids.push_back(session.id);
    return ids;
  };
  EXPECT_EQ(picked(100, 2), (std::vector<std::string>{"b1", "a2", "a4", "b5"}));
  EXPECT_EQ(picked(101, 1), (std::vector<std::string>{"a0", "b1"}));
  EXPECT_EQ(picked(39, 9), std::vector<std::string>{});
  EXPECT_EQ(pick_sessions(chains, 101, 1).notes, std::vector<std::string>{});
  EXPECT_EQ(pick_sessions(chains, 100, 1).notes,
            std::vector<std::string>{"1 session is longer than the context of 100 and not played"});
  EXPECT_EQ(
      pick_sessions(chains, 99, 1).notes,
      std::vector<std::string>{"3 sessions are longer than the context of 99 and not played"});
}

}  // namespace
}  // namespace memdecay
