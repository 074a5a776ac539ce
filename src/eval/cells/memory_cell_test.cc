#include "eval/cells/memory_cell.h"

#include <gtest/gtest.h>

#include <set>

#include "eval/cells/policy_version.h"
#include "policy/policies/make_policy.h"

namespace memdecay {
namespace {

Result<std::vector<MemoryCell>> cells_of(const std::vector<std::string>& policies,
                                         const std::vector<std::string>& kv_formats,
                                         const std::vector<std::string>& budgets) {
  return make_cells(policies, kv_formats, budgets, PolicyConfig());
}

TEST(CellBudget, SharesAndBytes) {
  EXPECT_DOUBLE_EQ(parse_cell_budget("12.5%").value().share, 0.125);
  EXPECT_EQ(parse_cell_budget("12.5%").value().text, "12.5%");
  EXPECT_EQ(parse_cell_budget("2MiB").value().bytes, 2U << 20);
  EXPECT_DOUBLE_EQ(parse_cell_budget("100%").value().share, 1.0);
  for (const char* bad : {"0%", "101%", "-5%", "x%", "%", "nan%", "", "12 potatoes"})
    EXPECT_EQ(parse_cell_budget(bad).status().code(), StatusCode::kInvalidArgument) << bad;
}

TEST(MemoryCell, AShareIsOfWhatIsNotProtected) {
  MemoryCell cell{"window+prefix", "int4", parse_cell_budget("25%").value()};
  const SessionOptions options = cell.options(1000, 9000).value();
  EXPECT_EQ(options.budget_bytes, 1000U + 2000U);
  EXPECT_EQ(options.policy, "window");
  EXPECT_EQ((MemoryCell{"memdecay:beta=3+prefix", "fp16", {}}.spec()), "memdecay:beta=3");
  EXPECT_EQ(options.protect_prefix, true);
  EXPECT_EQ(options.kv_forms, KvForms::kInt4);
  cell.budget = parse_cell_budget("500").value();
  EXPECT_EQ(cell.options(1000, 9000)->budget_bytes, 500U);
}

TEST(MemoryCell, NoneStandsOnceAFormat) {
  const auto cells = cells_of({"none", "lru"}, {"fp16", "int8"}, {"50%", "25%"}).value();
  ASSERT_EQ(cells.size(), 2U + 4U);
  EXPECT_EQ(cells[0].policy, "none");
  EXPECT_TRUE(cells[0].budget.text.empty());
  EXPECT_EQ(cells[0].options(1, 2)->budget_bytes, KvBudget::kUnlimited);
  EXPECT_EQ(cells[5].budget.text, "25%");
}

TEST(MemoryCell, CellsAreMadeWithTheVersionOfTheirPolicy) {
  PolicyConfig config;
  config.decay[0] += 0.5;
  const auto cells =
      make_cells({"memdecay:beta=3", "lru+prefix"}, {"fp16"}, {"25%"}, config).value();
  EXPECT_EQ(cells[0].version, policy_version("memdecay:beta=3", config).value());
  EXPECT_EQ(cells[1].version, policy_version("lru", config).value());
}

TEST(MemoryCell, WhatIsAskedForTwiceIsOneCell) {
  const auto cells =
      cells_of({"none", "lru", "none", "lru"}, {"fp16", "fp16"}, {"25%", "25%"}).value();
  ASSERT_EQ(cells.size(), 2U);
  EXPECT_EQ(cells[0].policy, "none");
  EXPECT_EQ(cells[1].policy, "lru");
}

TEST(MemoryCell, AllIsEveryPolicyAndEachBaselineWithItsPrefix) {
  std::set<std::string> policies;
  const auto cells = cells_of({"lru", "all"}, {"fp16"}, {"25%"}).value();
  for (const MemoryCell& cell : cells)
    EXPECT_TRUE(policies.insert(cell.policy).second) << cell.policy;
  for (const std::string_view name : policy_names()) {
    const bool baseline = !name.starts_with("memdecay");
    EXPECT_TRUE(policies.contains(std::string(name))) << name;
    EXPECT_EQ(policies.contains(std::string(name) + "+prefix"), baseline) << name;
  }
}

TEST(MemoryCell, TheOracleIsACellThoughNoPolicyHasItsName) {
  const auto cells = cells_of({"oracle", "oracle+prefix", "lru"}, {"fp16"}, {"50%"}).value();
  ASSERT_EQ(cells.size(), 3U);
  EXPECT_TRUE(cells[0].is_oracle());
  EXPECT_TRUE(cells[1].is_oracle());
  EXPECT_EQ(cells[1].options(0, 100)->protect_prefix, true);
  EXPECT_FALSE(cells[2].is_oracle());
}

TEST(MemoryCell, UnknownNamesAreRefused) {
  EXPECT_FALSE(cells_of({"best"}, {"fp16"}, {"50%"}).ok());
  EXPECT_FALSE(cells_of({"lru"}, {"int3"}, {"50%"}).ok());
  EXPECT_FALSE(cells_of({"lru"}, {"fp16"}, {"half"}).ok());
}

}  // namespace
}  // namespace memdecay
