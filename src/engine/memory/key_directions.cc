#include "engine/memory/key_directions.h"

#include <algorithm>
#include <utility>

#include "core/check.h"
#include "core/slot_of.h"
#include "model/transformer/key_similarity.h"
#include "quant/half.h"

namespace memdecay {

KeyDirections::KeyDirections(const KvPageLayout& layout)
    : layout_(layout),
      direction_(key_direction_size(layout)),
      unit_(direction_.size()),
      sum_(direction_.size()) {}

std::uint64_t KeyDirections::page_bytes(const KvPageLayout& layout) {
  return key_direction_size(layout) * sizeof(std::uint16_t) + sizeof(Entry);
}

bool KeyDirections::knows(TrackedPageId page) const {
  return page.index() < entries_.size() && !entries_[page.index()].sum.empty();
}

/// Halves of sums of at most 64 unit keys, added up in double: no bit is lost below 2^22 pages.
void KeyDirections::add_to_direction(const Entry& entry, double sign) {
  for (std::size_t i = 0; i < direction_.size(); ++i)
    direction_[i] += sign * static_cast<double>(half_to_float(entry.sum[i]));
}

void KeyDirections::read(TrackedPageId page, const KvPageRef& ref, BudgetReservation charge) {
  MEMDECAY_CHECK(!knows(page) && charge.bytes() == page_bytes(layout_));
  Entry& entry = slot_of(entries_, page.index());
  std::fill(sum_.begin(), sum_.end(), 0.0F);
  add_key_directions(layout_, ref, sum_);
  entry.sum.resize(sum_.size());
  std::transform(sum_.begin(), sum_.end(), entry.sum.begin(), float_to_half);
  entry.tokens = ref.filled;
  held_bytes_ += charge.bytes();
  entry.charge = std::move(charge);
  add_to_direction(entry, 1.0);
}

void KeyDirections::forget(TrackedPageId page) {
  if (!knows(page)) return;
  Entry& entry = entries_[page.index()];
  add_to_direction(entry, -1.0);
  held_bytes_ -= entry.charge.bytes();
  entry = Entry();
}

float KeyDirections::similarity(const Entry& entry) {
  std::transform(entry.sum.begin(), entry.sum.end(), sum_.begin(), half_to_float);
  return key_similarity(layout_, sum_, entry.tokens, unit_);
}

std::span<const PageEvidence> KeyDirections::judge(int most) {
  judged_.clear();
  scale_to_unit(layout_, direction_, unit_);
  for (std::size_t seen = 0; seen < entries_.size() && static_cast<int>(judged_.size()) < most;
       ++seen) {
    if (next_ >= entries_.size()) next_ = 0;
    const TrackedPageId page(static_cast<std::int32_t>(next_++));
    if (knows(page)) judged_.push_back({page, similarity(entries_[page.index()])});
  }
  return judged_;
}

}  // namespace memdecay
