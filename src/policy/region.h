// Region: what a token is to the agent, which decides how long it is worth its bytes.
//
// Five regions, strongest first, with the initial scores of the classic decay formula. This is a
// vocabulary, not a decision: region_rules.h decides. Plain values, any thread.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace memdecay {

enum class Region : std::uint8_t {
  kSystem,    ///< system instructions; they do not decay
  kDecision,  ///< the task's goal and key decisions
  kTool,      ///< tool calls and what is worth keeping of their results
  kRecent,    ///< dialogue
  kOrdinary,  ///< everything else: raw tool output, reasoning
};
inline constexpr std::size_t kRegionCount = 5;
inline constexpr std::array<Region, kRegionCount> kRegions = {
    Region::kSystem, Region::kDecision, Region::kTool, Region::kRecent, Region::kOrdinary};
inline constexpr std::array<double, kRegionCount> kInitialScores = {100.0, 10.0, 5.0, 2.0, 1.0};
inline constexpr std::array<std::string_view, kRegionCount> kRegionNames = {
    "system", "decision", "tool", "recent", "ordinary"};

constexpr std::size_t region_index(Region region) {
  return static_cast<std::size_t>(region);
}
constexpr std::string_view region_name(Region region) {
  return kRegionNames[region_index(region)];
}
/// The one with the higher initial score.
constexpr Region stronger(Region a, Region b) {
  return a < b ? a : b;
}

}  // namespace memdecay
