#include "engine/memory/evictor.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <utility>

#include "core/check.h"
#include "core/steady_clock.h"
#include "quant/kv_page_codec.h"

namespace memdecay {
namespace {

/// Demotions may hold one part in so many of the budget; where that is too little pages are only
/// dropped.
constexpr std::uint64_t kSmallestShare = 8;

/// Below this share of filled slots, pages of one pin and tool round are packed whatever their
/// region. Aimed a little above the 96 % that are promised.
constexpr double kFullEnough = 0.975;
/// In a session of one fixed form, the last pages from a small one among so many on wait for it.
constexpr std::size_t kWaitingPages = 4;

/// Counts the time of a scope as a memory's.
class EvictionTime {
 public:
  explicit EvictionTime(SessionMemory& memory) : memory_(memory), begin_(steady_seconds()) {}
  ~EvictionTime() { memory_.add_eviction_seconds(steady_seconds() - begin_); }
  EvictionTime(const EvictionTime&) = delete;
  EvictionTime& operator=(const EvictionTime&) = delete;

 private:
  SessionMemory& memory_;
  double begin_;
};

bool alike(const PageMeta& a, const PageMeta& b) {
  return a.region == b.region && a.tool_core == b.tool_core && a.item == b.item;
}

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

/// Whether the page is this session's alone, but for the prefix tree.
bool Evictor::may_be_alone(const PageHandle& page) {
  return page.references() == (page.remembered() ? 2 : 1);
}

/// The same, and the tree has forgotten it.
bool Evictor::held_alone(const PageHandle& page) {
  if (!may_be_alone(page)) return false;
  if (page.remembered()) cache_.prefixes()->forget_page(page);
  return page.exclusive();
}

/// Gives the page the form that buffer_ holds.
Room Evictor::replace(const Seat& seat, Position first_position, KvFormat format) {
  return seat.sequence->try_replace(
      first_position, format,
      [&](const KvPageLayout&, const std::byte*, const KvPageLayout& layout, std::byte* page,
          std::int32_t) { std::memcpy(page, buffer_.data(), layout.page_bytes()); });
}

Evictor::Demotion Evictor::demote(const Seat& seat, Position first_position, KvFormat format,
                                  Sharing sharing) {
  const PagedKvView view = seat.sequence->view(group_);
  const auto ref = std::lower_bound(
      view.pages.begin(), view.pages.end(), first_position,
      [](const KvPageRef& page, Position position) { return page.first_position < position; });
  const auto index = static_cast<std::size_t>(ref - view.pages.begin());
  const KvPageLayout target = view.layout->in(format);
  if (buffer_.size() < target.page_bytes()) return Demotion::kNoRoom;
  const PageHandle& page = seat.sequence->table(group_).pages()[index];
  const bool alone = may_be_alone(page);
  const bool may_copy = sharing == Sharing::kCopy &&
                        cache_.budget().missing_bytes(PagePool::stride_bytes_for(target)) == 0;
  if (!alone && !may_copy) return Demotion::kLeft;
  const std::optional<float> error =
      convert_kv_page(view.layout->in(ref->format), ref->base, target, buffer_.data(), ref->filled);
  if (!error.has_value()) {
    seat.memory->refuse_forms(first_position);
    return Demotion::kLeft;
  }
  if (alone) {  // only a page that goes gives back what its new form takes
    const bool forgotten = held_alone(page);
    MEMDECAY_CHECK(forgotten);
    spare_.release();
  }
  const Room room = replace(seat, first_position, format);
  if (alone) {
    auto held = cache_.budget().try_reserve(buffer_.size());
    MEMDECAY_CHECK(held.has_value());
    spare_ = *std::move(held);
  }
  if (!room) return Demotion::kNoRoom;
  seat.memory->demoted(first_position, format, *error);
  ++changed_pages_;
  return Demotion::kDone;
}

EvictionPlan Evictor::make_plan(const Seat& seat, const PlanRequest& request,
                                Sharing sharing) const {
  const EvictionTime time(*seat.memory);
  if (request.may_demote && seat.memory->options().demotes) {
    const std::vector<PageHandle>& pages = seat.sequence->table(group_).pages();
    const bool may_copy =
        sharing == Sharing::kCopy && cache_.budget().missing_bytes(buffer_.size()) == 0;
    for (std::size_t i = 0; i < pages.size(); ++i)
      seat.memory->offer_forms(i, may_copy || may_be_alone(pages[i]));
  }
  return seat.memory->plan(request);
}

void Evictor::carry_out(const Seat& seat, const EvictionPlan& plan, Sharing sharing) {
  const EvictionTime time(*seat.memory);
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
    if (demote(seat, first, format_of(action.form), sharing) == Demotion::kNoRoom) return;
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
    carry_out(seat, make_plan(seat, own, Sharing::kLeave));
  }
}

bool Evictor::free_own(const Seat& seat, std::uint64_t bytes, bool may_drop) {
  if (bytes == 0) return true;
  const std::uint64_t tracked = seat.memory->tracked_bytes();
  PlanRequest request;
  request.urgency = Urgency::kPressed;
  request.budget_bytes = tracked - std::min(tracked, bytes);
  request.may_drop = may_drop;
  while (seat.memory->tracked_bytes() > request.budget_bytes) {
    const EvictionPlan plan = make_plan(seat, request, Sharing::kCopy);
    if (plan.missing_bytes > 0) return false;
    const std::uint64_t before = changed_pages_;
    carry_out(seat, plan, Sharing::kCopy);
    // Pages that had to be left as they are: others give instead, and at last some are dropped.
    if (changed_pages_ > before) continue;
    if (!request.may_demote || !may_drop) return false;
    request.may_demote = false;
  }
  return true;
}

/// A session gives by its share of all that is held; where one cannot, the others give the rest.
/// Returns the bytes that came back.
std::uint64_t Evictor::free_by_demotion(std::span<const Seat> seats, std::uint64_t bytes) {
  PlanRequest request;
  request.urgency = Urgency::kPressed;
  request.may_drop = false;
  const KvBudget& budget = cache_.budget();
  const std::uint64_t held = budget.current_bytes();
  std::uint64_t freed = 0;
  for (bool changed = true; changed && freed < bytes;) {
    const std::uint64_t before = changed_pages_;
    share_out(seats, bytes - freed, request, Occasion::kNeed);
    changed = changed_pages_ > before;
    freed = held - std::min(held, budget.current_bytes());
  }
  return freed;
}

bool Evictor::free(std::span<const Seat> seats, std::uint64_t bytes, bool may_drop) {
  const std::uint64_t before = changed_pages_;
  const std::uint64_t freed = free_by_demotion(seats, bytes);
  if (may_drop && freed < bytes) {
    PlanRequest request;
    request.urgency = Urgency::kPressed;
    request.may_demote = false;
    share_out(seats, bytes - freed, request, Occasion::kNeed);
  }
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
    carry_out(seat, make_plan(seat, request, Sharing::kLeave));
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
    carry_out(seat, make_plan(seat, own, Sharing::kCopy), Sharing::kCopy);
  }
  const std::uint64_t live = relieve_of_prefixes(most_bytes);
  const PlanRequest request = watermarks_.demand(live, cache_.budget().limit_bytes());
  if (live <= request.budget_bytes) return;
  share_out(seats, std::min(live - request.budget_bytes, most_bytes), request, Occasion::kAhead);
}

/// What the session holds alone, or but for the prefix tree: that may keep the instructions, which
/// sessions have in common, and forgets the rest.
bool Evictor::may_be_packed(const PageHandle& page, const PageMeta& meta) {
  return may_be_alone(page) && !(page.remembered() && meta.region == Region::kSystem);
}

bool Evictor::list_packable(const Seat& seat) {
  const SessionMemory& memory = *seat.memory;
  const PageTable& table = seat.sequence->table(group_);
  const auto refs = table.view().pages;
  const auto& pages = memory.pages();
  packable_.clear();
  std::int64_t filled = 0;
  Position end = 0;
  for (std::size_t i = 0; i + 1 < pages.size(); ++i) {  // the last page is what comes next
    const bool packable = pages[i].sealed && pages[i].format == memory.options().own_format &&
                          may_be_packed(table.pages()[i], memory.meta(pages[i]));
    Kinship kinship = Kinship::kNone;
    if (i > 0) {
      const PageMeta& before = memory.meta(pages[i - 1]);
      const PageMeta& meta = memory.meta(pages[i]);
      // A gap within a packed page can never be closed (Sequence::close_gaps): none is long.
      const bool close = pages[i].first_position - end <= memory.options().page_tokens;
      const bool moved_alike = refs[i].rope_shift == refs[i - 1].rope_shift &&
                               refs[i].closed_before == refs[i - 1].closed_before;
      if (close && moved_alike && meta.pinned == before.pinned &&
          meta.tool_round == before.tool_round)
        kinship = alike(meta, before) ? Kinship::kAlike : Kinship::kNear;
    }
    packable_.push_back({pages[i].filled, packable, kinship});
    filled += pages[i].filled;
    end = table.runs().end_of(refs[i]);
  }
  const auto slots = static_cast<double>(packable_.size()) * memory.options().page_tokens;
  return static_cast<double>(filled) < kFullEnough * slots;
}

std::optional<PackingChoice> Evictor::choose(std::int32_t page_tokens, std::size_t most_pages,
                                             bool too_empty) const {
  const auto choice = choose_packing(packable_, page_tokens, most_pages, Kinship::kAlike);
  if (choice.has_value() || !too_empty) return choice;
  return choose_packing(packable_, page_tokens, most_pages, Kinship::kNear);
}

bool Evictor::pack_pages(const Seat& seat, const PackingChoice& choice) {
  SessionMemory& memory = *seat.memory;
  positions_.clear();
  for (std::size_t i = choice.first; i < choice.first + choice.count; ++i) {
    const bool alone = held_alone(seat.sequence->table(group_).pages()[i]);
    MEMDECAY_CHECK(alone);
    positions_.push_back(memory.pages()[i].first_position);
  }
  if (!seat.sequence->pack_pages(positions_)) return false;
  const PageTable& table = seat.sequence->table(group_);
  memory.packed(choice.first, choice.count, table.view(), table.runs());
  return true;
}

std::size_t Evictor::pack(const Seat& seat, std::size_t most_pages) {
  SessionMemory& memory = *seat.memory;
  if (!memory.options().evicts || !memory.options().packs_pages) return 0;
  if (!memory.may_pack(most_pages)) return 0;
  const bool too_empty = list_packable(seat);
  const std::int32_t page_tokens = memory.options().page_tokens;
  const auto choice = choose(page_tokens, most_pages, too_empty);
  if (!choice.has_value()) {
    memory.settle(most_pages);
    return 0;
  }
  if (pack_pages(seat, *choice)) return choice->count;
  // A full budget: what is held for demotions is room for one new page.
  const auto pair = choose(page_tokens, 2, too_empty);
  if (!pair.has_value() || spare_.bytes() == 0) return 0;
  spare_.release();
  buffer_charge_.release();
  std::vector<std::byte>().swap(buffer_);
  const bool packed = pack_pages(seat, *pair);
  MEMDECAY_CHECK(hold_spare());  // two pages became one, or nothing has changed
  return packed ? pair->count : 0;
}

void Evictor::convert_sealed(const Seat& seat) {
  const std::optional<KvFormat> form = seat.memory->options().fixed_form;
  if (!form.has_value()) return;
  const EvictionTime time(*seat.memory);
  const SessionMemoryOptions& options = seat.memory->options();
  const auto& pages = seat.memory->pages();
  std::size_t end = pages.size();
  const std::size_t waiting = options.packs_pages && options.evicts ? kWaitingPages : 0;
  for (std::size_t back = 1; back <= std::min(waiting, pages.size()); ++back) {
    const SessionMemory::Page& page = pages[pages.size() - back];
    if (page.sealed && page.format != *form && page.filled < options.page_tokens)
      end = pages.size() - back;
  }
  for (std::size_t i = end; i-- > 0;) {
    if (pages[i].format == *form) break;
    if (!pages[i].sealed) continue;
    if (demote(seat, pages[i].first_position, *form, Sharing::kCopy) == Demotion::kNoRoom) break;
  }
}

}  // namespace memdecay
