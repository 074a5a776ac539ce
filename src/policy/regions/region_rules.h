// RegionRules: from chat structure, markers, keywords and position to regions.
//
// Rules, in order of strength:
//   1. the client's own region;
//   2. system text is kSystem, pinned; the first user turn is the task's goal: kDecision, its head
//      pinned;
//   3. tool calls are kTool; of a tool result the head, lines that speak of errors and exact values
//      are kTool, the raw rest kOrdinary; a call and its results form one tool round;
//   4. sentences of dialogue with a decision marker or keyword are kDecision;
//   5. dialogue is kRecent, reasoning kOrdinary.
// Then importance spreads to the +-3 neighbours of decisions and of kept tool output, within their
// message part. Nothing is a score here: memdecay_policy.h weighs regions.
//
// One object follows one conversation: call classify() with the spans as they arrive, in order.
// Invariant: the result covers exactly the tokens given, in order, without gaps; neighbours differ.
// Threads: one owner. Cost: O(bytes + tokens).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/status.h"
#include "policy/regions/message_span.h"

namespace memdecay {

inline constexpr std::int32_t kNoToolRound = -1;
inline constexpr std::int32_t kNoItem = -1;

enum class RegionReason : std::uint8_t {
  kClient,
  kSystemText,
  kGoal,
  kToolCall,
  kKeptResult,
  kRawResult,
  kDecisionWords,
  kNeighbour,
  kDialogue,
  kReasoning
};

struct RegionSpan {
  TokenRange tokens;
  Region region = Region::kOrdinary;
  RegionReason reason = RegionReason::kDialogue;
  std::int32_t message = 0;
  std::int32_t tool_round = kNoToolRound;
  bool tool_core = false;       ///< call or kept result: what lives and dies together
  std::int32_t item = kNoItem;  ///< the instruction or result whose floor these tokens count to
  bool pinned = false;
  friend bool operator==(const RegionSpan&, const RegionSpan&) = default;
};

struct RegionRuleOptions {
  std::int32_t neighbours = 3;  ///< A6; 0 switches the rule off
  std::int32_t pinned_goal_tokens = 256;
  std::int32_t result_head_tokens = 32;
  std::int32_t whole_result_tokens = 64;  ///< shorter results are kept whole
  std::int32_t smallest_raw_tokens = 16;  ///< shorter gaps between kept parts are kept too
};

class RegionRules {
 public:
  explicit RegionRules(const RegionRuleOptions& options = {}) : options_(options) {}

  /// kInvalidArgument where token ranges do not follow each other or token_ends do not fit.
  Result<std::vector<RegionSpan>> classify(std::span<const MessageSpan> spans);
  std::int32_t tool_rounds() const { return tool_rounds_; }

 private:
  void classify_one(const MessageSpan& span, std::vector<RegionSpan>& out);
  void enter_round(const MessageSpan& span);
  bool is_goal(const MessageSpan& span) const;

  RegionRuleOptions options_;
  Position end_ = 0;  // of the tokens seen so far
  std::int32_t goal_message_ = -1;
  std::int32_t goal_tokens_ = 0;  // of the goal seen so far
  std::int32_t tool_rounds_ = 0;
  std::int32_t call_message_ = -1;  // the message that opened the current round
  std::int32_t items_ = 0;
  std::int32_t item_message_ = -1;  // the message that item items_ - 1 stands for
};

}  // namespace memdecay
