#include "model/transformer/deletion_probe.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/check.h"

namespace memdecay {
namespace {

/// Where the other pages together got less than this share, a page has taken everything. Above it
/// double precision still tells the rest apart.
constexpr double kLeastRest = 1e-9;

std::size_t to_size(int value) {
  return static_cast<std::size_t>(value);
}

template <typename T>
void grow(std::vector<T>& buffer, std::size_t size) {
  if (buffer.size() < size) buffer.resize(size);
}

/// to += weight * from.
template <typename T>
void add_scaled(double* to, double weight, const T* from, std::size_t n) {
  for (std::size_t i = 0; i < n; ++i) to[i] += weight * static_cast<double>(from[i]);
}

/// Length of whole - scale * part. Eight sums side by side, so that the compiler may use vectors.
double distance(const double* whole, const float* part, double scale, std::size_t n) {
  constexpr std::size_t kSums = 8;
  double sums[kSums] = {};
  std::size_t i = 0;
  for (; i + kSums <= n; i += kSums) {
    for (std::size_t j = 0; j < kSums; ++j) {
      const double apart = whole[i + j] - scale * static_cast<double>(part[i + j]);
      sums[j] += apart * apart;
    }
  }
  for (; i < n; ++i) {
    const double apart = whole[i] - scale * static_cast<double>(part[i]);
    sums[i % kSums] += apart * apart;
  }
  return std::sqrt(((sums[0] + sums[1]) + (sums[2] + sums[3])) +
                   ((sums[4] + sums[5]) + (sums[6] + sums[7])));
}

}  // namespace

DeletionProbe::DeletionProbe(const LayerGroups& groups, int heads, const KernelTable& kernels,
                             const Workspace& workspace, const ShiftedQueries& shifted_queries,
                             int threads)
    : groups_(groups),
      kernels_(kernels),
      workspace_(workspace),
      shifted_queries_(shifted_queries),
      wholes_(to_size(threads)),
      scratch_(to_size(threads)),
      turned_(to_size(threads)) {
  const auto group_id = groups.without_window();
  if (!group_id.has_value()) return;
  layer_group_ = group_id->value();
  const KvPageLayout& layout = groups.groups[to_size(layer_group_)].layout;
  kv_heads_ = layout.kv_heads;
  group_ = heads / kv_heads_;
  head_dim_ = to_size(layout.head_dim);
  const std::size_t group = to_size(group_);
  for (Whole& whole : wholes_) {
    for (std::vector<double>* part : {&whole.max, &whole.sum, &whole.length}) part->resize(group);
    whole.out.resize(group * head_dim_);
  }
  for (auto& turned : turned_) turned.resize(group * head_dim_);
}

Status DeletionProbe::begin(const ForwardInput& input) {
  requests_.clear();
  runs_.clear();
  cells_ = 0;
  for (const SequenceSlice& slice : input.slices) {
    if (slice.probe != nullptr) add_request(slice);
  }
  if (requests_.empty()) return Status();
  reserve();
  const std::size_t scratch_bytes =
      kernels_.attention_scratch_bytes(groups_.groups[to_size(layer_group_)].layout, 1, group_);
  for (AnonymousMemory& scratch : scratch_) {
    if (scratch.size() >= scratch_bytes) continue;
    MEMDECAY_ASSIGN_OR_RETURN(scratch, AnonymousMemory::allocate(scratch_bytes, HugePages::kNever));
  }
  return Status();
}

void DeletionProbe::add_request(const SequenceSlice& slice) {
  PageProbe& probe = *slice.probe;
  MEMDECAY_CHECK(probe.stride >= 1 && probe.phase >= 0 && probe.phase < probe.stride);
  MEMDECAY_CHECK(probe.row >= -1 && probe.row < slice.rows);
  probe.heads = 0;
  std::fill(probe.pages.begin(), probe.pages.end(), PageAttention());
  if (layer_group_ < 0) return;
  const int pages = static_cast<int>(slice.views[to_size(layer_group_)].pages.size());
  MEMDECAY_CHECK(probe.pages.size() == to_size(pages));
  const int number = static_cast<int>(requests_.size());
  const int row = slice.first_row + (probe.row < 0 ? slice.rows - 1 : probe.row);
  requests_.push_back(
      {&slice, row, pages, (pages + kRunPages - 1) / kRunPages, cells_, runs_.size()});
  for (int kv_head = 0; kv_head < kv_heads_; ++kv_head) {
    for (int page = 0; page < pages; page += kRunPages)
      runs_.push_back({number, kv_head, page, std::min(pages, page + kRunPages)});
  }
  cells_ += to_size(kv_heads_) * to_size(pages);
}

void DeletionProbe::reserve() {
  const std::size_t page_heads = cells_ * to_size(group_);
  const std::size_t run_heads = runs_.size() * to_size(group_);
  grow(page_max_, page_heads);
  grow(page_sum_, page_heads);
  grow(page_out_, page_heads * head_dim_);
  grow(run_max_, run_heads);
  grow(run_sum_, run_heads);
  grow(run_out_, run_heads * head_dim_);
  tallies_.assign(cells_, Tally());
}

bool DeletionProbe::asks(const Request& request, int layer) const {
  const LayerGroups::Place& place = groups_.layers[to_size(layer)];
  const PageProbe& probe = *request.slice->probe;
  return place.group.value() == layer_group_ && place.layer_in_group % probe.stride == probe.phase;
}

bool DeletionProbe::probes(int layer) const {
  return std::any_of(requests_.begin(), requests_.end(),
                     [&](const Request& request) { return asks(request, layer); });
}

std::size_t DeletionProbe::page_head(const Run& run, int page) const {
  const Request& request = requests_[to_size(run.request)];
  return (request.first_cell + to_size(run.kv_head * request.pages + page)) * to_size(group_);
}

void DeletionProbe::attend_pages(ThreadTeam::Member& member, int layer) {
  const int units = static_cast<int>(runs_.size());
  for (int unit = member.take(); unit < units; unit = member.take()) {
    const Run& run = runs_[to_size(unit)];
    if (!asks(requests_[to_size(run.request)], layer)) continue;
    attend_run(run, layer, member.rank());
    sum_run(run, to_size(unit));
  }
}

void DeletionProbe::attend_run(const Run& run, int layer, int rank) {
  const Request& request = requests_[to_size(run.request)];
  const PagedKvView& view = request.slice->views[to_size(layer_group_)];
  const std::size_t kv_head_floats = to_size(group_) * head_dim_;
  AttentionArgs args;
  args.layout = &groups_.groups[to_size(layer_group_)].layout;
  args.layer = groups_.layers[to_size(layer)].layer_in_group;
  args.kv_head = run.kv_head;
  args.page_count = 1;
  const float* const q =
      workspace_.q + to_size(request.row * kv_heads_ + run.kv_head) * kv_head_floats;
  args.q = q;
  args.q_stride = static_cast<std::ptrdiff_t>(kv_head_floats) * kv_heads_;
  args.positions = workspace_.positions.data() + request.row;
  args.rows = 1;
  args.group = group_;
  args.scratch = scratch_[to_size(rank)].data();
  Position shift = 0;
  for (int page = run.page_begin; page < run.page_end; ++page) {
    const std::size_t head = page_head(run, page);
    args.pages = view.pages.data() + page;
    if (args.pages->rope_shift != shift) {
      shift = args.pages->rope_shift;
      float* turned = turned_[to_size(rank)].data();
      shifted_queries_.turn(shift, q, group_, turned);
      args.q = turned;
    }
    args.first_page_number = view.first_page_number + page;
    args.max = page_max_.data() + head;
    args.sum = page_sum_.data() + head;
    args.out = page_out_.data() + head * head_dim_;
    kernels_.attention(args);
  }
}

void DeletionProbe::sum_run(const Run& run, std::size_t number) {
  const std::size_t group = to_size(group_);
  for (std::size_t head = 0; head < group; ++head) {
    float max = -std::numeric_limits<float>::infinity();
    for (int page = run.page_begin; page < run.page_end; ++page)
      max = std::max(max, page_max_[page_head(run, page) + head]);
    double sum = 0;
    double* out = run_out_.data() + (number * group + head) * head_dim_;
    std::fill_n(out, head_dim_, 0.0);
    for (int page = run.page_begin; page < run.page_end; ++page) {
      const std::size_t part = page_head(run, page) + head;
      if (page_sum_[part] == 0.0F) continue;  // no slot of it is visible
      const double weight =
          std::exp2(static_cast<double>(page_max_[part]) - static_cast<double>(max));
      sum += weight * static_cast<double>(page_sum_[part]);
      add_scaled(out, weight, page_out_.data() + part * head_dim_, head_dim_);
    }
    run_max_[number * group + head] = static_cast<double>(max);
    run_sum_[number * group + head] = sum;
  }
}

void DeletionProbe::weigh_pages(ThreadTeam::Member& member, int layer) {
  Whole& whole = wholes_[to_size(member.rank())];
  const Run* joined = nullptr;
  const int units = static_cast<int>(runs_.size());
  for (int unit = member.take(); unit < units; unit = member.take()) {
    const Run& run = runs_[to_size(unit)];
    if (!asks(requests_[to_size(run.request)], layer)) continue;
    if (joined == nullptr || joined->request != run.request || joined->kv_head != run.kv_head)
      join_runs(run, whole);
    joined = &run;
    for (int page = run.page_begin; page < run.page_end; ++page) weigh_page(whole, run, page);
  }
}

void DeletionProbe::join_runs(const Run& any, Whole& whole) const {
  const Request& request = requests_[to_size(any.request)];
  const std::size_t group = to_size(group_);
  const std::size_t first = request.first_run + to_size(any.kv_head * request.runs_per_head);
  const std::size_t end = first + to_size(request.runs_per_head);
  for (std::size_t head = 0; head < group; ++head) {
    double max = -std::numeric_limits<double>::infinity(), sum = 0, square = 0;
    double* out = whole.out.data() + head * head_dim_;
    std::fill_n(out, head_dim_, 0.0);
    for (std::size_t run = first; run < end; ++run)
      max = std::max(max, run_max_[run * group + head]);
    for (std::size_t run = first; run < end; ++run) {
      const std::size_t part = run * group + head;
      if (run_sum_[part] == 0.0) continue;
      const double weight = std::exp2(run_max_[part] - max);
      sum += weight * run_sum_[part];
      add_scaled(out, weight, run_out_.data() + part * head_dim_, head_dim_);
    }
    for (std::size_t d = 0; d < head_dim_; ++d) {
      out[d] /= sum;
      square += out[d] * out[d];
    }
    whole.max[head] = max;
    whole.sum[head] = sum;
    whole.length[head] = std::sqrt(square);
  }
}

void DeletionProbe::weigh_page(const Whole& whole, const Run& run, int page) {
  const std::size_t first = page_head(run, page);
  Tally& tally = tallies_[first / to_size(group_)];
  for (std::size_t head = 0; head < to_size(group_); ++head) {
    const std::size_t part = first + head;
    if (page_sum_[part] == 0.0F) continue;  // no slot of it is visible: it changes nothing
    const double sum = static_cast<double>(page_sum_[part]);
    const double weighed = sum * std::exp2(static_cast<double>(page_max_[part]) - whole.max[head]);
    const double mass = weighed / whole.sum[head];
    const double rest = (whole.sum[head] - weighed) / whole.sum[head];
    constexpr double kCap = static_cast<double>(kMaxDeletionError);
    double error = kCap;
    if (rest >= kLeastRest) {
      const double change = mass / rest *
                            distance(whole.out.data() + head * head_dim_,
                                     page_out_.data() + part * head_dim_, 1.0 / sum, head_dim_);
      error = change == 0.0 ? 0.0 : std::min(kCap, change / whole.length[head]);
    }
    tally.error += error;
    tally.mass += mass;
    tally.max_error = std::max(tally.max_error, error);
  }
}

void DeletionProbe::end() {
  for (const Request& request : requests_) hand_out(request);
  requests_.clear();  // their slices are the caller's
}

void DeletionProbe::hand_out(const Request& request) const {
  PageProbe& probe = *request.slice->probe;
  for (int layer = 0; layer < static_cast<int>(groups_.layers.size()); ++layer)
    probe.heads += asks(request, layer) ? kv_heads_ * group_ : 0;
  if (probe.heads == 0) return;
  for (int page = 0; page < request.pages; ++page) {
    Tally all;
    for (int kv_head = 0; kv_head < kv_heads_; ++kv_head) {
      const Tally& tally = tallies_[request.first_cell + to_size(kv_head * request.pages + page)];
      all.error += tally.error;
      all.mass += tally.mass;
      all.max_error = std::max(all.max_error, tally.max_error);
    }
    probe.pages[to_size(page)] = {static_cast<float>(all.error / probe.heads),
                                  static_cast<float>(all.max_error),
                                  static_cast<float>(all.mass / probe.heads)};
  }
}

}  // namespace memdecay
