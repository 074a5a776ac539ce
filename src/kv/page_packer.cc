#include "kv/page_packer.h"

#include <algorithm>

#include "core/check.h"
#include "kv/slot_copy.h"

namespace memdecay {

PagePacker::PagePacker(PagePool& pool, std::size_t pages, std::size_t runs, BudgetReservation& paid)
    : pool_(pool), paid_(paid) {
  pages_.reserve(pages);
  refs_.reserve(pages);
  runs_.reserve(runs);
}

std::uint64_t PagePacker::bytes_for(std::size_t pages, std::size_t runs) {
  return pages * (sizeof(PageHandle) + sizeof(KvPageRef)) + runs * sizeof(PositionRun);
}

void PagePacker::add(const KvPageRef& source, std::int32_t slot, PositionRun run) {
  const KvPageLayout& layout = pool_.layout();
  while (run.tokens > 0) {
    if (refs_.empty() || refs_.back().filled == layout.page_tokens) open_page(run.first);
    KvPageRef& target = refs_.back();
    const std::int32_t slots = std::min(layout.page_tokens - target.filled, run.tokens);
    copy_slots(layout, source.base, slot, slots, target.base, target.filled);
    note({run.first, slots});
    target.filled += slots;
    slot += slots;
    run = {run.first + slots, run.tokens - slots};
  }
}

void PagePacker::open_page(Position first_position) {
  close_page();
  MEMDECAY_CHECK(pages_.size() < pages_.capacity());
  pages_.push_back(pool_.allocate(paid_));
  refs_.push_back({pages_.back().base(), first_position, 0, pool_.layout().format});
}

void PagePacker::close_page() {
  if (runs_.size() - first_run_ == 1) runs_.pop_back();  // no gap: a plain page
  first_run_ = runs_.size();
}

void PagePacker::note(PositionRun run) {
  if (runs_.size() > first_run_ && runs_.back().end() == run.first) {
    runs_.back().tokens += run.tokens;
  } else {
    MEMDECAY_CHECK(runs_.size() < runs_.capacity());
    runs_.push_back(run);
  }
}

}  // namespace memdecay
