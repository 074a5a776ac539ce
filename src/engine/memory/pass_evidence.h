// PassEvidence: what one forward pass says about the evictable pages of one session.
//
// ask() before the pass names what the session's policy wants to know (docs/decisions/0308): the
// transformer writes it here, so this stays where it is until the pass is over. tell() hands it to
// the session's memory. Sessions that never evict are asked nothing. One thread, the engine's.
#pragma once

#include <span>
#include <vector>

#include "engine/memory/session_memory.h"
#include "model/transformer/forward_input.h"
#include "model/transformer/layer_groups.h"

namespace memdecay {

class PassEvidence {
 public:
  /// The model's layers as evidence sees them.
  struct Layers {
    const LayerGroups& groups;
    LayerGroupId evictable;  ///< the group whose pages are judged
    int heads = 0;           ///< query heads of a layer
  };

  /// Asks in `slice`, of the session's pages `views` (one view a group). `probes` counts those of
  /// the session so far: each takes other layers.
  void ask(const SessionMemory& memory, const Layers& layers, std::span<const PagedKvView> views,
           int& probes, SequenceSlice& slice);
  /// REQUIRES: the pass is over, and `memory` was synchronized since.
  void tell(const Layers& layers, const SequenceSlice& slice, SessionMemory& memory) const;

 private:
  std::vector<std::vector<float>> mass_;  ///< [groups][pages]; empty: not asked for
  std::vector<float*> mass_of_group_;
  PageProbe probe_;
  std::vector<PageAttention> pages_;
};

}  // namespace memdecay
