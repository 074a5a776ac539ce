#include "policy/page_book.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "core/check.h"
#include "core/slot_of.h"

namespace memdecay {
namespace {

// Rounds, items and pages are small dense numbers; a wild one would only waste memory.
constexpr std::int32_t kMostNumbers = 1 << 28;

template <typename T>
T& grown_at(std::vector<T>& values, std::int32_t index) {
  MEMDECAY_CHECK(index >= 0 && index < kMostNumbers);
  return slot_of(values, static_cast<std::size_t>(index));
}

}  // namespace

const char* page_form_name(PageForm form) {
  constexpr std::array<const char*, kPageFormCount> kNames = {"fp16", "int8", "k8v4", "int4"};
  return kNames[form_index(form)];
}

const char* shield_name(Shield shield) {
  constexpr std::array<const char*, 8> kNames = {"droppable",        "still open", "a sink",
                                                 "among the newest", "pinned",     "a round's mate",
                                                 "an item's floor",  "not tracked"};
  return kNames[static_cast<std::size_t>(shield)];
}

bool PageBook::tracked(TrackedPageId page) const {
  return page.value() >= 0 && page.index() < pages_.size() && pages_[page.index()].tracked;
}

void PageBook::touch(const PageState& state) {
  touched_.push_back(2 * state.meta.id.value());
  if (state.meta.tool_round != kNoToolRound) touched_.push_back(2 * state.meta.tool_round + 1);
}

/// Works the page's own shield out anew and keeps its round's count right.
void PageBook::refresh(PageState& state) {
  Shield shield = Shield::kNone;
  if (state.pin_granted) shield = Shield::kPinned;
  if (state.newest) shield = Shield::kNewest;
  if (state.meta.position < options_.sink_tokens) shield = Shield::kSink;
  if (!state.meta.sealed) shield = Shield::kOpen;
  if (state.meta.tool_round != kNoToolRound) {
    RoundState& round = rounds_[static_cast<std::size_t>(state.meta.tool_round)];
    round.shielded += static_cast<std::int32_t>(shield != Shield::kNone) -
                      static_cast<std::int32_t>(state.shield != Shield::kNone &&
                                                state.shield != Shield::kUntracked);
  }
  state.shield = shield;
  touch(state);
}

void PageBook::grant_pin(PageState& state) {
  const std::uint64_t bytes = state.meta.bytes;
  state.pin_granted = state.meta.pinned && bytes <= options_.pin_cap_bytes &&
                      pinned_bytes_ <= options_.pin_cap_bytes - bytes;
  if (state.pin_granted) pinned_bytes_ += bytes;
}

void PageBook::revoke_pin(PageState& state) {
  if (state.pin_granted) pinned_bytes_ -= state.meta.bytes;
  state.pin_granted = false;
}

void PageBook::enter_round(PageState& state) {
  if (state.meta.tool_round == kNoToolRound) return;
  RoundState& round = grown_at(rounds_, state.meta.tool_round);
  state.previous = -1;
  state.next = round.first;
  if (round.first >= 0) {
    pages_[static_cast<std::size_t>(round.first)].previous = state.meta.id.value();
  }
  round.first = state.meta.id.value();
  round.core += in_core(state.meta) ? 1 : 0;
}

void PageBook::leave_round(PageState& state) {
  if (state.meta.tool_round == kNoToolRound) return;
  RoundState& round = rounds_[static_cast<std::size_t>(state.meta.tool_round)];
  round.core -= in_core(state.meta) ? 1 : 0;
  round.shielded -= state.shield != Shield::kNone && state.shield != Shield::kUntracked ? 1 : 0;
  if (state.previous >= 0) {
    pages_[static_cast<std::size_t>(state.previous)].next = state.next;
  } else {
    round.first = state.next;
  }
  if (state.next >= 0) pages_[static_cast<std::size_t>(state.next)].previous = state.previous;
  if (state.meta.tool_round == latest_round_) lose_latest_rounds();
}

/// When the latest rounds have no pages left (a history was cut back), those before are the latest
/// and may be young again.
void PageBook::lose_latest_rounds() {
  const std::int32_t before = latest_round_;
  while (latest_round_ >= 0 && rounds_[static_cast<std::size_t>(latest_round_)].first < 0)
    --latest_round_;
  const std::int32_t from = std::max(latest_round_ - options_.lag_rounds + 1, 0);
  const std::int32_t to = std::min(before - options_.lag_rounds, latest_round_);
  for (std::int32_t round = from; round <= to; ++round) touch_round(round);
}

void PageBook::touch_round(std::int32_t round) {
  std::int32_t page = rounds_[static_cast<std::size_t>(round)].first;
  for (; page >= 0; page = pages_[static_cast<std::size_t>(page)].next)
    touch(pages_[static_cast<std::size_t>(page)]);
}

void PageBook::enter_item(const PageMeta& meta) {
  if (meta.item == kNoItem) return;
  ItemState& item = grown_at(items_, meta.item);
  item.total += meta.tokens;
  item.kept += meta.tokens;
}

void PageBook::leave_item(const PageMeta& meta, bool evicted) {
  if (meta.item == kNoItem) return;
  ItemState& item = items_[static_cast<std::size_t>(meta.item)];
  item.kept -= meta.tokens;
  if (!evicted) item.total -= meta.tokens;
  if (item.kept == 0) item.total = 0;  // the item is over
}

void PageBook::enter_newest(PageState& state) {
  newest_.set(state.meta.id.value(), {0, state.meta.position});
  state.newest = true;
  if (newest_.size() <= static_cast<std::size_t>(std::max(options_.newest_pages, 0))) return;
  PageState& oldest = pages_[static_cast<std::size_t>(newest_.top().item)];
  newest_.remove(oldest.meta.id.value());
  older_.set(oldest.meta.id.value(), {0, -std::int64_t{oldest.meta.position}});
  oldest.newest = false;
  if (&oldest != &state) refresh(oldest);
}

void PageBook::leave_newest(PageState& state) {
  older_.remove(state.meta.id.value());
  if (!state.newest) return;
  newest_.remove(state.meta.id.value());
  state.newest = false;
  if (older_.empty()) return;
  PageState& next = pages_[static_cast<std::size_t>(older_.top().item)];
  older_.remove(next.meta.id.value());
  newest_.set(next.meta.id.value(), {0, next.meta.position});
  next.newest = true;
  refresh(next);
}

/// A later round makes older ones stop being young: their units move.
void PageBook::see_round(std::int32_t round) {
  if (round <= latest_round_) return;
  const std::int32_t from = std::max(latest_round_ - options_.lag_rounds + 1, 0);
  const std::int32_t to =
      std::min(round - options_.lag_rounds, static_cast<std::int32_t>(rounds_.size()) - 1);
  for (std::int32_t grown = from; grown <= to; ++grown) touch_round(grown);
  latest_round_ = round;
}

void PageBook::track(const PageMeta& meta) {
  MEMDECAY_CHECK(meta.tokens > 0 && meta.position >= 0);
  MEMDECAY_CHECK(meta.tool_round >= kNoToolRound && meta.item >= kNoItem);
  PageState& state = grown_at(pages_, meta.id.value());
  if (state.tracked) {
    MEMDECAY_CHECK(state.meta.position == meta.position);
    touch(state);  // its unit of before
    leave_round(state);
    // In before out, or an item whose last page is told anew would count as over.
    enter_item(meta);
    leave_item(state.meta, /*evicted=*/false);
    revoke_pin(state);
    bytes_ -= state.meta.bytes;
    state.shield = Shield::kUntracked;
  } else {
    enter_item(meta);
    ++count_;
  }
  const bool is_new = !state.tracked;
  state.meta = meta;
  state.tracked = true;
  bytes_ += meta.bytes;
  enter_round(state);
  grant_pin(state);
  if (is_new) enter_newest(state);
  refresh(state);
  see_round(meta.tool_round);
}

void PageBook::release(TrackedPageId page) {
  forget(page, /*evicted=*/true);
}

void PageBook::repack(std::span<const TrackedPageId> before, std::span<const PackedPage> after) {
  // In before out, or an item whose last page is packed would count as over; so the new pages'
  // tokens stand there twice for a moment.
  for (const PackedPage& page : after) enter_item(page.meta);
  for (const TrackedPageId page : before) forget(page, /*evicted=*/false);
  for (const PackedPage& page : after) {
    track(page.meta);
    leave_item(page.meta, /*evicted=*/false);
  }
}

void PageBook::cap_pins(std::uint64_t bytes) {
  options_.pin_cap_bytes = bytes;
  std::vector<PageState*> pinned;
  for (PageState& state : pages_)
    if (state.tracked && state.meta.pinned) pinned.push_back(&state);
  std::sort(pinned.begin(), pinned.end(), [](const PageState* a, const PageState* b) {
    return a->meta.position < b->meta.position;
  });
  for (PageState* state : pinned) revoke_pin(*state);
  for (PageState* state : pinned) {
    grant_pin(*state);
    refresh(*state);
  }
}

void PageBook::forget(TrackedPageId page, bool evicted) {
  MEMDECAY_CHECK(tracked(page));
  PageState& state = pages_[page.index()];
  touch(state);
  leave_round(state);
  leave_item(state.meta, evicted);
  revoke_pin(state);
  state.tracked = false;
  state.shield = Shield::kUntracked;
  bytes_ -= state.meta.bytes;
  --count_;
  leave_newest(state);
}

Shield PageBook::shield(TrackedPageId page) const {
  if (!tracked(page)) return Shield::kUntracked;
  const PageState& state = pages_[page.index()];
  if (state.shield != Shield::kNone || !in_core(state.meta)) return state.shield;
  const auto round = static_cast<std::size_t>(state.meta.tool_round);
  return rounds_[round].shielded > 0 ? Shield::kRoundMate : Shield::kNone;
}

std::vector<TrackedPageId> PageBook::round_mates() const {
  std::vector<TrackedPageId> mates;
  for (const PageState& state : pages_)
    if (state.tracked && shield(state.meta.id) == Shield::kRoundMate)
      mates.push_back(state.meta.id);
  return mates;
}

bool PageBook::pin_refused(TrackedPageId page) const {
  return tracked(page) && meta(page).pinned && !pages_[page.index()].pin_granted;
}

std::int32_t PageBook::unit_of(TrackedPageId page) const {
  const PageMeta& known = meta(page);
  return in_core(known) ? 2 * known.tool_round + 1 : 2 * page.value();
}

bool PageBook::droppable(std::int32_t unit) const {
  const auto index = static_cast<std::size_t>(unit / 2);
  if (is_round(unit)) {
    return index < rounds_.size() && rounds_[index].core > 0 && rounds_[index].shielded == 0;
  }
  const PageState& state = pages_[index];
  return state.tracked && state.shield == Shield::kNone && !in_core(state.meta);
}

bool PageBook::young(std::int32_t unit) const {
  const std::int32_t round =
      is_round(unit) ? unit / 2 : pages_[static_cast<std::size_t>(unit / 2)].meta.tool_round;
  return round != kNoToolRound && latest_round_ - round < options_.lag_rounds;
}

void PageBook::pages_of(std::int32_t unit, bool core_only, std::vector<TrackedPageId>& out) const {
  if (!is_round(unit)) {
    out.emplace_back(unit / 2);
    return;
  }
  std::int32_t page = rounds_[static_cast<std::size_t>(unit / 2)].first;
  for (; page >= 0; page = pages_[static_cast<std::size_t>(page)].next) {
    if (!core_only || in_core(meta(TrackedPageId(page)))) out.emplace_back(page);
  }
}

std::int64_t PageBook::spare_tokens(std::int32_t item, std::int64_t removed) const {
  const ItemState& state = items_[static_cast<std::size_t>(item)];
  const auto floor =
      static_cast<std::int64_t>(std::ceil(options_.floor_share * static_cast<double>(state.total)));
  return state.kept - removed - floor;
}

}  // namespace memdecay
