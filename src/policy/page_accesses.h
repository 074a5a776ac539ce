// What policies that keep a number for each page share.
//
// for_each_access: which pages of a batch of attention mass were accessed: got more than the
// uniform share of their tokens among the tracked pages of the batch. O(pages of the batch), no
// allocation.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "policy/evidence.h"
#include "policy/page_book.h"

namespace memdecay {

template <typename Accessed>
void for_each_access(const PageBook& book, const EvidenceBatch& batch, Accessed accessed) {
  if (batch.kind != EvidenceKind::kAttentionMass) return;
  std::int64_t tokens = 0;
  double mass = 0;
  for (const PageEvidence& evidence : batch.pages) {
    if (!book.tracked(evidence.page)) continue;
    tokens += book.meta(evidence.page).tokens;
    mass += static_cast<double>(evidence.value);
  }
  for (const PageEvidence& evidence : batch.pages) {
    if (!book.tracked(evidence.page)) continue;
    const double uniform = mass * book.meta(evidence.page).tokens / static_cast<double>(tokens);
    if (static_cast<double>(evidence.value) > uniform) accessed(evidence.page);
  }
}

/// How much of the page it came from a packed page's part is. REQUIRES: that one is tracked.
inline double share_of(const PageBook& book, const PackedPart& part) {
  return static_cast<double>(part.tokens) / book.meta(part.from).tokens;
}

/// values[page], growing by doubling.
template <typename T>
T& page_slot(std::vector<T>& values, TrackedPageId page) {
  if (page.index() >= values.size()) {
    values.resize(std::max(page.index() + 1, 2 * values.size()));
  }
  return values[page.index()];
}

}  // namespace memdecay
