#include "kv/kv_cache.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "core/check.h"
#include "core/units.h"

namespace memdecay {
namespace {

Status check_group(const KvLayerGroup& group) {
  const KvPageLayout& layout = group.layout;
  if (layout.page_tokens != 16 && layout.page_tokens != 32 && layout.page_tokens != 64)
    return make_status(StatusCode::kInvalidArgument, "pages hold 16, 32 or 64 tokens, not {}",
                       layout.page_tokens);
  if (layout.layers < 1 || layout.kv_heads < 1 || layout.head_dim < 1 || group.window < 0)
    return make_status(StatusCode::kInvalidArgument,
                       "a layer group of {} layers, {} kv heads of {} and window {} is impossible",
                       layout.layers, layout.kv_heads, layout.head_dim, group.window);
  if (is_quantized(layout.format))
    return Status(StatusCode::kInvalidArgument,
                  "pages are written as fp16 or fp32 and take smaller forms later");
  return {};
}

/// The layouts of a group's pools, its own first.
std::vector<KvPageLayout> layouts_of(const KvCacheConfig& config, const KvLayerGroup& group) {
  std::vector<KvPageLayout> layouts{group.layout};
  if (group.window > 0) return layouts;
  for (const KvFormat form : config.forms) {
    const KvPageLayout layout = group.layout.in(form);
    if (std::find(layouts.begin(), layouts.end(), layout) == layouts.end())
      layouts.push_back(layout);
  }
  return layouts;
}

/// As many pages as the budget, or else the machine's memory, can hold; every pool may take all.
std::int32_t most_pages(const KvCacheConfig& config, const KvPageLayout& layout) {
  const std::uint64_t stride = PagePool::stride_bytes_for(layout);
  const std::uint64_t bytes = std::min(config.budget_bytes, physical_memory_bytes());
  const std::uint64_t pages =
      std::clamp<std::uint64_t>(bytes / stride, 1, std::numeric_limits<std::int32_t>::max() / 2);
  return config.max_pages > 0 ? config.max_pages : static_cast<std::int32_t>(pages);
}

/// The least budget that holds the tables, one page of each group and one sequence.
std::uint64_t least_budget(const KvCacheConfig& config) {
  std::uint64_t bytes = 4 * kKiB;  // a sequence's record and first tables, generously
  for (const KvLayerGroup& group : config.groups) {
    bytes += PagePool::stride_bytes_for(group.layout);
    for (const KvPageLayout& layout : layouts_of(config, group))
      bytes += PagePool::table_bytes_for(most_pages(config, layout));
  }
  return bytes;
}

}  // namespace

Result<std::unique_ptr<KvCache>> KvCache::create(const KvCacheConfig& config) {
  if (config.groups.empty() || config.cut_back_tokens < 0 || config.max_pages < 0)
    return Status(StatusCode::kInvalidArgument,
                  "a KV cache needs at least one layer group and no negative counts");
  for (const KvLayerGroup& group : config.groups) MEMDECAY_RETURN_IF_ERROR(check_group(group));
  MEMDECAY_ASSIGN_OR_RETURN(auto budget, KvBudget::create(config.budget_bytes));
  if (least_budget(config) > config.budget_bytes)
    return make_status(StatusCode::kResourceExhausted,
                       "a KV budget of {} is too small for this model: one page and its tables "
                       "need {}",
                       format_bytes(config.budget_bytes), format_bytes(least_budget(config)));
  auto cache = std::unique_ptr<KvCache>(new KvCache(config));
  cache->budget_ = std::move(budget);
  const bool exact = config.budget_bytes < KvCacheConfig::kExactBudgetBytes;
  const HugePages huge = exact ? HugePages::kNever : config.huge_pages;
  for (const KvLayerGroup& group : config.groups) {
    GroupPools& pools = cache->pools_.emplace_back();
    for (const KvPageLayout& layout : layouts_of(config, group))
      MEMDECAY_RETURN_IF_ERROR(
          pools.add(*cache->budget_, layout, most_pages(config, layout), huge));
  }
  return cache;
}

KvCache::~KvCache() {
  MEMDECAY_CHECK(sequence_count_ == 0);
}

Status KvCache::remember_prefixes(std::unique_ptr<LineageHasher> hasher,
                                  std::int32_t remembered_evictions) {
  MEMDECAY_CHECK(prefixes_ == nullptr);
  std::vector<PagePool*> pools;
  for (const GroupPools& group : pools_) pools.push_back(&group.own());
  MEMDECAY_ASSIGN_OR_RETURN(prefixes_, PrefixTree::create(*budget_, std::move(pools),
                                                          std::move(hasher), remembered_evictions));
  return {};
}

SequenceHandle KvCache::try_create_sequence() {
  auto record = budget_->try_reserve(Sequence::record_bytes(pools_.size()));
  if (!record) return nullptr;
  SequenceHandle sequence(new Sequence(*this, next_id(), *std::move(record)));
  for (std::size_t g = 0; g < pools_.size(); ++g)
    sequence->tables_.emplace_back(pools_[g], config_.groups[g].window, config_.cut_back_tokens);
  return sequence;
}

void KvCache::enlist(Sequence& sequence) {
  sequence.next_ = sequences_;
  if (sequences_ != nullptr) sequences_->previous_ = &sequence;
  sequences_ = &sequence;
  ++sequence_count_;
}

void KvCache::delist(Sequence& sequence) {
  if (sequence.next_ != nullptr) sequence.next_->previous_ = sequence.previous_;
  (sequence.previous_ != nullptr ? sequence.previous_->next_ : sequences_) = sequence.next_;
  --sequence_count_;
}

std::uint64_t KvCache::overhead_bytes() const {
  std::uint64_t bytes = prefixes_ ? prefixes_->empty_bytes() : 0;
  for (const GroupPools& pools : pools_)
    for (const auto& pool : pools.all()) bytes += PagePool::table_bytes_for(pool->max_pages());
  return bytes;
}

KvUsage KvCache::usage(LayerGroupId group, const PagePool& pool) const {
  struct Fill {
    std::int64_t slots = 0;
    std::int32_t holders = 0;
  };
  std::vector<Fill> fills(static_cast<std::size_t>(pool.ever_used_pages()));
  for (const Sequence* s = sequences_; s != nullptr; s = s->next_) {
    const PageTable& table = s->table(group);
    const auto refs = table.view().pages;
    for (std::size_t i = 0; i < refs.size(); ++i) {
      if (&table.pages()[i].pool() != &pool) continue;
      Fill& fill = fills[table.pages()[i].id().index()];
      fill.slots += refs[i].filled;
      ++fill.holders;
    }
  }
  KvUsage usage;
  const KvPageLayout& layout = pool.layout();
  for (const Fill& fill : fills) {
    if (fill.holders == 0) continue;
    usage.filled_slots += static_cast<double>(fill.slots) / fill.holders;
    usage.allocated_slots += layout.page_tokens;
  }
  const double slot_bytes = static_cast<double>(layout.page_bytes()) / layout.page_tokens;
  usage.filled_bytes = usage.filled_slots * slot_bytes;
  usage.allocated_bytes = usage.allocated_slots * slot_bytes;
  return usage;
}

KvUsage& KvUsage::operator+=(const KvUsage& other) {
  filled_slots += other.filled_slots;
  allocated_slots += other.allocated_slots;
  filled_bytes += other.filled_bytes;
  allocated_bytes += other.allocated_bytes;
  return *this;
}

KvUsage KvCache::usage(LayerGroupId group) const {
  KvUsage sum;
  for (const auto& pool : pools(group).all()) sum += usage(group, *pool);
  return sum;
}

KvUsage KvCache::usage() const {
  KvUsage sum;
  for (std::size_t g = 0; g < pools_.size(); ++g)
    sum += usage(LayerGroupId(static_cast<std::int32_t>(g)));
  return sum;
}

Status KvCache::check_pool(LayerGroupId group, const PagePool& pool,
                           std::span<const PageHandle* const> other_pages) const {
  std::vector<std::int32_t> named(static_cast<std::size_t>(pool.ever_used_pages()));
  const auto count = [&](const PageHandle& page) {
    if (&page.pool() == &pool) ++named[page.id().index()];
  };
  for (const Sequence* s = sequences_; s != nullptr; s = s->next_)
    for (const PageHandle& page : s->table(group).pages()) count(page);
  for (const PageHandle* const page : other_pages) count(*page);
  if (prefixes_ && &pool == &this->pool(group)) prefixes_->count_references(group, named);
  return pool.check(named);
}

Status KvCache::validate(std::uint64_t other_bytes,
                         std::span<const PageHandle* const> other_pages) const {
  std::uint64_t bytes = other_bytes;
  if (prefixes_) {
    MEMDECAY_RETURN_IF_ERROR(prefixes_->check());
    bytes += prefixes_->counters().record_bytes;
  }
  std::int32_t living = 0;
  for (const Sequence* s = sequences_; s != nullptr; s = s->next_, ++living) {
    MEMDECAY_RETURN_IF_ERROR(s->check());
    bytes += s->memory().table_bytes;
  }
  if (living != sequence_count_)
    return make_status(StatusCode::kCorrupt, "{} sequences are listed but {} counted", living,
                       sequence_count_);
  for (std::size_t g = 0; g < pools_.size(); ++g) {
    const LayerGroupId group(static_cast<std::int32_t>(g));
    for (const auto& pool : pools_[g].all()) {
      const Status status = check_pool(group, *pool, other_pages);
      if (!status.ok()) return status.with_context(fmt::format("layer group {}", g));
      const PagePoolCounters counters = pool->counters();
      bytes += counters.page_bytes + counters.table_bytes;
    }
  }
  if (bytes != budget_->current_bytes() || bytes > budget_->limit_bytes())
    return make_status(StatusCode::kCorrupt, "{} bytes are held but {} of {} are charged", bytes,
                       budget_->current_bytes(), budget_->limit_bytes());
  return {};
}

}  // namespace memdecay
