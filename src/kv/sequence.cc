#include "kv/sequence.h"

#include <algorithm>
#include <limits>
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

std::uint64_t Sequence::bytes_to_append(std::int32_t tokens) const {
  std::uint64_t bytes = 0;
  for (const PageTable& table : tables_) bytes += table.plan_append(size_, tokens).bytes;
  return bytes;
}

Room Sequence::try_append(std::int32_t tokens) {
  MEMDECAY_CHECK(tokens >= 0 && tokens <= std::numeric_limits<Position>::max() - size_);
  trim();
  const std::uint64_t bytes = bytes_to_append(tokens);
  KvBudget& budget = cache_.budget();
  auto paid = budget.try_reserve(bytes);
  if (!paid) return {Room::Refusal::kBudget, budget.missing_bytes(bytes)};
  for (std::size_t g = 0; g < tables_.size(); ++g) {
    const std::int32_t pages = tables_[g].plan_append(size_, tokens).pages;
    const Room room = cache_.pool(LayerGroupId(static_cast<std::int32_t>(g))).try_prepare(pages);
    if (!room) return room;
  }
  // From here on nothing can fail.
  for (PageTable& table : tables_)
    table.append(size_, tokens, table.plan_append(size_, tokens), *paid);
  MEMDECAY_CHECK(paid->bytes() == 0);
  size_ += tokens;
  return {};
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
  return true;
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
  return copy;
}

void Sequence::check_writable(Position begin, Position end) const {
  MEMDECAY_CHECK(begin >= 0 && begin <= end && end <= size_);
  if (begin == end) return;
  for (const PageTable& table : tables_) {
    const std::int32_t page_tokens = table.pool().layout().page_tokens;
    const std::int32_t first = begin / page_tokens - table.first_page_number();
    const std::int32_t last = (end - 1) / page_tokens - table.first_page_number();
    MEMDECAY_CHECK(first >= 0);
    for (std::int32_t i = first; i <= last; ++i)
      MEMDECAY_CHECK(table.pages()[static_cast<std::size_t>(i)].exclusive());
  }
}

KvPageRef Sequence::page_for_write(LayerGroupId group, Position position) const {
  const PagedKvView pages = view(group);
  const std::int32_t at = position / pages.layout->page_tokens - pages.first_page_number;
  MEMDECAY_CHECK(position >= 0 && position < size_ && at >= 0);
  MEMDECAY_CHECK(table(group).pages()[static_cast<std::size_t>(at)].exclusive());
  return pages.pages[static_cast<std::size_t>(at)];
}

SequenceMemory Sequence::memory() const {
  SequenceMemory memory;
  memory.table_bytes = record_.bytes();
  for (const PageTable& table : tables_) {
    memory.table_bytes += table.table_bytes();
    for (const PageHandle& page : table.pages()) {
      const bool exclusive = page.exclusive();
      (exclusive ? memory.exclusive_pages : memory.shared_pages) += 1;
      (exclusive ? memory.exclusive_bytes : memory.shared_bytes) += table.pool().stride_bytes();
    }
  }
  return memory;
}

Status Sequence::check() const {
  if (record_.bytes() != record_bytes(tables_.size()))
    return make_status(StatusCode::kCorrupt, "sequence {} charges {} bytes for its record",
                       id_.value(), record_.bytes());
  for (std::size_t g = 0; g < tables_.size(); ++g) {
    const Status status = tables_[g].check(size_);
    if (!status.ok())
      return status.with_context(fmt::format("sequence {}, layer group {}", id_.value(), g));
  }
  return {};
}

}  // namespace memdecay
