#include "engine/memory/policy_config.h"

#include <gtest/gtest.h>

#include <cmath>

#include "policy/decay_math.h"

namespace memdecay {
namespace {

TEST(PolicyConfig, WhatAFileDoesNotSayStaysAsItIs) {
  const PolicyConfig config = parse_policy_config(R"({"regions": {"tool": {}}})").value();
  EXPECT_EQ(config.initial, kInitialScores);
  EXPECT_EQ(config.decay, default_region_decay());
}

TEST(PolicyConfig, DecayOrSurvivalMayBeSaid) {
  const PolicyConfig config = parse_policy_config(R"({
      "threshold": 0.5,
      "regions": {"recent": {"initial": 4, "survival_steps": 200},
                  "ordinary": {"decay": 0.25, "survival_steps": 7, "items": 3, "fits": []},
                  "decision": {"survival_steps": null},
                  "tool": {"decay": 0}}})")
                                  .value();
  EXPECT_EQ(config.initial[region_index(Region::kRecent)], 4);
  EXPECT_DOUBLE_EQ(config.decay[region_index(Region::kRecent)], std::log(8.0) / 200);
  EXPECT_EQ(config.decay[region_index(Region::kOrdinary)], 0.25) << "the decay itself counts";
  EXPECT_EQ(config.decay[region_index(Region::kDecision)], 0);
  EXPECT_EQ(config.decay[region_index(Region::kTool)], 0);
  EXPECT_EQ(config.decay[region_index(Region::kSystem)], 0);
}

TEST(PolicyConfig, WhatIsWrongIsSaid) {
  const std::pair<const char*, const char*> cases[] = {
      {"", "no JSON object"},
      {"[]", "no JSON object"},
      {"{\"regions\": {\"tool\": {\"decay\": 1}}", "no JSON object"},
      {"{}", "names no regions"},
      {R"({"regions": []})", "names no regions"},
      {R"({"regions": {}})", "names no regions"},
      {R"({"region": {"tool": {}}})", "no member \"region\""},
      {R"({"regions": {"tools": {}}})", "no region \"tools\"; there are system"},
      {R"({"regions": {"tool": 3}})", "regions.tool is no object"},
      {R"({"regions": {"tool": {"decai": 3}}})", "regions.tool has no member \"decai\""},
      {R"({"regions": {"tool": {"decay": -1}}})", "regions.tool.decay is no number from 0 on"},
      {R"({"regions": {"tool": {"decay": "1"}}})", "regions.tool.decay is no number"},
      {R"({"regions": {"tool": {"decay": 1e999}}})", "no"},
      {R"({"regions": {"tool": {"initial": 0}}})", "regions.tool.initial is no number"},
      {R"({"regions": {"tool": {"survival_steps": 0}}})", "regions.tool.survival_steps"},
      {R"({"threshold": 0, "regions": {"tool": {}}})", "the config.threshold"},
      {R"({"threshold": 9, "regions": {"tool": {"survival_steps": 10}}})",
       "regions.tool cannot survive"},
  };
  for (const auto& [text, expected] : cases) {
    const auto config = parse_policy_config(text);
    ASSERT_FALSE(config.ok()) << text;
    EXPECT_EQ(config.status().code(), StatusCode::kInvalidArgument) << text;
    EXPECT_NE(config.status().message().find(expected), std::string::npos)
        << text << ": " << config.status().message();
  }
  EXPECT_FALSE(parse_policy_config(std::string(2 << 20, ' ')).ok());
}

TEST(PolicyConfig, AFileThatIsNotThereIsNamed) {
  const auto missing = read_policy_config(testing::TempDir() + "no_such_config.json");
  EXPECT_EQ(missing.status().code(), StatusCode::kNotFound);
  EXPECT_NE(missing.status().message().find("no_such_config.json"), std::string::npos);
}

}  // namespace
}  // namespace memdecay
