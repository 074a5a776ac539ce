#include "kv/sequence.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <utility>

#include "core/check.h"
#include "kv/kv_cache.h"

namespace memdecay {

std::uint64_t Sequence::record_bytes(std::size_t groups) {
  return sizeof(Sequence) + groups * sizeof(PageTable);
}

Sequence::Sequence(KvCache& cache, SequenceId id, BudgetReservation record)
    : cache_(cache), id_(id), record_(std::move(record)) {
  tables_.reserve(cache.groups().size());
  cache.enlist(*this);
}

Sequence::~Sequence() {
  cache_.delist(*this);
}

/// Reserves what `plan` says of every table, makes sure of its pages, then applies: nothing can
/// fail from there on.
template <typename Plan, typename Apply>
Room Sequence::pay_and_apply(const Plan& plan, const Apply& apply) {
  std::uint64_t bytes = 0;
  for (const PageTable& table : tables_) bytes += plan(table).bytes;
  KvBudget& budget = cache_.budget();
  auto paid = budget.try_reserve(bytes);
  if (!paid) return {Room::Refusal::kBudget, budget.missing_bytes(bytes)};
  for (const PageTable& table : tables_) {
    const PageTable::Need need = plan(table);
    if (need.pages == 0) continue;
    const Room room = need.pool->try_prepare(need.pages);
    if (!room) return room;
  }
  for (PageTable& table : tables_) {
    const PageTable::Need need = plan(table);
    BudgetReservation part = paid->split(need.bytes);
    apply(table, need, part);
  }
  return {};
}

Room Sequence::try_append(std::int32_t tokens, std::span<const Position> cuts) {
  MEMDECAY_CHECK(tokens >= 0 && tokens <= std::numeric_limits<Position>::max() - size_);
  MEMDECAY_CHECK(std::adjacent_find(cuts.begin(), cuts.end(), std::greater_equal<>()) ==
                 cuts.end());
  MEMDECAY_CHECK(cuts.empty() || (cuts.front() >= size_ && cuts.back() < size_ + tokens));
  trim();
  const Room room =
      pay_and_apply([&](const PageTable& table) { return table.plan_append(size_, tokens, cuts); },
                    [&](PageTable& table, const PageTable::Need& need, BudgetReservation& paid) {
                      table.append(size_, tokens, cuts, need, paid);
                    });
  if (room) size_ += tokens;
  return room;
}

void Sequence::trim() {
  for (PageTable& table : tables_) table.trim(size_);
}

Position Sequence::earliest_cut() const {
  Position earliest = 1;
  for (const PageTable& table : tables_) earliest = std::max(earliest, table.earliest_cut());
  return earliest;
}

bool Sequence::try_truncate(Position to) {
  MEMDECAY_CHECK(to >= 0 && to <= size_);
  if (to == size_) return true;
  if (to != 0 && to < earliest_cut()) return false;
  for (PageTable& table : tables_) table.truncate(to);
  size_ = to;
  if (to <= exact_end_) exact_end_ = kNothingLost;
  return true;
}

const PageTable* Sequence::first_unbounded() const {
  const auto first = std::find_if(tables_.begin(), tables_.end(),
                                  [](const PageTable& table) { return table.window() == 0; });
  return first == tables_.end() ? nullptr : &*first;
}

bool Sequence::is_open() const {
  const PageTable* const table = first_unbounded();
  return table != nullptr && table->is_open();
}

Position Sequence::rope_offset() const {
  const PageTable* const table = first_unbounded();
  return table == nullptr ? 0 : table->rope_offset();
}

Position Sequence::close_gaps(std::int32_t smallest_gap) {
  const Position before = rope_offset();
  for (PageTable& table : tables_) table.close_gaps(size_, smallest_gap);
  for (const PageTable& table : tables_)
    MEMDECAY_CHECK(table.window() > 0 || table.rope_offset() == rope_offset());
  return rope_offset() - before;
}

void Sequence::drop(std::span<const Position> first_positions) {
  if (!first_positions.empty()) lose_from(first_positions.front());
  for (PageTable& table : tables_) table.drop(first_positions);
}

Room Sequence::try_replace(Position first_position, KvFormat form, const ConvertPage& convert) {
  const Room room = pay_and_apply(
      [&](const PageTable& table) { return table.plan_replace(first_position, form); },
      [&](PageTable& table, const PageTable::Need& need, BudgetReservation& paid) {
        table.replace(first_position, convert, need, paid);
      });
  if (room) lose_from(first_position);
  return room;
}

Room Sequence::pack_pages(std::span<const Position> first_positions) {
  const Room room =
      pay_and_apply([&](const PageTable& table) { return table.plan_pack(first_positions); },
                    [&](PageTable& table, const PageTable::Need& need, BudgetReservation& paid) {
                      table.pack(first_positions, need, paid);
                    });
  if (room) lose_from(first_positions.front());  // the borders are others now
  return room;
}

SequenceHandle Sequence::try_fork() const {
  std::uint64_t bytes = record_bytes(tables_.size());
  for (const PageTable& table : tables_) bytes += table.fork_bytes();
  auto paid = cache_.budget().try_reserve(bytes);
  if (!paid) return nullptr;
  SequenceHandle copy(
      new Sequence(cache_, cache_.next_id(), paid->split(record_bytes(tables_.size()))));
  for (const PageTable& table : tables_) copy->tables_.push_back(table.fork(*paid));
  copy->size_ = size_;
  copy->exact_end_ = exact_end_;
  return copy;
}

Room Sequence::try_adopt(std::span<const std::int32_t> fills, std::span<const PageHandle> pages) {
  MEMDECAY_CHECK(pages.size() == fills.size() * tables_.size());
  std::size_t group = 0;
  const Room room =
      pay_and_apply([&](const PageTable& table) { return table.plan_adopt(fills.size()); },
                    [&](PageTable& table, const PageTable::Need& need, BudgetReservation& paid) {
                      table.prepare_adopt(need, paid);
                      for (std::size_t i = 0; i < fills.size(); ++i) {
                        const PageHandle& page = pages[i * tables_.size() + group];
                        table.adopt(page.has_page() ? page.share() : PageHandle(), fills[i]);
                      }
                      ++group;
                    });
  if (!room) return room;
  size_ = std::accumulate(fills.begin(), fills.end(), size_);
  for (const PageTable& table : tables_)
    MEMDECAY_CHECK(table.window() == 0 || table.earliest_cut() <= std::max(size_, 1));
  return room;
}

void Sequence::check_writable(Position begin, Position end) const {
  MEMDECAY_CHECK(begin >= 0 && begin <= end && end <= size_);
  for (const PageTable& table : tables_) table.check_writable(begin, end);
}

KvPageRef Sequence::page_for_write(LayerGroupId group, Position position) const {
  MEMDECAY_CHECK(position >= 0 && position < size_);
  table(group).check_writable(position, position + 1);
  return view(group).pages[*table(group).find(position)];
}

SequenceMemory Sequence::memory() const {
  SequenceMemory memory;
  memory.table_bytes = record_.bytes();
  for (const PageTable& table : tables_) {
    memory.table_bytes += table.table_bytes();
    for (const PageHandle& page : table.pages()) {
      const bool exclusive = page.exclusive();
      (exclusive ? memory.exclusive_pages : memory.shared_pages) += 1;
      (exclusive ? memory.exclusive_bytes : memory.shared_bytes) += page.pool().stride_bytes();
    }
  }
  return memory;
}

Status Sequence::check_alike(const PageTable& first, const PageTable& other) const {
  const auto a = first.view(), b = other.view();
  if (first.rope_offset() != other.rope_offset())
    return make_status(StatusCode::kCorrupt,
                       "sequence {} closed {} positions in one group and {} in another",
                       id_.value(), first.rope_offset(), other.rope_offset());
  if (a.layout->page_tokens != b.layout->page_tokens) return {};
  const auto same = [](const KvPageRef& x, const KvPageRef& y) {
    return x.first_position == y.first_position && x.filled == y.filled &&
           x.rope_shift == y.rope_shift && x.closed_before == y.closed_before;
  };
  if (std::equal(a.pages.begin(), a.pages.end(), b.pages.begin(), b.pages.end(), same)) return {};
  return make_status(StatusCode::kCorrupt,
                     "sequence {} holds other positions in one group than "
                     "in another",
                     id_.value());
}

Status Sequence::check() const {
  if (record_.bytes() != record_bytes(tables_.size()))
    return make_status(StatusCode::kCorrupt, "sequence {} charges {} bytes for its record",
                       id_.value(), record_.bytes());
  for (std::size_t g = 0; g < tables_.size(); ++g) {
    const Status status = tables_[g].check(size_);
    if (!status.ok())
      return status.with_context(fmt::format("sequence {}, layer group {}", id_.value(), g));
    if (tables_[g].window() == 0)
      MEMDECAY_RETURN_IF_ERROR(check_alike(*first_unbounded(), tables_[g]));
  }
  return {};
}

}  // namespace memdecay
