// PlayedTurn: what one turn of a session cost and what it left, and TurnMeter, which takes it down.
//
// A meter is made before the turn and read behind it; what the request itself says comes from its
// result. One thread, the engine's. Cost: reading is O(pages + regions).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "engine/engine.h"
#include "engine/memory/prompt_labels.h"

namespace memdecay {

struct PlayedTurn {
  int turn = 0;                     ///< from 1
  int new_tokens = 0;               ///< of the input, never seen before
  int reused_tokens = 0;            ///< of the input, not computed: in the session, evicted ones
                                    ///< included, or in prefixes that other sessions left
  int cached_tokens = 0;            ///< of those, from the prefixes
  int recomputed_tokens = 0;        ///< of the input, in the session before and computed again
  int computed_tokens = 0;          ///< rows of forward passes
  int generated_tokens = 0;         ///< written, or forced
  int agreed_tokens = 0;            ///< of those, what the model itself would write there, greedily
  std::int64_t evicted_tokens = 0;  ///< of the session, by this turn
  std::uint64_t live_bytes = 0;     ///< of the budget, at the turn's end
  std::uint64_t peak_bytes = 0;     ///< the most of this turn
  std::vector<PositionRun> kept;    ///< positions whose keys and values are there at the turn's end
  std::int64_t prompt_ns = 0;
  std::vector<std::int64_t> step_ns;  ///< of each decode step
  std::string text;
  PromptLabels labels;          ///< of the turn's tokens, as far as its prompt goes
  int pinned_tokens = 0;        ///< of those, what asks to be kept whatever happens
  int pins_refused_tokens = 0;  ///< of those, what is not protected, since pins have a cap
  std::string miss;             ///< why what should have been reused was not; else empty

  double ms_per_token() const;
  /// What a share of the decode steps are no slower than, in ms (quantile_of()); 0 without steps.
  /// REQUIRES: 0 <= share <= 1.
  double step_ms(double share) const;
};

/// A turn as a generated answer tells it; the memory's part is TurnMeter's.
PlayedTurn turn_of(const GenerationResult& result, PromptLabels labels);

class TurnMeter {
 public:
  /// The engine's peak counts from now.
  TurnMeter(Engine& engine, const Session& session);
  /// Fills in bytes, what is kept, and which pins hold, from the turn's labels.
  void read(PlayedTurn& turn) const;

 private:
  Engine& engine_;
  const Session& session_;
};

}  // namespace memdecay
