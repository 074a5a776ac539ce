// Watermarks: when to make room and how much (A4).
//
// Above the high mark eviction is pressed and goes on until the low mark; between the gentle mark
// and there, only what is already far below the threshold goes. Hysteresis is the one state: once
// pressed, pressed until the low mark, however many steps that takes. One object a budget (a
// session, or the pool). Threads: one owner. O(1).
#pragma once

#include <cstdint>

#include "policy/eviction_plan.h"

namespace memdecay {

/// Shares of the budget. REQUIRES: 0 < gentle <= low <= high <= 1.
struct WatermarkOptions {
  double high = 0.80;
  double low = 0.70;
  double gentle = 0.60;
};

class Watermarks {
 public:
  explicit Watermarks(const WatermarkOptions& options = {});
  /// What to ask of a policy now; budget_bytes >= live_bytes in it means nothing to do. A budget of
  /// the largest number is none.
  PlanRequest demand(std::uint64_t live_bytes, std::uint64_t budget_bytes);
  bool pressed() const { return pressed_; }

 private:
  WatermarkOptions options_;
  bool pressed_ = false;
};

}  // namespace memdecay
