#include "engine/memory/pass_evidence.h"

namespace memdecay {
namespace {

/// One layer in so many has its deletion error measured in a pass, another one the next time. A
/// number that divides the layers makes every pass cost the same.
int probe_stride(int layers) {
  for (int stride = 15; stride > 8; --stride)
    if (layers % stride == 0) return stride;
  return 8;
}

/// The deletion error is measured where a pass completes so many tokens: a probed layer is attended
/// once more, and what a page is worth does not change from one token to the next.
constexpr Position kProbeTokens = 4;

}  // namespace

void PassEvidence::ask(const SessionMemory& memory, const Layers& layers,
                       std::span<const PagedKvView> views, int& probes, SequenceSlice& slice) {
  const bool all_queries = memory.wants(EvidenceKind::kAttentionMass);
  if (all_queries || memory.wants(EvidenceKind::kLastQueryMass)) {
    for (const PagedKvView& view : views)
      mass_of_group_.push_back(mass_.emplace_back(view.pages.size()).data());
    slice.page_mass = mass_of_group_;
    slice.mass_from_row = all_queries ? 0 : slice.rows - 1;
  }
  const Position end = slice.first_position + slice.rows;
  const bool due = end / kProbeTokens > slice.first_position / kProbeTokens;
  if (!due || !memory.wants(EvidenceKind::kDeletionError)) return;
  pages_.resize(views[layers.evictable.index()].pages.size());
  const int stride = probe_stride(layers.groups.groups[layers.evictable.index()].layout.layers);
  probe_ = {-1, stride, probes++ % stride, pages_, 0};
  slice.probe = &probe_;
}

void PassEvidence::tell(const Layers& layers, const SequenceSlice& slice,
                        SessionMemory& memory) const {
  const QueryPhase phase = memory.phase_at(slice.first_position + slice.rows - 1);
  if (!mass_.empty()) {
    const int layer_count = layers.groups.groups[layers.evictable.index()].layout.layers;
    const float all_heads = static_cast<float>(layers.heads) * static_cast<float>(layer_count);
    std::vector<float> values = mass_[layers.evictable.index()];
    for (float& value : values) value /= all_heads;
    const bool all_queries = memory.wants(EvidenceKind::kAttentionMass);
    memory.observe(all_queries ? EvidenceKind::kAttentionMass : EvidenceKind::kLastQueryMass, phase,
                   values);
  }
  if (probe_.heads == 0) return;
  std::vector<float> errors;
  for (const PageAttention& page : pages_)
    errors.push_back(0.5F * (page.mean_error + page.max_error));
  memory.observe(EvidenceKind::kDeletionError, phase, errors);
}

}  // namespace memdecay
