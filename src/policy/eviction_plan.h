// What is asked of a policy and what it answers: requests, plans, explanations. Plain values.
#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "policy/page_meta.h"

namespace memdecay {

enum class Urgency : std::uint8_t {
  kGentle,   ///< only what scores below the ceiling, and no young tool round
  kPressed,  ///< whatever it takes, short of what is protected
};

struct PlanRequest {
  std::uint64_t budget_bytes =
      std::numeric_limits<std::uint64_t>::max();  ///< aim for tracked bytes
  Urgency urgency = Urgency::kPressed;
  double gentle_score_ceiling = 0.01;  ///< a tenth of the classic threshold
  bool may_demote = true;              ///< else a ladder is left alone: drops only
  bool may_drop = true;                ///< else only a ladder gives
};

struct PlanAction {
  TrackedPageId page;
  bool drop = true;                ///< else demote to `form`
  PageForm form = PageForm::kF16;  ///< where drop is false
  std::uint64_t freed_bytes = 0;
  friend bool operator==(const PlanAction&, const PlanAction&) = default;
};

/// Applied whole or not at all. A page appears once.
struct EvictionPlan {
  std::vector<PlanAction> actions;
  std::uint64_t freed_bytes = 0;
  std::uint64_t missing_bytes = 0;  ///< still above the budget, since the rest is protected
  std::uint64_t steps = 0;          ///< comparisons and visits that it cost
};

/// Why a page may not be dropped now; a round's mate may, once nothing else is left.
enum class Shield : std::uint8_t {
  kNone,
  kOpen,
  kSink,
  kNewest,
  kPinned,
  kRoundMate,
  kFloor,
  kUntracked
};
const char* shield_name(Shield shield);

struct Explanation {
  Shield shield = Shield::kUntracked;
  Region region = Region::kOrdinary;  ///< what it counts as, by its label or by attention
  double score = 0;          ///< of the drop unit, as the policy orders it: lowest goes first
  bool pin_refused = false;  ///< asked to be pinned, but the cap is reached
  std::string sentence;      ///< all of it for a person
};

}  // namespace memdecay
