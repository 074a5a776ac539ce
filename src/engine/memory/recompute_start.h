// recompute_start: from where on dropped history is to be computed again at a turn's border, for
// sessions whose policy lives by that (docs/decisions/0309).
//
// Pure; the engine's thread. Cost: O(pages * log tokens).
#pragma once

#include <cstddef>
#include <cstdint>

#include "engine/memory/session_memory.h"

namespace memdecay {

/// Bytes that the session's pages may take when its history is computed again: a part of what its
/// own budget and the cache's leave it.
std::uint64_t refill_bytes(const SessionMemory& memory, const KvBudget& budget);

/// The first position of the newest part of the history that has room in `room` bytes with
/// `coming` tokens behind it; `size`, the tokens of the history, where nothing is to be computed
/// again. `earliest_cut` is the sequence's.
Position recompute_start(const SessionMemory& memory, Position size, Position earliest_cut,
                         std::size_t coming, std::uint64_t room);

}  // namespace memdecay
