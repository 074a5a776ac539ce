// PagedAttention: the attention phases of a layer, over the plans of one forward pass.
//
// begin() plans the pass (one thread, outside the team's run). Inside the run every member calls,
// per layer and with a barrier after each: store(), attend(), merge(). end() turns page sums into
// page mass (one thread). Owns the partial results and the kernels' scratch; sizes grow to the
// largest pass seen and stay.
#pragma once

#include <vector>

#include "kernels/kernel_table.h"
#include "model/transformer/attention_plan.h"
#include "model/transformer/forward_input.h"
#include "model/transformer/layer_groups.h"
#include "model/transformer/shifted_queries.h"
#include "model/transformer/workspace.h"
#include "sys/memory.h"
#include "sys/thread_team.h"

namespace memdecay {

class PagedAttention {
 public:
  /// All references outlive this object.
  PagedAttention(const LayerGroups& groups, int heads, const KernelTable& kernels,
                 Workspace& workspace, const ShiftedQueries& shifted_queries, int threads);

  Status begin(const ForwardInput& input);
  /// Writes K and V of all rows into their pages.
  void store(ThreadTeam::Member& member, int layer);
  /// Attention of all items; whole items land in workspace.attended.
  void attend(ThreadTeam::Member& member, int layer);
  /// Whether merge() has work for this layer: if not, its barrier can be skipped.
  bool needs_merge(int layer) const;
  /// Joins the split items into workspace.attended.
  void merge(ThreadTeam::Member& member, int layer);
  void end();

 private:
  const AttentionPlan& plan_of(int layer) const;
  const KvPageLayout& layout_of(int layer) const;
  const PagedKvView& view_of(int slice, int layer) const;
  void attend_item(const AttentionPlan::Item& item, int layer, int rank);
  void point_to_queries(const AttentionPlan::Item& item, Position shift, int rank,
                        AttentionArgs& args);

  /// Partial results of some segments of some rows of one kv head: max, sum [segment][rows][group],
  /// out [segment][rows][group][head_dim], page sums [segment][max_segment_pages][rows][group].
  struct Partials {
    std::vector<float> stats;
    std::vector<float> out;
    std::vector<float> page_sums;
    std::vector<float> scales;  ///< [segments][group], of the rows being merged
  };
  struct PartialView {
    float* max;
    float* sum;
    float* out;
    float* page_sum;  ///< null when no mass is wanted
  };
  PartialView partial_view(Partials& partials, int slot, int rows_capacity) const;
  void reserve(Partials& partials, int slots, int rows_capacity);
  void merge_partials(Partials& partials, const AttentionPlan::Merge& rows, int rows_capacity,
                      int layer, std::vector<float>& scales);
  void add_mass(Partials& partials, const AttentionPlan::Merge& rows, int row, int rows_capacity,
                int layer, const std::vector<float>& scales);
  void sum_mass(int slice, std::size_t group, float* out) const;

  const LayerGroups& groups_;
  const KernelTable& kernels_;
  Workspace& workspace_;
  const ShiftedQueries& shifted_queries_;
  const int group_;  ///< query heads per kv head
  const int head_dim_;
  const int kv_heads_;

  const ForwardInput* input_ = nullptr;
  bool wants_mass_ = false;
  std::vector<AttentionPlan> plans_;  ///< by layer group
  int max_segment_pages_ = 0;
  Partials split_;                          ///< split items, by partial slot
  std::vector<Partials> own_;               ///< by rank: the segments of one whole item
  std::vector<AnonymousMemory> scratch_;    ///< by rank
  std::vector<std::vector<float>> turned_;  ///< by rank: an item's queries, turned by a shift
  /// By layer group: [row blocks][kv heads][max pages]; each (block, head) is written by one member
  /// at a time.
  std::vector<std::vector<float>> block_mass_;
};

}  // namespace memdecay
