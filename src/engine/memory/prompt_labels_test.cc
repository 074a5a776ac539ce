#include "engine/memory/prompt_labels.h"

#include <gtest/gtest.h>

#include <string>

namespace memdecay {
namespace {

/// One token a word; each part of a message is a run of words with one origin.
class PromptBuilder {
 public:
  PromptBuilder& message(std::string role) {
    prompt_.roles.push_back(std::move(role));
    return *this;
  }
  PromptBuilder& add(PromptPart part, const std::string& words) {
    return add(part, words, static_cast<std::int32_t>(prompt_.roles.size()) - 1);
  }
  PromptBuilder& add(PromptPart part, const std::string& words, std::int32_t message) {
    std::size_t begin = 0;
    while (begin < words.size()) {
      const std::size_t end = std::min(words.find(' ', begin + 1), words.size());
      prompt_.text += words.substr(begin, end - begin);
      prompt_.tokens.push_back(static_cast<TokenId>(prompt_.tokens.size()));
      prompt_.origins.push_back({part, message});
      prompt_.token_ends.push_back(static_cast<std::uint32_t>(prompt_.text.size()));
      begin = end;
    }
    return *this;
  }
  /// The client's word on the latest message.
  PromptBuilder& region(Region region) {
    prompt_.client_regions.resize(prompt_.roles.size());
    prompt_.client_regions.back() = region;
    return *this;
  }
  const Prompt& prompt() const { return prompt_; }

 private:
  Prompt prompt_;
};

std::string words(int count) {
  std::string text;
  for (int i = 0; i < count; ++i) text += " word";
  return text;
}

PromptBuilder agent_prompt() {
  PromptBuilder builder;
  builder.add(PromptPart::kToolSchema, words(10), -1);
  builder.message("system").add(PromptPart::kContent, words(20));
  builder.message("user").add(PromptPart::kMarkup, " <user>").add(PromptPart::kContent, words(12));
  builder.message("assistant")
      .add(PromptPart::kMarkup, " <assistant>")
      .add(PromptPart::kContent, words(9))
      .add(PromptPart::kMarkup, " <call>")
      .add(PromptPart::kToolCallName, " find")
      .add(PromptPart::kToolCallArguments, words(10))
      .add(PromptPart::kMarkup, " </call> <end>");
  builder.message("tool")
      .add(PromptPart::kToolResult, words(200))
      .add(PromptPart::kMarkup, " <end>");
  builder.add(PromptPart::kMarkup, " <assistant>", -1);
  return builder;
}

TEST(PromptLabels, WhatTheClientSaysOfAMessageHoldsForAllOfIt) {
  PromptBuilder builder;
  builder.message("system").add(PromptPart::kContent, words(20)).region(Region::kOrdinary);
  builder.message("user").add(PromptPart::kMarkup, " <user>").add(PromptPart::kContent, words(19));
  builder.message("tool").add(PromptPart::kToolResult, words(200)).region(Region::kDecision);
  builder.message("user").add(PromptPart::kContent, words(30)).region(Region::kSystem);
  builder.message("user").add(PromptPart::kContent, words(30));
  const PromptLabels labels = label_prompt(builder.prompt()).value();
  std::vector<std::pair<Position, Region>> ends;
  for (const RegionSpan& span : labels.regions) {
    ends.emplace_back(span.tokens.end, span.region);
    EXPECT_EQ(span.pinned, span.tokens.begin == 20 || span.region == Region::kSystem);
  }
  const std::vector<std::pair<Position, Region>> expected = {{20, Region::kOrdinary},
                                                             {40, Region::kDecision},
                                                             {240, Region::kDecision},
                                                             {270, Region::kSystem},
                                                             {300, Region::kRecent}};
  EXPECT_EQ(ends, expected);
}

TEST(PromptLabels, EveryTokenHasARegionAPhaseAndAMark) {
  const auto builder = agent_prompt();
  const PromptLabels labels = label_prompt(builder.prompt()).value();
  ASSERT_EQ(labels.phases.size(), builder.prompt().tokens.size());
  ASSERT_EQ(labels.exact.size(), builder.prompt().tokens.size());
  Position at = 0;
  for (const RegionSpan& span : labels.regions) {
    EXPECT_EQ(span.tokens.begin, at);
    EXPECT_GT(span.tokens.size(), 0);
    at = span.tokens.end;
  }
  EXPECT_EQ(at, static_cast<Position>(builder.prompt().tokens.size()));
}

TEST(PromptLabels, PartsBecomeRegionsAndPhases) {
  const PromptLabels labels = label_prompt(agent_prompt().prompt()).value();
  const auto region_of = [&](Position position) {
    for (const RegionSpan& span : labels.regions)
      if (position < span.tokens.end) return span.region;
    return Region::kOrdinary;
  };
  EXPECT_EQ(region_of(0), Region::kSystem) << "the tools' schemas";
  EXPECT_EQ(region_of(29), Region::kSystem);
  EXPECT_EQ(region_of(35), Region::kDecision) << "the first user turn is the goal";
  EXPECT_EQ(region_of(46), Region::kRecent) << "the assistant's text";
  EXPECT_EQ(region_of(60), Region::kTool) << "the call";
  EXPECT_EQ(region_of(75), Region::kTool) << "the head of the result";
  EXPECT_EQ(region_of(200), Region::kOrdinary) << "the raw rest";
  EXPECT_EQ(labels.phases[5], QueryPhase::kOther);
  EXPECT_EQ(labels.phases[46], QueryPhase::kAct);
  EXPECT_EQ(labels.phases[200], QueryPhase::kTool);
  EXPECT_EQ(labels.phases.back(), QueryPhase::kAct) << "the head of the answer to come";
}

TEST(PromptLabels, MarkupGoesWithWhatItStandsBefore) {
  const PromptLabels labels = label_prompt(agent_prompt().prompt()).value();
  // " <call>" is token 53: after the tools, system, user and nine words of the assistant.
  const auto call = std::find_if(labels.regions.begin(), labels.regions.end(),
                                 [](const RegionSpan& span) { return span.tool_core; });
  ASSERT_NE(call, labels.regions.end());
  EXPECT_EQ(call->tokens.begin, 53);
}

TEST(PromptLabels, ARawPromptIsOneUserTurn) {
  PromptBuilder builder;
  builder.add(PromptPart::kMarkup, words(40), -1);
  const PromptLabels labels = label_prompt(builder.prompt()).value();
  ASSERT_EQ(labels.regions.size(), 1U);
  EXPECT_EQ(labels.regions[0].region, Region::kDecision);
}

RegionSpan span(Position begin, Position end, Region region, std::int32_t message = 0) {
  RegionSpan span;
  span.tokens = {begin, end};
  span.region = region;
  span.message = message;
  return span;
}

TEST(PromptLabels, RegionsThatSomebodyElseSaysMakeRunsAndExactValuesAreFound) {
  PromptBuilder builder;
  builder.add(PromptPart::kContent, words(20) + " code KX7Q2M" + words(18), -1);
  std::vector<Region> regions(40, Region::kTool);
  std::fill(regions.begin() + 20, regions.end(), Region::kRecent);
  regions[5] = Region::kDecision;  // one token alone is no page
  const PromptLabels labels = label_by_regions(builder.prompt(), regions);
  ASSERT_EQ(labels.regions.size(), 2U);
  EXPECT_EQ(labels.regions[0].tokens.end, 20);
  EXPECT_EQ(labels.regions[1].region, Region::kRecent);
  EXPECT_EQ(labels.regions[1].tokens.end, 40);
  EXPECT_EQ(labels.regions[1].item, kNoItem);
  ASSERT_EQ(labels.exact.size(), 40U);
  EXPECT_EQ(labels.exact[21], 1) << "the code";
  EXPECT_EQ(labels.exact[3], 0);
  EXPECT_EQ(labels.phases, std::vector<QueryPhase>(40, QueryPhase::kOther));
  EXPECT_TRUE(label_by_regions(Prompt(), {}).regions.empty());
}

TEST(Coarsen, ShortRunsJoinTheStrongerNeighbour) {
  const auto out = coarsen({span(0, 40, Region::kOrdinary), span(40, 43, Region::kTool),
                            span(43, 90, Region::kOrdinary)},
                           8);
  ASSERT_EQ(out.size(), 2U);
  EXPECT_EQ(out[0].region, Region::kTool);
  EXPECT_EQ(out[0].tokens, (TokenRange{0, 43}));
  EXPECT_EQ(out[1].region, Region::kOrdinary);
  EXPECT_EQ(out[1].tokens, (TokenRange{43, 90}));
}

TEST(Coarsen, LongRunsAndOtherMessagesStayApart) {
  const auto out = coarsen({span(0, 40, Region::kOrdinary), span(40, 50, Region::kTool),
                            span(50, 53, Region::kRecent, 1)},
                           8);
  EXPECT_EQ(out.size(), 3U);
}

TEST(Coarsen, EqualNeighboursOfDifferentMessagesAreOneRun) {
  const auto out = coarsen({span(0, 5, Region::kRecent, 0), span(5, 90, Region::kRecent, 1)}, 8);
  ASSERT_EQ(out.size(), 1U);
  EXPECT_EQ(out[0].tokens, (TokenRange{0, 90}));
}

}  // namespace
}  // namespace memdecay
