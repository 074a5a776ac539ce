#include "policy/plan_writer.h"

#include <algorithm>
#include <optional>
#include <utility>

namespace memdecay {

PlanWriter::PlanWriter(const OrderedPolicy& policy, const PlanRequest& request, bool drops_all)
    : policy_(policy),
      budget_bytes_(request.budget_bytes),
      may_demote_(request.may_demote),
      may_drop_(request.may_drop),
      drops_all_(drops_all),
      left_bytes_(policy.tracked_bytes()) {}

bool PlanWriter::dropped(TrackedPageId page) const {
  const auto found = planned_.find(page.value());
  return found != planned_.end() && found->second.dropped;
}

void PlanWriter::record(TrackedPageId page, const PlanAction& action) {
  const auto [at, is_new] =
      planned_.try_emplace(page.value(), Planned{plan_.actions.size(), action.drop});
  if (is_new) {
    plan_.actions.push_back(action);
    left_bytes_ -= action.freed_bytes;
    return;
  }
  PlanAction& before = plan_.actions[at->second.action];
  left_bytes_ = left_bytes_ + before.freed_bytes - action.freed_bytes;
  before = action;
  at->second.dropped = action.drop;
}

void PlanWriter::demote(TrackedPageId page, PageForm form) {
  const PageMeta& meta = policy_.book_.meta(page);
  record(page, {page, false, form, meta.bytes - meta.forms[form_index(form)].bytes});
}

void PlanWriter::drop(TrackedPageId page) {
  const PageMeta& meta = policy_.book_.meta(page);
  record(page, {page, true, PageForm::kF16, meta.bytes});
}

void PlanWriter::demote_all() {
  HeapWalk walk;
  for (std::size_t lane = 0; lane < policy_.demote_.size(); ++lane) {
    walk.add(policy_.demote_[lane], policy_.offset(static_cast<int>(lane)));
  }
  std::unordered_map<std::int32_t, PageForm> forms;
  while (!done()) {
    const auto step = walk.next();
    if (!step.has_value()) break;
    const TrackedPageId page(step->item);
    const PageMeta& meta = policy_.book_.meta(page);
    const PageForm from = forms.try_emplace(page.value(), meta.form).first->second;
    const auto to = policy_.next_form(meta, from);
    if (!to.has_value()) continue;
    demote(page, *to);
    forms[page.value()] = *to;
    const auto further = policy_.next_form(meta, *to);
    if (!further.has_value()) continue;
    const Region region = policy_.region_of(meta);
    const double worth = policy_.key(page, region) - policy_.offset(policy_.lane_of(region));
    walk.push(worth + policy_.demote_weight(meta, *to, *further), meta.position, page.value());
  }
  plan_.steps += walk.steps();
}

/// Instructions have one as long as they are told as items, results while their round is young.
bool PlanWriter::has_floor(TrackedPageId page) const {
  const bool instruction = policy_.book_.meta(page).tool_round == kNoToolRound;
  return instruction || (live_floors_ && policy_.book_.live(page));
}

bool PlanWriter::floors_allow() {
  would_go_.clear();
  for (const TrackedPageId page : pages_) {
    const PageMeta& meta = policy_.book_.meta(page);
    if (meta.item == kNoItem) continue;
    std::int64_t& going = would_go_.try_emplace(meta.item, removed_[meta.item]).first->second;
    going += meta.tokens;
    if (has_floor(page) && policy_.book_.spare_tokens(meta.item, going) < 0) return false;
  }
  for (const auto& [item, tokens] : would_go_) removed_[item] = tokens;
  return true;
}

bool PlanWriter::demote_to_lowest(std::int32_t unit) {
  pages_.clear();
  policy_.book_.pages_of(unit, /*core_only=*/false, pages_);
  bool any = false;
  for (const TrackedPageId page : pages_) {
    if (planned_.contains(page.value()) || !policy_.demotable(page)) continue;
    const PageMeta& meta = policy_.book_.meta(page);
    std::optional<PageForm> lowest;
    for (auto next = policy_.next_form(meta, meta.form); next && !policy_.reluctant(meta, *next);
         next = policy_.next_form(meta, *lowest))
      lowest = next;
    if (!lowest.has_value()) continue;
    demote(page, *lowest);
    any = true;
  }
  return any;
}

void PlanWriter::drop_unit(std::int32_t unit) {
  pages_.clear();
  policy_.book_.pages_of(unit, /*core_only=*/false, pages_);
  plan_.steps += pages_.size();
  std::erase_if(pages_, [this](TrackedPageId page) { return dropped(page); });
  if (pages_.empty() || !floors_allow()) return;
  for (const TrackedPageId page : pages_) drop(page);
}

void PlanWriter::drop_units(Rounds rounds, double young_bonus, std::optional<double> limit) {
  HeapWalk walk;
  const auto lanes = static_cast<std::size_t>(policy_.lanes_);
  for (std::size_t lane = 0; lane < lanes; ++lane) {
    const double offset = policy_.offset(static_cast<int>(lane));
    if (rounds != Rounds::kYoung) walk.add(policy_.drop_[lane], offset);
    if (rounds != Rounds::kOld) walk.add(policy_.drop_[lane + lanes], offset - young_bonus);
  }
  while (!done()) {
    const auto step = walk.next();
    if (!step.has_value() || (limit.has_value() && !(step->score < *limit))) break;
    // A gentle plan leaves a page as a coarse one before it lets it go.
    if (limit.has_value() && may_demote_ && demote_to_lowest(step->item)) continue;
    if (may_drop_) drop_unit(step->item);
  }
  plan_.steps += walk.steps();
}

void PlanWriter::break_rounds() {
  std::vector<TrackedPageId> mates = policy_.book_.round_mates();
  plan_.steps += mates.size();
  const auto worth = [&](TrackedPageId page) {
    const PageMeta& meta = policy_.book_.meta(page);
    const Region region = policy_.region_of(meta);
    const double offset = policy_.offset(policy_.lane_of(region));
    return std::pair(policy_.key(page, region) - offset, meta.position);
  };
  std::sort(mates.begin(), mates.end(),
            [&](TrackedPageId a, TrackedPageId b) { return worth(a) < worth(b); });
  for (const TrackedPageId page : mates) {
    if (missing_bytes() == 0) break;
    drop(page);
  }
}

EvictionPlan PlanWriter::take() {
  plan_.freed_bytes = policy_.tracked_bytes() - left_bytes_;
  plan_.missing_bytes = missing_bytes();
  return std::move(plan_);
}

}  // namespace memdecay
