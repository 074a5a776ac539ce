#include "model/transformer/shifted_queries.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "core/check.h"

namespace memdecay {

ShiftedQueries::ShiftedQueries(const ModelConfig& config, std::span<const float> divisors,
                               const KernelTable& kernels)
    : kernels_(kernels),
      head_dim_(config.head_dim),
      pairing_(config.rope.order == RopeOrder::kInterleaved ? RopePairing::kInterleaved
                                                            : RopePairing::kHalves),
      frequencies_(rope_frequencies(config.rope, divisors)) {}

void ShiftedQueries::begin(const ForwardInput& input, const LayerGroups& groups) {
  gather(input, groups);
  if (found_ == shifts_) return;  // so it is in all steps of decode but few
  std::swap(shifts_, found_);
  cos_.clear();
  sin_.clear();
  for (const Position shift : shifts_) {
    for (const double frequency : frequencies_) {
      const double angle = -frequency * static_cast<double>(shift);
      cos_.push_back(static_cast<float>(std::cos(angle)));
      sin_.push_back(static_cast<float>(std::sin(angle)));
    }
  }
}

void ShiftedQueries::gather(const ForwardInput& input, const LayerGroups& groups) {
  found_.clear();
  for (const SequenceSlice& slice : input.slices) {
    for (std::size_t group = 0; group < groups.groups.size(); ++group) {
      Position last = 0;
      for (const KvPageRef& page : slice.views[group].pages) {
        if (page.rope_shift == last) continue;
        MEMDECAY_CHECK(groups.groups[group].window == 0);
        last = page.rope_shift;
        if (last != 0) found_.push_back(last);
      }
    }
  }
  std::sort(found_.begin(), found_.end());
  found_.erase(std::unique(found_.begin(), found_.end()), found_.end());
}

void ShiftedQueries::turn(Position shift, const float* q, int heads, float* out) const {
  std::copy_n(q, std::ptrdiff_t{heads} * head_dim_, out);
  if (shift == 0) return;
  const auto place = std::lower_bound(shifts_.begin(), shifts_.end(), shift);
  MEMDECAY_CHECK(place != shifts_.end() && *place == shift);
  const auto pairs = static_cast<int>(frequencies_.size());
  const std::ptrdiff_t first = (place - shifts_.begin()) * pairs;
  kernels_.rope(
      {out, heads, head_dim_, pairs, pairing_, cos_.data() + first, sin_.data() + first, 1.0F});
}

}  // namespace memdecay
