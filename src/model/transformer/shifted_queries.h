// ShiftedQueries: the queries of a pass as pages see them that have moved virtually.
//
// When gaps are closed a page moves by rope_shift, but its keys stay rotated by where they were
// written. A score depends on the angle between query and key only, so instead of the keys the
// query is turned, by -rope_shift: a query at place P meets the page as one at P - rope_shift would
// have met it before it moved. That works for pages in every form, and costs a rotation of the
// query per distinct shift where rewriting keys would cost one per key. Rotation: Su et al. 2021.
//
// begin() (one thread, before the team's run) computes the angles of the pass's shifts; turn() then
// serves any number of threads. Layers with a window have no gaps and never come here.
// Cost: begin() looks at every page of the pass; where the shifts are not those of the pass before,
// it computes them (about 20 ns a pair and shift). turn() rotates `heads` heads.
#pragma once

#include <span>
#include <vector>

#include "kernels/kernel_table.h"
#include "model/gguf/model_config.h"
#include "model/transformer/forward_input.h"
#include "model/transformer/layer_groups.h"

namespace memdecay {

class ShiftedQueries {
 public:
  /// `divisors` is rope_freqs.weight or empty. The kernels outlive this object.
  ShiftedQueries(const ModelConfig& config, std::span<const float> divisors,
                 const KernelTable& kernels);

  /// REQUIRES: pages of groups with a window have not moved.
  void begin(const ForwardInput& input, const LayerGroups& groups);
  /// Whether some page of the pass has moved.
  bool any() const { return !shifts_.empty(); }
  /// Writes `heads` heads of q [heads][head_dim] as pages with this shift see them. REQUIRES: some
  /// page of the pass has the shift, or it is 0.
  void turn(Position shift, const float* q, int heads, float* out) const;

 private:
  void gather(const ForwardInput& input, const LayerGroups& groups);

  const KernelTable& kernels_;
  const int head_dim_;
  const RopePairing pairing_;
  const std::vector<double> frequencies_;  ///< [pairs], radians per position
  std::vector<Position> shifts_;           ///< of the pass, ascending, without 0
  std::vector<Position> found_;
  std::vector<float> cos_, sin_;  ///< [shifts][pairs], of the angle -shift
};

}  // namespace memdecay
