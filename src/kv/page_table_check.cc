// The equations of page_table.h, tested.
#include <algorithm>

#include "kv/page_table.h"

namespace memdecay {

Status PageTable::check(Position size) const {
  const auto& refs = refs_.items();
  if (pages().size() != refs.size())
    return make_status(StatusCode::kCorrupt, "{} pages stand against {} view entries",
                       pages().size(), refs.size());
  Position end = 0;
  for (std::size_t i = 0; i < refs.size(); ++i) {
    MEMDECAY_RETURN_IF_ERROR(check_entry(i, end, size));
    end = runs_.end_of(refs[i]);
  }
  const bool may_be_open = !refs.empty() && end == size && refs.back().filled < page_tokens() &&
                           may_be_written(refs.back());
  if (open_ && !may_be_open)
    return make_status(StatusCode::kCorrupt, "the last page is open but ends at {} of {} tokens",
                       end, size);
  if (!is_dense() && first_page_number_ != 0)
    return make_status(StatusCode::kCorrupt, "a table without a window starts at page {}",
                       first_page_number_);
  if (is_dense()) MEMDECAY_RETURN_IF_ERROR(check_window(size));
  MEMDECAY_RETURN_IF_ERROR(check_places(size));
  if (!pages_.is_paid() || !refs_.is_paid())
    return make_status(StatusCode::kCorrupt, "the table's arrays charge {} bytes for {} entries",
                       pages_.bytes() + refs_.bytes(), pages().capacity());
  return runs_.check(refs);
}

/// An entry lies within [begin, end) and shows the page that it owns.
Status PageTable::check_entry(std::size_t i, Position begin, Position end) const {
  const KvPageRef& ref = refs_.items()[i];
  const PageHandle& page = pages()[i];
  if (ref.filled < 1 || ref.filled > page_tokens() || ref.first_position < begin ||
      runs_.end_of(ref) > end)
    return make_status(StatusCode::kCorrupt,
                       "entry {} fills {} slots from {} to {}, within {} to {}", i, ref.filled,
                       ref.first_position, runs_.end_of(ref), begin, end);
  if (ref.base != page.base() || pools_->find(ref.format) != &page.pool())
    return make_status(StatusCode::kCorrupt, "entry {} does not show its own page", i);
  return {};
}

Status PageTable::check_places(Position size) const {
  Position end = 0;
  Position closed = 0;
  const auto follows = [&](Position position, Position closed_before) {
    return closed <= closed_before && end - closed <= position - closed_before;
  };
  for (const KvPageRef& ref : refs_.items()) {
    const bool moved_too_far = ref.rope_shift > 0 || ref.closed_before + ref.rope_shift < 0;
    if (moved_too_far || !follows(ref.first_position, ref.closed_before))
      return make_status(StatusCode::kCorrupt,
                         "the page at {} is moved by {} with {} closed before it, behind a page "
                         "that ends at {} with {}",
                         ref.first_position, ref.rope_shift, ref.closed_before, end, closed);
    end = runs_.end_of(ref);
    closed = ref.closed_before;
  }
  if (!follows(size, closed_) || (open_ && closed_ != closed) || (is_dense() && closed_ != 0))
    return make_status(StatusCode::kCorrupt,
                       "{} positions are closed before the next token at {}, behind a page that "
                       "ends at {} with {}",
                       closed_, size, end, closed);
  return {};
}

Status PageTable::check_window(Position size) const {
  const auto& refs = refs_.items();
  const std::int32_t pages_of_size = (size + page_tokens() - 1) / page_tokens();
  const auto end_page = first_page_number_ + static_cast<std::int32_t>(refs.size());
  if (end_page != pages_of_size || open_ != (size % page_tokens() != 0))
    return make_status(StatusCode::kCorrupt, "{} tokens end in page {}, but the table ends at {}",
                       size, pages_of_size, end_page);
  const Position oldest = first_page_number_ * page_tokens();
  if (first_page_number_ > 0 && oldest > size - window_ + 1)
    return make_status(StatusCode::kCorrupt,
                       "position {} is the oldest kept, but the window of {} at {} reaches further",
                       oldest, window_, size);
  for (std::size_t i = 0; i < refs.size(); ++i) {
    const Position first = oldest + static_cast<std::int32_t>(i) * page_tokens();
    const std::int32_t filled = std::min(page_tokens(), size - first);
    if (refs[i].first_position != first || refs[i].filled != filled || !may_be_written(refs[i]))
      return make_status(StatusCode::kCorrupt,
                         "entry {} shows position {} with {} slots filled, not {} with {}", i,
                         refs[i].first_position, refs[i].filled, first, filled);
  }
  return {};
}

}  // namespace memdecay
