#include "eval/metrics/recall_probes.h"

#include <gtest/gtest.h>

#include <map>
#include <set>

namespace memdecay {
namespace {

using nlohmann::ordered_json;

/// 40 rounds of user, assistant, tool under a policy text; 100 tokens a message.
ChainedSession session() {
  ChainedSession session;
  session.id = "airline/session0";
  ordered_json messages = ordered_json::array();
  messages.push_back({{"role", "system"}, {"content", "Policy."}});
  for (int i = 0; i < 40; ++i) {
    messages.push_back({{"role", "user"}, {"content", "u" + std::to_string(i)}});
    messages.push_back({{"role", "assistant"}, {"content", "a"}});
    std::string output;
    for (int line = 0; line < 100; ++line) output += "line " + std::to_string(line) + "\n";
    messages.push_back({{"role", "tool"}, {"content", output}});
  }
  session.tokens_of.assign(messages.size(), 100);
  session.tokens = 100 * static_cast<std::int32_t>(messages.size());
  session.conversation["messages"] = std::move(messages);
  return session;
}

ProbedSession plant(const ProbeOptions& options) {
  Result<ProbedSession> probed = plant_probes(session(), options);
  EXPECT_TRUE(probed.ok()) << probed.status().message();
  return std::move(probed).value();
}

std::string content_of(const ProbedSession& probed, std::int32_t message) {
  return probed.session.conversation.at("messages")[static_cast<std::size_t>(message)]
      .at("content")
      .get<std::string>();
}

TEST(RecallProbes, EveryRegionAndDepthHasAFactThatIsThereOnce) {
  const ProbedSession probed = plant(ProbeOptions());
  EXPECT_TRUE(probed.notes.empty());
  std::map<Region, int> facts;
  const std::string whole = probed.session.conversation.dump();
  for (const RecallProbe& probe : probed.probes) {
    if (probe.kind != ProbeKind::kFact) continue;
    ++facts[probe.region];
    const std::size_t first = whole.find(probe.answer);
    EXPECT_NE(first, std::string::npos);
    EXPECT_EQ(whole.find(probe.answer, first + 1), std::string::npos);
    EXPECT_NE(content_of(probed, probe.planted_in).find(probe.answer), std::string::npos);
    EXPECT_TRUE(probe.reply.ends_with(probe.answer));
    EXPECT_EQ(probe.asked_after, 120);
    EXPECT_EQ(probe.age_tokens, 100 * (120 - probe.planted_in));
    EXPECT_NEAR(probe.depth, probe.planted_in / 121.0, 1e-12);
  }
  EXPECT_EQ(facts[Region::kSystem], 1);
  for (const Region region :
       {Region::kDecision, Region::kTool, Region::kRecent, Region::kOrdinary}) {
    EXPECT_EQ(facts[region], 5) << region_name(region);
  }
}

TEST(RecallProbes, DecoysDifferInTheirLastTwoDigits) {
  const ProbedSession probed = plant(ProbeOptions());
  for (const RecallProbe& probe : probed.probes) {
    if (probe.kind != ProbeKind::kFact) continue;
    const std::string id = probe.question.substr(probe.question.find("R-"), 8);
    const std::string text = content_of(probed, probe.planted_in);
    std::set<std::string> codes;
    for (std::size_t at = text.find(id.substr(0, 6)); at != std::string::npos;
         at = text.find(id.substr(0, 6), at + 1)) {
      codes.insert(text.substr(at, 23));  // "R-123456: code 654321."
    }
    EXPECT_EQ(codes.size(), 8U) << text;
  }
}

TEST(RecallProbes, GoalAndInstructionsAreAskedFor) {
  ProbeOptions options;
  options.instructions = 3;
  const ProbedSession probed = plant(options);
  int goals = 0, instructions = 0;
  for (const RecallProbe& probe : probed.probes) {
    if (probe.kind == ProbeKind::kGoal) {
      ++goals;
      EXPECT_EQ(probe.planted_in, 1);
      EXPECT_NE(content_of(probed, 1).find(probe.answer), std::string::npos);
    }
    if (probe.kind == ProbeKind::kInstruction) {
      EXPECT_EQ(probe.number, ++instructions);
      EXPECT_NE(content_of(probed, 0).find(probe.answer), std::string::npos);
    }
  }
  EXPECT_EQ(goals, 1);
  EXPECT_EQ(instructions, 3);
}

TEST(RecallProbes, AskingEarlierPartsAgeFromDepth) {
  ProbeOptions options;
  options.depths = {0.2};
  options.ask_at = {0.1, 0.5, 1.0};
  int asked = 0;
  const ProbedSession probed = plant(options);
  for (const RecallProbe& probe : probed.probes) {
    EXPECT_LE(probe.planted_in, probe.asked_after);
    EXPECT_EQ(probe.age_tokens, 100 * (probe.asked_after - probe.planted_in));
    const auto& messages = probed.session.conversation.at("messages");
    const auto next = static_cast<std::size_t>(probe.asked_after) + 1;
    EXPECT_TRUE(next == messages.size() || messages[next].at("role") != "tool");
    if (probe.kind == ProbeKind::kFact && probe.region == Region::kTool) ++asked;
  }
  EXPECT_EQ(asked, 2);  // at a tenth the fact is not there yet
}

TEST(RecallProbes, TheQuestionComesLast) {
  ProbeOptions options;
  options.ask_at = {0.5};
  const ProbedSession probed = plant(options);
  const RecallProbe& probe = probed.probes.front();
  const ordered_json asked = asked_conversation(probed, probe);
  const ordered_json& messages = asked.at("messages");
  ASSERT_EQ(messages.size(), static_cast<std::size_t>(probe.asked_after) + 3);
  EXPECT_EQ(messages[messages.size() - 2].dump(),
            ordered_json({{"role", "user"}, {"content", probe.question}}).dump());
  EXPECT_EQ(messages.back().dump(),
            ordered_json({{"role", "assistant"}, {"content", probe.reply}}).dump());
}

TEST(RecallProbes, SeedsDecideAndRegionsWithoutAPlaceAreNamed) {
  ProbeOptions options;
  EXPECT_EQ(plant(options).session.conversation, plant(options).session.conversation);
  options.seed = 2;
  EXPECT_NE(plant(options).session.conversation, plant(ProbeOptions()).session.conversation);
  ChainedSession bare;
  bare.id = "s";
  bare.tokens_of = {10};
  bare.conversation["messages"].push_back({{"role", "user"}, {"content", "hi"}});
  options.depths = {0.5};
  const Result<ProbedSession> probed = plant_probes(bare, options);
  ASSERT_TRUE(probed.ok());
  EXPECT_EQ(probed->probes.size(), 1U);  // the goal
  EXPECT_EQ(probed->notes.size(), 6U);
  EXPECT_EQ(probed->notes[0], "s has no policy text: no instruction probes");
  EXPECT_EQ(probed->notes[1], "s has no place for a fact of region system at depth 0.50");
}

TEST(RecallProbes, SharesOutsideTheSessionAreRefused) {
  ProbeOptions options;
  options.depths = {1.5};
  EXPECT_EQ(plant_probes(session(), options).status().message(),
            "depths and questions lie between 0 and 1");
}

}  // namespace
}  // namespace memdecay
