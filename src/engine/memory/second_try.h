// with_second_try: room that the budget may have once something gave way.
#pragma once

#include "kv/kv_budget.h"

namespace memdecay {

/// What `attempt()` says, a Room; where the budget had none, what it says again when
/// `give_way(missing bytes)` has freed something.
template <typename Attempt, typename GiveWay>
Room with_second_try(const Attempt& attempt, const GiveWay& give_way) {
  const Room room = attempt();
  if (room.refusal != Room::Refusal::kBudget || !give_way(room.missing_bytes)) return room;
  return attempt();
}

}  // namespace memdecay
