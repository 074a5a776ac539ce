#include "model/transformer/paged_attention.h"

#include <algorithm>
#include <array>

#include "core/check.h"

namespace memdecay {
namespace {

// Rows that one split item can have; AttentionPlan cuts slices of at most this many rows along
// their segments.
constexpr int kSplitRows = AttentionPlan::kMostSplitRows;

std::size_t to_size(int value) {
  return static_cast<std::size_t>(value);
}

void grow(std::vector<float>& buffer, std::size_t size) {
  if (buffer.size() < size) buffer.resize(size);
}

}  // namespace

PagedAttention::PagedAttention(const LayerGroups& groups, int heads, const KernelTable& kernels,
                               Workspace& workspace, const ShiftedQueries& shifted_queries,
                               int threads)
    : groups_(groups),
      kernels_(kernels),
      workspace_(workspace),
      shifted_queries_(shifted_queries),
      group_(heads / groups.groups[0].layout.kv_heads),
      head_dim_(groups.groups[0].layout.head_dim),
      kv_heads_(groups.groups[0].layout.kv_heads),
      plans_(groups.groups.size()),
      own_(to_size(threads)),
      scratch_(to_size(threads)),
      turned_(to_size(threads)),
      block_mass_(groups.groups.size()) {}

const AttentionPlan& PagedAttention::plan_of(int layer) const {
  return plans_[groups_.layers[to_size(layer)].group.index()];
}

const KvPageLayout& PagedAttention::layout_of(int layer) const {
  return groups_.groups[groups_.layers[to_size(layer)].group.index()].layout;
}

const PagedKvView& PagedAttention::view_of(int slice, int layer) const {
  return input_->slices[to_size(slice)].views[groups_.layers[to_size(layer)].group.index()];
}

Status PagedAttention::begin(const ForwardInput& input) {
  input_ = &input;
  wants_mass_ = std::any_of(input.slices.begin(), input.slices.end(),
                            [](const SequenceSlice& slice) { return !slice.page_mass.empty(); });
  int split_slots = 0, segments = 0;
  std::size_t scratch_bytes = 0;
  max_segment_pages_ = 0;
  for (std::size_t number = 0; number < plans_.size(); ++number) {
    const LayerGroups::Group& group = groups_.groups[number];
    AttentionPlan& plan = plans_[number];
    plan.build(input, static_cast<int>(number), group.layout, group.window);
    split_slots = std::max(split_slots, plan.partial_slots());
    segments = std::max(segments, plan.max_segments());
    max_segment_pages_ = std::max(max_segment_pages_, plan.max_segment_pages());
    scratch_bytes = std::max(
        scratch_bytes, kernels_.attention_scratch_bytes(group.layout, kAttentionRowBlock, group_));
    if (wants_mass_)
      block_mass_[number].assign(to_size(plan.row_blocks() * kv_heads_ * plan.max_pages()), 0.0F);
  }
  if (shifted_queries_.any()) {
    for (auto& turned : turned_) grow(turned, to_size(kAttentionRowBlock * group_ * head_dim_));
  }
  reserve(split_, split_slots, kSplitRows);
  for (Partials& own : own_) reserve(own, segments, kAttentionRowBlock);
  for (AnonymousMemory& scratch : scratch_) {
    if (scratch.size() >= scratch_bytes) continue;
    MEMDECAY_ASSIGN_OR_RETURN(scratch, AnonymousMemory::allocate(scratch_bytes, HugePages::kNever));
  }
  return Status();
}

void PagedAttention::reserve(Partials& partials, int slots, int rows_capacity) {
  const std::size_t heads = to_size(slots) * to_size(rows_capacity * group_);
  grow(partials.stats, 2 * heads);
  grow(partials.out, heads * to_size(head_dim_));
  if (wants_mass_) grow(partials.page_sums, heads * to_size(max_segment_pages_));
}

PagedAttention::PartialView PagedAttention::partial_view(Partials& partials, int slot,
                                                         int rows_capacity) const {
  const std::size_t heads = to_size(rows_capacity * group_);
  const std::size_t first = to_size(slot) * heads;
  float* stats = partials.stats.data() + 2 * first;
  return {stats, stats + heads, partials.out.data() + first * to_size(head_dim_),
          wants_mass_ ? partials.page_sums.data() + first * to_size(max_segment_pages_) : nullptr};
}

void PagedAttention::store(ThreadTeam::Member& member, int layer) {
  const KvPageLayout& layout = layout_of(layer);
  const int layer_in_group = groups_.layers[to_size(layer)].layer_in_group;
  const auto& stores = plan_of(layer).stores();
  const int units = static_cast<int>(stores.size()) * kv_heads_;
  const std::ptrdiff_t stride = std::ptrdiff_t{kv_heads_} * head_dim_;
  for (int unit = member.take(); unit < units; unit = member.take()) {
    const AttentionPlan::Store& run = stores[to_size(unit / kv_heads_)];
    const int head = unit % kv_heads_;
    const std::ptrdiff_t offset = run.first_row * stride + std::ptrdiff_t{head} * head_dim_;
    StoreKvArgs args;
    args.layout = &layout;
    args.head = view_of(run.slice, layer).pages[to_size(run.page)].base +
                layout.head_offset(layer_in_group, head);
    args.first_slot = run.first_slot;
    args.tokens = run.tokens;
    args.k = workspace_.k + offset;
    args.v = workspace_.v + offset;
    args.k_stride = args.v_stride = stride;
    kernels_.store_kv(args);
  }
}

void PagedAttention::attend(ThreadTeam::Member& member, int layer) {
  const auto& items = plan_of(layer).items();
  const int units = static_cast<int>(items.size());
  for (int unit = member.take(); unit < units; unit = member.take()) {
    attend_item(items[to_size(unit)], layer, member.rank());
  }
}

void PagedAttention::attend_item(const AttentionPlan::Item& item, int layer, int rank) {
  const LayerGroups::Place place = groups_.layers[to_size(layer)];
  const PagedKvView& view = view_of(item.slice, layer);
  const auto segments = plan_of(layer).segments(item.slice);
  AttentionArgs args;
  args.layout = &layout_of(layer);
  args.layer = place.layer_in_group;
  args.kv_head = item.kv_head;
  args.window = groups_.groups[place.group.index()].window;
  args.positions = workspace_.positions.data() + item.first_row;
  args.rows = item.rows;
  args.group = group_;
  args.scratch = scratch_[to_size(rank)].data();
  Partials& partials = item.whole ? own_[to_size(rank)] : split_;
  const int capacity = item.whole ? kAttentionRowBlock : kSplitRows;
  Position shift = 0;
  point_to_queries(item, shift, rank, args);
  for (int number = item.segment_begin; number < item.segment_end; ++number) {
    const AttentionPlan::Segment& segment = segments[to_size(number)];
    const int slot = item.whole ? number : item.partial_slot;
    const PartialView partial = partial_view(partials, slot, capacity);
    if (segment.rope_shift != shift) point_to_queries(item, shift = segment.rope_shift, rank, args);
    args.pages = view.pages.data() + segment.page_begin;
    args.page_count = segment.page_end - segment.page_begin;
    args.first_page_number = view.first_page_number + segment.page_begin;
    args.max = partial.max;
    args.sum = partial.sum;
    args.out = partial.out;
    args.page_sum = partial.page_sum;
    kernels_.attention(args);
  }
  if (!item.whole) return;
  const AttentionPlan::Merge rows{
      item.slice, item.kv_head, item.first_row, item.rows, item.segment_end, 0, item.row_block};
  merge_partials(partials, rows, capacity, layer, own_[to_size(rank)].scales);
}

/// Points args at the item's queries as pages with this shift see them.
void PagedAttention::point_to_queries(const AttentionPlan::Item& item, Position shift, int rank,
                                      AttentionArgs& args) {
  const std::ptrdiff_t head_row = std::ptrdiff_t{group_} * head_dim_;
  const std::ptrdiff_t row_stride = kv_heads_ * head_row;
  args.q = workspace_.q + item.first_row * row_stride + item.kv_head * head_row;
  args.q_stride = row_stride;
  if (shift == 0) return;
  float* turned = turned_[to_size(rank)].data();
  for (int row = 0; row < item.rows; ++row)
    shifted_queries_.turn(shift, args.q + row * row_stride, group_, turned + row * head_row);
  args.q = turned;
  args.q_stride = head_row;
}

bool PagedAttention::needs_merge(int layer) const {
  return !plan_of(layer).merges().empty();
}

void PagedAttention::merge(ThreadTeam::Member& member, int layer) {
  const auto& merges = plan_of(layer).merges();
  const int units = static_cast<int>(merges.size());
  for (int unit = member.take(); unit < units; unit = member.take()) {
    merge_partials(split_, merges[to_size(unit)], kSplitRows, layer,
                   own_[to_size(member.rank())].scales);
  }
}

void PagedAttention::merge_partials(Partials& partials, const AttentionPlan::Merge& rows,
                                    int rows_capacity, int layer, std::vector<float>& scales) {
  const PartialView first = partial_view(partials, rows.first_partial_slot, rows_capacity);
  const std::ptrdiff_t slot_heads = std::ptrdiff_t{rows_capacity} * group_;
  grow(scales, to_size(rows.segments * group_));
  const SequenceSlice& slice = input_->slices[to_size(rows.slice)];
  const int first_counted = slice.first_row + slice.mass_from_row - rows.first_row;
  for (int row = 0; row < rows.rows; ++row) {
    const bool counts = wants_mass_ && row >= first_counted;
    MergeAttentionArgs args;
    args.segments = rows.segments;
    args.group = group_;
    args.head_dim = head_dim_;
    args.max = first.max + row * group_;
    args.sum = first.sum + row * group_;
    args.partial = first.out + std::ptrdiff_t{row} * group_ * head_dim_;
    args.stat_stride = 2 * slot_heads;
    args.out_stride = slot_heads * head_dim_;
    args.out =
        workspace_.attended +
        (std::ptrdiff_t{rows.first_row + row} * kv_heads_ + rows.kv_head) * group_ * head_dim_;
    args.segment_scale = counts ? scales.data() : nullptr;
    kernels_.merge_attention(args);
    if (counts) add_mass(partials, rows, row, rows_capacity, layer, scales);
  }
}

void PagedAttention::add_mass(Partials& partials, const AttentionPlan::Merge& rows, int row,
                              int rows_capacity, int layer, const std::vector<float>& scales) {
  const std::size_t group_number = groups_.layers[to_size(layer)].group.index();
  const AttentionPlan& plan = plans_[group_number];
  float* mass = block_mass_[group_number].data() +
                std::ptrdiff_t{rows.row_block * kv_heads_ + rows.kv_head} * plan.max_pages();
  const auto segments = plan.segments(rows.slice);
  for (int number = 0; number < rows.segments; ++number) {
    const AttentionPlan::Segment& segment = segments[to_size(number)];
    const PartialView partial =
        partial_view(partials, rows.first_partial_slot + number, rows_capacity);
    const float* scale = scales.data() + number * group_;
    for (int page = segment.page_begin; page < segment.page_end; ++page) {
      const float* sums =
          partial.page_sum + ((page - segment.page_begin) * rows.rows + row) * group_;
      for (int head = 0; head < group_; ++head) mass[page] += sums[head] * scale[head];
    }
  }
}

void PagedAttention::end() {
  if (!wants_mass_) return;
  for (std::size_t group = 0; group < plans_.size(); ++group) {
    for (std::size_t number = 0; number < input_->slices.size(); ++number) {
      const SequenceSlice& slice = input_->slices[number];
      if (!slice.page_mass.empty())
        sum_mass(static_cast<int>(number), group, slice.page_mass[group]);
    }
  }
}

void PagedAttention::sum_mass(int slice, std::size_t group, float* out) const {
  const AttentionPlan& plan = plans_[group];
  const std::size_t pages = input_->slices[to_size(slice)].views[group].pages.size();
  std::fill_n(out, pages, 0.0F);
  for (int block = plan.first_row_block(slice); block < plan.first_row_block(slice + 1); ++block) {
    for (int head = 0; head < kv_heads_; ++head) {
      const float* mass =
          block_mass_[group].data() + std::ptrdiff_t{block * kv_heads_ + head} * plan.max_pages();
      for (std::size_t page = 0; page < pages; ++page) out[page] += mass[page];
    }
  }
}

}  // namespace memdecay
