#include "policy/policies/ordered_policy.h"

#include <algorithm>
#include <cmath>

#include "core/check.h"
#include "core/slot_of.h"
#include "policy/plan_writer.h"

namespace memdecay {

OrderedPolicy::OrderedPolicy(const ProtectionOptions& protection, const LadderOptions& ladder,
                             int lanes)
    : book_(protection), ladder_(ladder), lanes_(lanes) {
  MEMDECAY_CHECK(lanes == 1 || lanes == static_cast<int>(kRegionCount));
  drop_.resize(2 * static_cast<std::size_t>(lanes));
  demote_.resize(static_cast<std::size_t>(lanes));
}

OrderedPolicy::UnitPlace& OrderedPolicy::place_of(std::int32_t unit) {
  return slot_of(places_, static_cast<std::size_t>(unit));
}

OrderedPolicy::Placement OrderedPolicy::placement(std::int32_t unit) const {
  scratch_.clear();
  book_.pages_of(unit, /*core_only=*/true, scratch_);
  Region region = Region::kOrdinary;
  for (const TrackedPageId page : scratch_) region = stronger(region, region_of(book_.meta(page)));
  if (scratch_.size() == 1) {  // no rounding: pages that are worth the same go by position
    const PageMeta& meta = book_.meta(scratch_.front());
    return {{key(meta.id, region), meta.position}, region};
  }
  double sum = 0;
  std::int64_t tokens = 0;
  std::int64_t first = std::numeric_limits<std::int64_t>::max();
  for (const TrackedPageId page : scratch_) {
    const PageMeta& meta = book_.meta(page);
    sum += key(page, region) * meta.tokens;
    tokens += meta.tokens;
    first = std::min<std::int64_t>(first, meta.position);
  }
  return {{sum / static_cast<double>(tokens), first}, region};
}

void OrderedPolicy::replace_drop(std::int32_t unit, bool forced) {
  UnitPlace& place = place_of(unit);
  if (!book_.droppable(unit)) {
    if (place.drop_heap >= 0) drop_[static_cast<std::size_t>(place.drop_heap)].remove(unit);
    place.drop_heap = -1;
    return;
  }
  const Placement wanted = placement(unit);
  const int heap = lane_of(wanted.region) + (book_.young(unit) ? lanes_ : 0);
  if (!forced && heap == place.drop_heap &&
      std::abs(wanted.key.key - place.drop_key) <= rekey_threshold_) {
    return;
  }
  if (place.drop_heap >= 0 && place.drop_heap != heap) {
    drop_[static_cast<std::size_t>(place.drop_heap)].remove(unit);
  }
  drop_[static_cast<std::size_t>(heap)].set(unit, wanted.key);
  place.drop_heap = static_cast<std::int8_t>(heap);
  place.drop_key = wanted.key.key;
}

PageForm OrderedPolicy::lowest_form(const PageMeta& page) const {
  PageForm lowest = ladder_.lowest;
  if (page.pinned) lowest = std::min(lowest, ladder_.lowest_pinned);
  if (book_.shield(page.id) == Shield::kNewest) lowest = std::min(lowest, ladder_.lowest_newest);
  return lowest;
}

std::optional<PageForm> OrderedPolicy::next_form(const PageMeta& page, PageForm from) const {
  const std::uint64_t bytes = from == page.form ? page.bytes : page.forms[form_index(from)].bytes;
  const std::size_t last = form_index(lowest_form(page));
  for (std::size_t form = form_index(from) + 1; form <= last; ++form) {
    const std::uint64_t offered = page.forms[form].bytes;
    if (offered > 0 && offered < bytes) return static_cast<PageForm>(form);
  }
  return std::nullopt;
}

bool OrderedPolicy::reluctant(const PageMeta& page, PageForm to) const {
  return page.exact_share >= ladder_.exact_from_share && to > ladder_.lowest_exact;
}

double OrderedPolicy::demote_weight(const PageMeta& page, PageForm from, PageForm to) const {
  constexpr double kAfterAllOthers = 1e12;  // more than any score
  const FormCost& after = page.forms[form_index(to)];
  const std::uint64_t bytes = from == page.form ? page.bytes : page.forms[form_index(from)].bytes;
  const double added = static_cast<double>(after.rounding_error) -
                       static_cast<double>(page.forms[form_index(from)].rounding_error);
  return std::log(std::max(added, 1e-9)) - std::log(static_cast<double>(bytes - after.bytes)) +
         (reluctant(page, to) ? kAfterAllOthers : 0);
}

bool OrderedPolicy::demotable(TrackedPageId page) const {
  if (!ladder_.enabled || !book_.tracked(page)) return false;
  const Shield shield = book_.shield(page);
  const bool free = shield == Shield::kNone || shield == Shield::kPinned ||
                    shield == Shield::kRoundMate || shield == Shield::kNewest;
  const PageMeta& meta = book_.meta(page);
  return free && next_form(meta, meta.form).has_value();
}

void OrderedPolicy::replace_demote(TrackedPageId page) {
  if (!ladder_.enabled) return;
  UnitPlace& place = place_of(2 * page.value());
  const bool wanted = demotable(page);
  const int heap = wanted ? lane_of(region_of(book_.meta(page))) : -1;
  if (place.demote_heap >= 0 && place.demote_heap != heap) {
    demote_[static_cast<std::size_t>(place.demote_heap)].remove(page.value());
  }
  place.demote_heap = static_cast<std::int8_t>(heap);
  if (!wanted) return;
  const PageMeta& meta = book_.meta(page);
  const double weight = demote_weight(meta, meta.form, *next_form(meta, meta.form));
  demote_[static_cast<std::size_t>(heap)].set(page.value(),
                                              {key(page, region_of(meta)) + weight, meta.position});
}

void OrderedPolicy::replace_touched() {
  for (const std::int32_t unit : book_.touched()) {
    replace_drop(unit, /*forced=*/true);
    if (!PageBook::is_round(unit)) replace_demote(TrackedPageId(unit / 2));
  }
  book_.clear_touched();
}

void OrderedPolicy::track(const PageMeta& page) {
  const bool is_new = !book_.tracked(page.id);
  on_track(page, is_new);
  book_.track(page);
  replace_touched();
}

void OrderedPolicy::release(TrackedPageId page) {
  book_.release(page);
  replace_touched();
}

void OrderedPolicy::cap_pins(std::uint64_t bytes) {
  book_.cap_pins(bytes);
  replace_touched();
}

void OrderedPolicy::repack(std::span<const TrackedPageId> before,
                           std::span<const PackedPage> after) {
  for (const PackedPage& page : after) {
    MEMDECAY_CHECK(!book_.tracked(page.meta.id));
    on_track(page.meta, /*is_new=*/true);
    on_inherit(page);
  }
  book_.repack(before, after);
  replace_touched();
}

void OrderedPolicy::observe(const EvidenceBatch& batch) {
  on_observe(batch);
  std::sort(dirty_rounds_.begin(), dirty_rounds_.end());
  const auto end = std::unique(dirty_rounds_.begin(), dirty_rounds_.end());
  for (auto unit = dirty_rounds_.begin(); unit != end; ++unit) replace_drop(*unit, false);
  dirty_rounds_.clear();
}

void OrderedPolicy::advance(const PolicyTime& now) {
  MEMDECAY_CHECK(now.step >= now_.step);
  on_advance(now);
  now_ = now;
}

void OrderedPolicy::rekey(TrackedPageId page) {
  const std::int32_t unit = book_.unit_of(page);
  if (PageBook::is_round(unit)) {
    dirty_rounds_.push_back(unit);
  } else {
    replace_drop(unit, /*forced=*/false);
  }
  replace_demote(page);
}

EvictionPlan OrderedPolicy::plan(const PlanRequest& request) const {
  const bool gentle = request.urgency == Urgency::kGentle;
  const bool over = book_.bytes() > request.budget_bytes;
  PlanWriter writer(*this, request, over && !gentle && drops_all() && request.may_drop);
  if (!over) return writer.take();
  if (gentle) {
    const std::optional<double> limit = gentle_limit(request);
    if (limit.has_value()) writer.drop_units(PlanWriter::Rounds::kOld, 0, limit);
    return writer.take();
  }
  if (ladder_.enabled && request.may_demote) writer.demote_all();
  if (!request.may_drop) return writer.take();
  drop_by_score(writer);
  if (writer.missing_bytes() > 0 && book_.options().floor_share > 0) {
    writer.lift_live_floors();
    drop_by_score(writer);
  }
  if (writer.missing_bytes() > 0) writer.break_rounds();
  return writer.take();
}

void OrderedPolicy::drop_by_score(PlanWriter& writer) const {
  const double bonus = book_.options().lag_bonus;
  if (std::isfinite(bonus)) {
    writer.drop_units(PlanWriter::Rounds::kAll, bonus, std::nullopt);
    return;
  }
  writer.drop_units(PlanWriter::Rounds::kOld, 0, std::nullopt);
  writer.drop_units(PlanWriter::Rounds::kYoung, 0, std::nullopt);
}

std::uint64_t OrderedPolicy::update_steps() const {
  std::uint64_t steps = book_.steps();
  for (const IndexedHeap& heap : drop_) steps += heap.steps();
  for (const IndexedHeap& heap : demote_) steps += heap.steps();
  return steps;
}

std::string OrderedPolicy::describe(TrackedPageId /*page*/, double score) const {
  return fmt::format("score {:.6g}", score);
}

Explanation OrderedPolicy::explain(TrackedPageId page) const {
  Explanation answer;
  if (!book_.tracked(page)) {
    answer.sentence = fmt::format("page {} is not tracked", page.value());
    return answer;
  }
  const PageMeta& meta = book_.meta(page);
  const Placement place = placement(book_.unit_of(page));
  answer.shield = book_.shield(page);
  if (answer.shield == Shield::kNone && meta.item != kNoItem && book_.live(page) &&
      book_.spare_tokens(meta.item, meta.tokens) < 0) {
    answer.shield = Shield::kFloor;
  }
  answer.region = region_of(meta);
  answer.score = place.key.key - offset(lane_of(place.region));
  answer.pin_refused = book_.pin_refused(page);
  answer.sentence = fmt::format(
      "page {} ({} tokens from {}, {}, {}): {}; {}{}", page.value(), meta.tokens, meta.position,
      region_name(meta.region), page_form_name(meta.form), shield_name(answer.shield),
      describe(page, answer.score),
      answer.pin_refused ? "; its pin is refused: the cap on pinned bytes is reached" : "");
  return answer;
}

}  // namespace memdecay
