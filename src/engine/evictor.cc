#include "engine/evictor.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <utility>

#include "core/check.h"
#include "quant/kv_page_codec.h"

namespace memdecay {
namespace {

/// Demotions may hold one part in so many of the budget; where that is too little pages are only
/// dropped.
constexpr std::uint64_t kSmallestShare = 8;

/// Bytes of the largest page that a demotion makes.
std::uint64_t largest_form_bytes(const KvCache& cache, LayerGroupId group) {
  std::uint64_t bytes = 0;
  const KvPageLayout& layout = cache.groups()[group.index()].layout;
  for (const KvFormat form : cache.config().forms)
    bytes = std::max(bytes, PagePool::stride_bytes_for(layout.in(form)));
  return bytes;
}

}  // namespace

Evictor::Evictor(KvCache& cache, LayerGroupId group) : cache_(cache), group_(group) {}

bool Evictor::hold_spare() {
  const std::uint64_t bytes = largest_form_bytes(cache_, group_);
  if (!buffer_.empty()) return true;
  if (bytes == 0 || 2 * bytes > cache_.budget().limit_bytes() / kSmallestShare) return false;
  auto held = cache_.budget().try_reserve(spare_bytes());
  if (!held) return false;
  spare_ = held->split(bytes);
  buffer_charge_ = *std::move(held);
  buffer_.resize(bytes);
  return true;
}

std::uint64_t Evictor::spare_bytes() const {
  return 2 * largest_form_bytes(cache_, group_);
}

/// Whether the page is this session's alone, once the prefix tree has forgotten it.
bool Evictor::held_alone(const PageHandle& page) {
  if (page.references() == 2 && cache_.prefixes() != nullptr)
    cache_.prefixes()->forget_page(group_, page);
  return page.exclusive();
}

bool Evictor::demote(const Seat& seat, Position first_position, KvFormat format, Sharing sharing) {
  const PagedKvView view = seat.sequence->view(group_);
  const auto ref = std::lower_bound(
      view.pages.begin(), view.pages.end(), first_position,
      [](const KvPageRef& page, Position position) { return page.first_position < position; });
  const auto index = static_cast<std::size_t>(ref - view.pages.begin());
  if (!held_alone(seat.sequence->table(group_).pages()[index]) && sharing == Sharing::kLeave)
    return true;  // it would free nothing
  const KvPageLayout target = view.layout->in(format);
  if (buffer_.size() < target.page_bytes()) return false;
  if (!convert_kv_page(view.layout->in(ref->format), ref->base, target, buffer_.data(),
                       ref->filled))
    return false;
  spare_.release();
  const Room room = seat.sequence->try_replace(
      first_position, format,
      [&](const KvPageLayout&, const std::byte*, const KvPageLayout& layout, std::byte* page,
          std::int32_t) { std::memcpy(page, buffer_.data(), layout.page_bytes()); });
  auto held = cache_.budget().try_reserve(buffer_.size());
  if (held) spare_ = *std::move(held);  // a shared page gave nothing back: the next time again
  if (!room) return false;
  seat.memory->demoted(first_position, format);
  ++changed_pages_;
  return true;
}

void Evictor::carry_out(const Seat& seat, const EvictionPlan& plan, Sharing sharing) {
  positions_.clear();
  for (const PlanAction& action : plan.actions)
    if (action.drop) positions_.push_back(seat.memory->page(action.page).first_position);
  std::sort(positions_.begin(), positions_.end());
  if (!positions_.empty()) {
    seat.sequence->drop(positions_);
    seat.memory->dropped(positions_);
    changed_pages_ += positions_.size();
  }
  for (const PlanAction& action : plan.actions) {
    if (action.drop) continue;
    const Position first = seat.memory->page(action.page).first_position;
    if (!demote(seat, first, format_of(action.form), sharing)) return;
  }
}

/// Where pages can change their form, the watermarks ask for that only: a page dropped ahead of
/// need is lost for nothing, and dropping it later is no more work.
bool Evictor::drops_ahead(const Seat& seat) {
  return !seat.memory->options().demotes;
}

/// Shares `excess` bytes out among the seats and carries their plans out.
void Evictor::share_out(std::span<const Seat> seats, std::uint64_t excess,
                        const PlanRequest& request, Occasion occasion) {
  std::uint64_t total = 0;
  for (const Seat& seat : seats)
    if (seat.memory->options().evicts) total += seat.memory->tracked_bytes();
  if (total == 0) return;
  const double share = std::min(1.0, static_cast<double>(excess) / static_cast<double>(total));
  for (const Seat& seat : seats) {
    if (!seat.memory->options().evicts) continue;
    const auto tracked = static_cast<double>(seat.memory->tracked_bytes());
    PlanRequest own = request;
    own.budget_bytes = static_cast<std::uint64_t>(tracked * (1.0 - share));
    if (occasion == Occasion::kAhead) own.may_drop = drops_ahead(seat);
    carry_out(seat, seat.memory->plan(own));
  }
}

bool Evictor::free_own(const Seat& seat, std::uint64_t bytes, bool may_drop) {
  if (bytes == 0) return true;
  const std::uint64_t tracked = seat.memory->tracked_bytes();
  PlanRequest request;
  request.urgency = Urgency::kPressed;
  request.budget_bytes = tracked - std::min(tracked, bytes);
  request.may_drop = may_drop;
  // Where a page finds no room to change its form in, what is left is dropped.
  for (const bool may_demote : {true, false}) {
    if (!may_demote && !may_drop) break;
    request.may_demote = may_demote;
    const EvictionPlan plan = seat.memory->plan(request);
    if (plan.missing_bytes > 0) return false;
    carry_out(seat, plan, Sharing::kCopy);
    if (seat.memory->tracked_bytes() <= request.budget_bytes) return true;
  }
  return false;
}

bool Evictor::free(std::span<const Seat> seats, std::uint64_t bytes, bool may_demote,
                   bool may_drop) {
  const std::uint64_t before = changed_pages_;
  PlanRequest request;
  request.urgency = Urgency::kPressed;
  request.may_demote = may_demote;
  request.may_drop = may_drop;
  share_out(seats, bytes, request, Occasion::kNeed);
  return changed_pages_ > before;
}

void Evictor::drop_tokens(const Seat& seat, std::int64_t tokens) {
  PlanRequest request;
  request.urgency = Urgency::kPressed;
  request.may_demote = false;
  const SessionMemory& memory = *seat.memory;
  const std::int64_t enough = memory.evicted_tokens() + tokens;
  while (memory.evicted_tokens() < enough) {
    // Plans count bytes. As the mean page tells how many a token has, a few rounds meet the number.
    std::int64_t held = 0;
    for (const SessionMemory::Page& page : memory.pages()) held += page.filled;
    if (held == 0) return;
    const double share =
        static_cast<double>(enough - memory.evicted_tokens()) / static_cast<double>(held);
    const double left = static_cast<double>(memory.tracked_bytes()) * (1.0 - std::min(1.0, share));
    const std::int64_t before = memory.evicted_tokens();
    request.budget_bytes = static_cast<std::uint64_t>(left);
    carry_out(seat, memory.plan(request));
    if (memory.evicted_tokens() == before) return;  // the rest is protected
  }
}

/// Lets remembered prefixes go as the watermarks ask; the bytes that are held beside them.
std::uint64_t Evictor::relieve_of_prefixes(std::uint64_t most_bytes) {
  const KvBudget& budget = cache_.budget();
  PrefixTree* const tree = cache_.prefixes();
  if (tree == nullptr || budget.limit_bytes() == KvBudget::kUnlimited)
    return budget.current_bytes();
  const PlanRequest request =
      prefix_watermarks_.demand(budget.current_bytes(), budget.limit_bytes());
  if (request.urgency == Urgency::kPressed && budget.current_bytes() > request.budget_bytes)
    tree->evict(std::min(budget.current_bytes() - request.budget_bytes, most_bytes),
                PrefixTree::Victims::kAlsoShared);
  return budget.current_bytes() - tree->memory().cached_only_bytes;
}

void Evictor::relieve(std::span<const Seat> seats, std::uint64_t most_bytes) {
  for (const Seat& seat : seats) {
    if (!seat.memory->options().evicts) continue;
    PlanRequest own = seat.memory->demand();
    const std::uint64_t tracked = seat.memory->tracked_bytes();
    if (tracked <= own.budget_bytes) continue;
    own.budget_bytes = std::max(own.budget_bytes, tracked - std::min(tracked, most_bytes));
    own.may_drop = drops_ahead(seat);
    carry_out(seat, seat.memory->plan(own), Sharing::kCopy);
  }
  const std::uint64_t live = relieve_of_prefixes(most_bytes);
  const PlanRequest request = watermarks_.demand(live, cache_.budget().limit_bytes());
  if (live <= request.budget_bytes) return;
  share_out(seats, std::min(live - request.budget_bytes, most_bytes), request, Occasion::kAhead);
}

void Evictor::convert_sealed(const Seat& seat) {
  const std::optional<KvFormat> form = seat.memory->options().fixed_form;
  if (!form.has_value()) return;
  const auto& pages = seat.memory->pages();
  for (std::size_t i = pages.size(); i-- > 0;) {
    if (pages[i].format == *form) break;
    if (pages[i].sealed && !demote(seat, pages[i].first_position, *form, Sharing::kCopy)) break;
  }
}

}  // namespace memdecay
