#include "engine/memory/shared_prefixes.h"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <optional>
#include <utility>

#include "core/check.h"
#include "engine/memory/second_try.h"

namespace memdecay {
namespace {

/// The list of past evictions, which explains misses, may take one part in so many of the budget.
constexpr std::uint64_t kEvictionListShare = 1024;

std::int32_t remembered_evictions(const KvBudget& budget) {
  const std::uint64_t most = budget.limit_bytes() / kEvictionListShare / sizeof(std::uint64_t);
  return static_cast<std::int32_t>(
      std::clamp<std::uint64_t>(most, 16, PrefixTree::kRememberedEvictions));
}

Position sum(std::span<const std::int32_t> sizes) {
  return std::accumulate(sizes.begin(), sizes.end(), Position{0});
}

std::span<const TokenId> part(std::span<const TokenId> tokens, Position begin, Position end) {
  return tokens.subspan(static_cast<std::size_t>(begin), static_cast<std::size_t>(end - begin));
}

}  // namespace

Result<std::unique_ptr<SharedPrefixes>> SharedPrefixes::create(KvCache& cache,
                                                               std::string fingerprint,
                                                               std::uint64_t unbudgeted_bytes) {
  LineageModel model{std::move(fingerprint), {}};
  std::optional<LayerGroupId> group;
  for (std::size_t g = 0; g < cache.groups().size(); ++g) {
    const KvLayerGroup& layers = cache.groups()[g];
    model.groups.push_back({layers.layout, layers.window});
    if (layers.window == 0 && !group) group = LayerGroupId(static_cast<std::int32_t>(g));
  }
  if (!group) return std::unique_ptr<SharedPrefixes>();
  MEMDECAY_RETURN_IF_ERROR(cache.remember_prefixes(
      std::make_unique<LineageHasher>(std::move(model)), remembered_evictions(cache.budget())));
  return std::unique_ptr<SharedPrefixes>(new SharedPrefixes(cache, *group, unbudgeted_bytes));
}

SharedPrefixes::SharedPrefixes(KvCache& cache, LayerGroupId group, std::uint64_t unbudgeted_bytes)
    : cache_(cache), tree_(*cache.prefixes()), group_(group), unbudgeted_bytes_(unbudgeted_bytes) {
  for (const KvLayerGroup& layers : cache.groups()) has_windows_ |= layers.window > 0;
}

std::int32_t SharedPrefixes::page_tokens() const {
  return cache_.groups()[group_.index()].layout.page_tokens;
}

/// Sizes of the pages that hold [0, end) once the sequence has grown there by its own cuts; from
/// nothing where it does not keep what it has.
std::vector<std::int32_t> SharedPrefixes::page_sizes(const Sequence& sequence, bool keeps_own,
                                                     std::span<const Position> cuts,
                                                     Position end) const {
  std::vector<std::int32_t> sizes;
  Position at = 0;
  bool open = false;
  if (keeps_own) {
    for (const KvPageRef& page : sequence.view(group_).pages) sizes.push_back(page.filled);
    at = sequence.size();
    open = sequence.is_open();
  }
  auto cut = std::lower_bound(cuts.begin(), cuts.end(), at);
  if (cut != cuts.end() && *cut == at) open = false;
  while (at < end) {
    cut = std::upper_bound(cut, cuts.end(), at);
    const Position border = cut != cuts.end() ? std::min(*cut, end) : end;
    if (!std::exchange(open, false)) sizes.push_back(0);
    const std::int32_t more = std::min(page_tokens() - sizes.back(), border - at);
    sizes.back() += more;
    at += more;
  }
  return sizes;
}

/// With windows: the leading full pages, and where the caller may use it the short one after them.
void SharedPrefixes::keep_full(std::vector<std::int32_t>& sizes, bool last_may_be_short) const {
  if (!has_windows_) return;
  auto end = std::find_if(sizes.begin(), sizes.end(),
                          [&](std::int32_t tokens) { return tokens < page_tokens(); });
  if (end != sizes.end() && last_may_be_short) ++end;
  sizes.erase(end, sizes.end());
}

SharedPrefixes::Match SharedPrefixes::match(Sequence& sequence, const PrefixScope& scope,
                                            std::span<const TokenId> tokens,
                                            std::span<const Position> cuts, std::size_t most_pages,
                                            PrefixDifference::Audience audience) {
  Match match;
  const Position own = sequence.size();
  const auto end = static_cast<Position>(tokens.size());
  if (own >= end) return match;
  const bool keeps_own = sequence.exact_tokens() == own;
  std::vector<std::int32_t> sizes = page_sizes(sequence, keeps_own, cuts, end);
  keep_full(sizes, /*last_may_be_short=*/true);
  const bool too_many = sizes.size() > most_pages;
  if (too_many) sizes.resize(most_pages);
  const PrefixPlan plan{part(tokens, 0, sum(sizes)), sizes};
  const PrefixPin pin = tree_.lookup_and_pin(scope, plan);
  match.difference = tree_.find_difference(scope, plan, pin, audience);
  const auto planned = static_cast<Position>(plan.tokens.size());
  if (match.difference.cause == PrefixDifference::Cause::kNone && planned < end)
    match.difference.cause =
        too_many ? PrefixDifference::Cause::kBudget : PrefixDifference::Cause::kShortPage;
  if (pin.matched_tokens() + pin.partial_tokens() <= own) return match;
  match.replaced_own = !keeps_own;
  take(sequence, pin, keeps_own && !has_windows_);
  match.taken_tokens = std::max(0, sequence.size() - (keeps_own ? own : 0));
  return match;
}

/// Replaces what stands behind the sequence's own whole pages, or all of it, by the pin's pages.
void SharedPrefixes::take(Sequence& sequence, const PrefixPin& pin, bool keeps_own) {
  const PagedKvView view = sequence.view(group_);
  std::size_t kept = 0;
  Position border = 0;
  if (keeps_own) {
    kept = view.pages.size() - (sequence.is_open() ? 1 : 0);
    border = sequence.is_open() ? view.pages.back().first_position : sequence.size();
  }
  MEMDECAY_CHECK(sequence.try_truncate(border) && pin.matched_tokens() >= border);
  std::vector<std::int32_t> fills;
  std::vector<PageHandle> pages;
  const auto add = [&](const PrefixPage& page, std::int32_t tokens) {
    fills.push_back(tokens);
    for (const PageHandle& handle : page.pages)
      pages.push_back(handle.has_page() ? handle.share() : PageHandle());
  };
  const std::vector<PrefixPage> whole = pin.pages();
  for (std::size_t i = kept; i < whole.size(); ++i)
    add(whole[i], static_cast<std::int32_t>(whole[i].tokens.size()));
  const auto yield = [&](std::uint64_t bytes) { return give_way(bytes) > 0; };
  if (!with_second_try([&] { return sequence.try_adopt(fills, pages); }, yield)) return;
  if (pin.partial_tokens() == 0) return;
  const std::vector<Position> cut = {sequence.size()};
  const auto seals = std::span(cut).first(sequence.is_open() ? 1 : 0);
  if (with_second_try([&] { return sequence.try_append(pin.partial_tokens(), seals); }, yield))
    copy_last_page(sequence, pin.partial_page());
}

/// Gives the sequence's last page the bytes of a remembered one that begins like it: a page of its
/// own, since a page has one place in the tree.
void SharedPrefixes::copy_last_page(Sequence& sequence, const PrefixPage& page) const {
  for (std::size_t g = 0; g < page.pages.size(); ++g) {
    const KvPageRef last =
        sequence.page_for_write(LayerGroupId(static_cast<std::int32_t>(g)), sequence.size() - 1);
    std::memcpy(last.base, page.pages[g].base(), cache_.groups()[g].layout.page_bytes());
  }
}

void SharedPrefixes::remember(const Sequence& sequence, const PrefixScope& scope,
                              std::span<const TokenId> tokens, Position& done) {
  const PagedKvView view = sequence.view(group_);
  Position end = sequence.exact_tokens();
  if (end == sequence.size() && sequence.is_open()) end = view.pages.back().first_position;
  if (end <= done) return;
  std::vector<std::int32_t> sizes;
  for (const KvPageRef& page : view.pages) {
    if (page.first_position >= end) break;
    sizes.push_back(page.filled);
  }
  keep_full(sizes, /*last_may_be_short=*/false);
  PrefixPin pin = tree_.lookup_and_pin(scope, {part(tokens, 0, sum(sizes)), sizes});
  Position at = 0;
  for (const std::int32_t size : sizes) {
    const Position first = std::exchange(at, at + size);
    if (first < pin.matched_tokens()) continue;
    done = first;
    if (!insert_page(sequence, scope, pin, part(tokens, first, at), first)) return;
  }
  done = end;
}

std::vector<PageHandle> SharedPrefixes::pages_at(const Sequence& sequence,
                                                 Position first_position) const {
  std::vector<PageHandle> pages;
  for (std::size_t g = 0; g < cache_.groups().size(); ++g) {
    const PageTable& table = sequence.table(LayerGroupId(static_cast<std::int32_t>(g)));
    const auto entry = table.find(first_position);
    pages.push_back(entry ? table.pages()[*entry].share() : PageHandle());
  }
  return pages;
}

/// Puts copies in the place of pages that the tree has with other tokens; false without room.
bool SharedPrefixes::copy_remembered(std::vector<PageHandle>& pages) const {
  for (std::size_t g = 0; g < pages.size(); ++g) {
    if (!pages[g].has_page() || !pages[g].remembered()) continue;
    PagePool& pool = cache_.pool(LayerGroupId(static_cast<std::int32_t>(g)));
    auto copy = pool.try_copy(pages[g]);
    if (!copy) return false;
    pages[g] = *std::move(copy);
  }
  return true;
}

bool SharedPrefixes::insert_page(const Sequence& sequence, const PrefixScope& scope, PrefixPin& pin,
                                 std::span<const TokenId> tokens, Position first_position) {
  for (int attempt = 0; attempt < 2; ++attempt) {
    std::vector<PageHandle> pages = pages_at(sequence, first_position);
    auto outcome = tree_.insert(scope, pin, tokens, pages, PageLineage::kExact);
    if (outcome == PrefixTree::Insertion::kElsewhere) {
      if (!copy_remembered(pages)) return false;
      outcome = tree_.insert(scope, pin, tokens, pages, PageLineage::kExact);
    }
    if (outcome != PrefixTree::Insertion::kNoRoom) return true;
    pages.clear();
    // A new page's record is worth more than the oldest page.
    if (tree_.evict(tree_.node_bytes(), PrefixTree::Victims::kCachedOnly) == 0) break;
  }
  return false;
}

void SharedPrefixes::hold_limit() {
  if (cache_.budget().limit_bytes() != KvBudget::kUnlimited) return;
  const auto cached = [&] { return tree_.memory().cached_only_bytes; };
  // What gives way counts its records too, so once may not be enough.
  while (cached() > unbudgeted_bytes_ && give_way(cached() - unbudgeted_bytes_) > 0) {
  }
}

}  // namespace memdecay
