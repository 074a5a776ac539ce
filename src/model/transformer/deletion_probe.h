// DeletionProbe: what one query's attention says about each page: the share it gave to the page,
// and how much its output would change if the page were deleted.
//
// With m_b the share of attention that page b got from a query head, o the head's output and o_b
// the output of the page alone, deleting b changes o by exactly m_b / (1 - m_b) * (o - o_b); the
// deletion error is the length of that over the length of o (design.md, section 6). The probe runs
// the attention kernel once more for the asking row of each slice, page by page, in the layers that
// the slice's PageProbe names, and joins the pages itself: in double precision from the kernel's
// partial results, so that o - o_b is right where a page got nearly everything. It reads queries,
// keys and values and writes only its own buffers: hidden states, keys and values are the same bits
// with and without it. The evidence's bits do not depend on the number of threads, nor on who else
// is in the batch. Layers with a window are never probed: their pages go by the window.
//
// begin() plans the pass (one thread, outside the team's run). Inside the run every member asks
// probes() per layer, after its attention is done, and where it is true calls attend_pages(), then
// after a barrier weigh_pages(). Both take units from the phase's counter. end() hands the evidence
// out (one thread).
//
// Cost of a probed layer: two to two and a half times its decode attention, for the one row.
// Memory: (head_dim + 2) floats per page and query head of the slices that ask; grows to the
// largest pass seen and stays.
#pragma once

#include <vector>

#include "kernels/kernel_table.h"
#include "model/transformer/forward_input.h"
#include "model/transformer/layer_groups.h"
#include "model/transformer/shifted_queries.h"
#include "model/transformer/workspace.h"
#include "sys/memory.h"
#include "sys/thread_team.h"

namespace memdecay {

class DeletionProbe {
 public:
  /// Most pages of one unit of work. The cut depends on nothing else, which keeps the order of
  /// sums.
  static constexpr int kRunPages = 32;

  /// All references outlive this object.
  DeletionProbe(const LayerGroups& groups, int heads, const KernelTable& kernels,
                const Workspace& workspace, const ShiftedQueries& shifted_queries, int threads);

  /// REQUIRES: probes are within their slices, one PageAttention per page.
  Status begin(const ForwardInput& input);
  /// Whether some slice asks for this layer: if not, there is nothing to do for it.
  bool probes(int layer) const;
  /// Attention of every page alone, and the sums of each run of pages.
  void attend_pages(ThreadTeam::Member& member, int layer);
  /// The evidence of every page, from its own part and the sums of all runs.
  void weigh_pages(ThreadTeam::Member& member, int layer);
  void end();

 private:
  /// A slice that asks. Its pages have cells [kv heads][pages] from first_cell on, and its runs
  /// come kv head by kv head from first_run on.
  struct Request {
    const SequenceSlice* slice;
    int row;  ///< of the batch
    int pages;
    int runs_per_head;
    std::size_t first_cell;
    std::size_t first_run;
  };
  /// Consecutive pages of one request, one kv head: what a member takes at a time.
  struct Run {
    int request;
    int kv_head;
    int page_begin, page_end;
  };
  /// What the probed layers have said about one page and kv head so far.
  struct Tally {
    double error = 0;
    double mass = 0;
    double max_error = 0;
  };
  /// The attention of a kv head's query heads over all pages; one a member.
  struct Whole {
    std::vector<double> max, sum, length;  ///< [group]; length: of out
    std::vector<double> out;               ///< [group][head_dim], normalized
  };

  void add_request(const SequenceSlice& slice);
  void reserve();
  bool asks(const Request& request, int layer) const;
  /// Number of the first query head of (request, kv head, page) in the arrays by cell.
  std::size_t page_head(const Run& run, int page) const;
  void attend_run(const Run& run, int layer, int rank);
  void sum_run(const Run& run, std::size_t number);
  void join_runs(const Run& any, Whole& whole) const;
  void weigh_page(const Whole& whole, const Run& run, int page);
  void hand_out(const Request& request) const;

  const LayerGroups& groups_;
  const KernelTable& kernels_;
  const Workspace& workspace_;
  const ShiftedQueries& shifted_queries_;
  int layer_group_ = -1;  ///< the one without a window; -1 where every layer has one
  int kv_heads_ = 0;
  int group_ = 0;  ///< query heads per kv head
  std::size_t head_dim_ = 0;

  std::vector<Request> requests_;
  std::vector<Run> runs_;
  std::size_t cells_ = 0;
  // Of each page alone: max and sum [cell][group], out [cell][group][head_dim].
  std::vector<float> page_max_, page_sum_, page_out_;
  // Of each run: max and sum [run][group], out [run][group][head_dim].
  std::vector<double> run_max_, run_sum_, run_out_;
  std::vector<Tally> tallies_;              ///< by cell; each written by one member at a time
  std::vector<Whole> wholes_;               ///< by rank
  std::vector<AnonymousMemory> scratch_;    ///< by rank
  std::vector<std::vector<float>> turned_;  ///< by rank: a row's queries, turned by a shift
};

}  // namespace memdecay
