#include "eval/cells/cell_memories.h"

namespace memdecay {

Result<std::vector<SessionOptions>> cell_memories(std::span<const MemoryCell> cells,
                                                  const CellSession& session) {
  std::vector<SessionOptions> memories;
  for (const MemoryCell& cell : cells) {
    MEMDECAY_ASSIGN_OR_RETURN(SessionOptions memory,
                              cell.options(session.protected_bytes, session.total_bytes));
    memory.random_seed = session.seed;
    if (cell.is_oracle()) {
      if (session.future == nullptr)
        return Status(StatusCode::kInvalidArgument, "an oracle needs a recorded future");
      const FutureErrors& future = *session.future;
      memory.own_policy = [&future](const PolicyOptions& policy) { return future.oracle(policy); };
      memory.packs_pages = false;  // pages as they were recorded
    }
    memories.push_back(std::move(memory));
  }
  return memories;
}

}  // namespace memdecay
