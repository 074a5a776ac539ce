// Cell memories: the session options of measured cells, for one session.
//
// Pure values; any thread.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "engine/engine_options.h"
#include "eval/cells/memory_cell.h"
#include "eval/metrics/future_errors.h"

namespace memdecay {

/// What budgets are shares of, and what an oracle knows.
struct CellSession {
  std::uint64_t protected_bytes = 0;     ///< of the system text, in fp16
  std::uint64_t total_bytes = 0;         ///< of all that counts for budgets, in fp16
  std::uint64_t seed = 1;                ///< of the policy random
  const FutureErrors* future = nullptr;  ///< outlives the sessions; for oracles
};

/// [cells] in order. kInvalidArgument for an oracle without a future, and what
/// MemoryCell::options() says.
Result<std::vector<SessionOptions>> cell_memories(std::span<const MemoryCell> cells,
                                                  const CellSession& session);

}  // namespace memdecay
