// The score that each policy gives a page, by its definition, from a plain list of all that was
// seen of the page. What is the same for all pages is left out: it changes no order. For tests.
#pragma once

#include <algorithm>
#include <cmath>
#include <string_view>
#include <vector>

#include "policy/policies/memdecay_policy.h"

namespace memdecay {

/// One number that a policy was told of a page.
struct Seen {
  std::int64_t step;
  EvidenceKind kind;
  QueryPhase phase;
  float value;
  bool access;
};

struct PageHistory {
  std::vector<Seen> seen;
  unsigned ordinal = 0;  ///< pages that were tracked before
  std::int64_t now = 0;  ///< in steps
};

inline double naive_memdecay(const MemdecayOptions& options, const PageMeta& meta,
                             const PageHistory& history, Region as) {
  const std::size_t r = region_index(as);
  // All shifts that are common to all pages are left out: they change no order.
  double value = 0;
  double count = 0;
  double lasting = 0;
  auto used = static_cast<double>(meta.born_step);
  for (const Seen& seen : history.seen) {
    if (seen.kind != options.evidence_kind) continue;
    const double weight = options.evidence.phase_weights[static_cast<std::size_t>(seen.phase)];
    const double kept = std::pow(
        0.5, static_cast<double>(history.now - seen.step) / options.evidence.half_life_tokens);
    value += weight * kept * static_cast<double>(seen.value);
    count += weight * kept;
    lasting += weight * static_cast<double>(seen.value);
    if (seen.access) used = static_cast<double>(seen.step);
  }
  const double share = options.evidence.lasting_share;
  const double level =
      (1 - share) * std::log(value / count + 1e-9) + share * std::log(lasting + 1e-9);
  return options.region_weight * std::log(options.initial[r]) + options.beta * level +
         options.exact_bonus * static_cast<double>(meta.exact_share) -
         options.decay[r] * static_cast<double>(history.now - meta.born_step) -
         options.idle_decay * 1e-3 * (static_cast<double>(history.now) - used);
}

/// The region that memdecay counts the page as.
inline Region naive_region(const MemdecayOptions& options, const PageMeta& meta,
                           const PageHistory& history) {
  double rate = 0;
  bool promoted = false;
  for (const Seen& seen : history.seen) {
    if (seen.kind != options.evidence_kind) continue;
    rate += ((seen.access ? 1 : 0) - rate) / options.promote_batches;
    promoted = rate >= options.promote_rate * (promoted ? 0.5 : 1.0);
  }
  return promoted ? stronger(meta.region, Region::kTool) : meta.region;
}

/// 0 for a policy whose order has no definition to hold it to (`random`).
inline double naive_score(std::string_view policy, const MemdecayOptions& options,
                          const PageMeta& meta, const PageHistory& history, Region as) {
  const auto of_kind = [&](EvidenceKind kind) {
    std::vector<Seen> some;
    for (const Seen& one : history.seen) {
      if (one.kind == kind) some.push_back(one);
    }
    return some;
  };
  const auto mass = of_kind(EvidenceKind::kAttentionMass);
  const std::size_t r = region_index(as);
  if (policy == "memdecay") return naive_memdecay(options, meta, history, as);
  if (policy == "window" || policy == "sinks" || policy == "recompute") return meta.position;
  if (policy == "memdecay-classic") {
    const auto accesses = std::count_if(mass.begin(), mass.end(), [](auto& s) { return s.access; });
    return std::log(kInitialScores[r]) -
           default_region_decay()[r] * static_cast<double>(history.now - meta.born_step) +
           std::log(1 + 0.1 * std::log(1 + static_cast<double>(accesses)));
  }
  if (policy == "uniform") {
    unsigned mirrored = 0;
    for (int bit = 0; bit < 32; ++bit) {
      if ((history.ordinal >> bit & 1) != 0) mirrored |= 1U << (31 - bit);
    }
    return -static_cast<double>(mirrored);
  }
  if (policy == "h2o") {
    double sum = 0;
    for (const Seen& one : mass) sum += static_cast<double>(one.value);
    return sum;
  }
  if (policy == "tova") {
    const auto last = of_kind(EvidenceKind::kLastQueryMass);
    return last.empty() ? 1.0 : static_cast<double>(last.back().value);
  }
  if (policy == "keydiff") {
    const auto similar = of_kind(EvidenceKind::kKeySimilarity);
    return similar.empty() ? 1.0 : -static_cast<double>(similar.back().value);
  }
  if (policy == "lru") {
    double used = static_cast<double>(meta.born_step);
    for (const Seen& one : mass) {
      if (one.access) used = static_cast<double>(one.step);
    }
    return used;
  }
  return 0;
}

}  // namespace memdecay
