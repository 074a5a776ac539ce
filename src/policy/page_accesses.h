// What policies that keep a number for each page share. O(pages of the batch), no allocation.
#pragma once

#include <cstdint>
#include <vector>

#include "policy/evidence.h"
#include "policy/page_book.h"

namespace memdecay {

/// The tracked pages of a batch of that kind, each with its value.
template <typename Visit>
void for_each_value(const PageBook& book, const EvidenceBatch& batch, EvidenceKind kind,
                    Visit visit) {
  if (batch.kind != kind) return;
  for (const PageEvidence& evidence : batch.pages)
    if (book.tracked(evidence.page)) visit(evidence.page, static_cast<double>(evidence.value));
}

/// The pages of a batch of that kind that were accessed: that got more than the uniform share of
/// their tokens among the tracked pages of the batch.
template <typename Accessed>
void for_each_access(const PageBook& book, const EvidenceBatch& batch, EvidenceKind kind,
                     Accessed accessed) {
  std::int64_t all_tokens = 0;
  double all = 0;
  for_each_value(book, batch, kind, [&](TrackedPageId page, double value) {
    all_tokens += book.meta(page).tokens;
    all += value;
  });
  for_each_value(book, batch, kind, [&](TrackedPageId page, double value) {
    const double uniform = all * book.meta(page).tokens / static_cast<double>(all_tokens);
    if (value > uniform) accessed(page);
  });
}

/// How much of the page it came from a packed page's part is. REQUIRES: that one is tracked.
inline double share_of(const PageBook& book, const PackedPart& part) {
  return static_cast<double>(part.tokens) / book.meta(part.from).tokens;
}

/// A packed page's number where numbers add up: each part brings its share of its page's.
inline double inherited_sum(const std::vector<double>& values, const PageBook& book,
                            const PackedPage& page) {
  double sum = 0;
  for (const PackedPart& part : page.parts) sum += values[part.from.index()] * share_of(book, part);
  return sum;
}

/// How much of the packed page a part is.
inline double share_in(const PackedPage& page, const PackedPart& part) {
  return static_cast<double>(part.tokens) / page.meta.tokens;
}

}  // namespace memdecay
