#include "kv/prefix/prefix_tree.h"

#include <algorithm>
#include <utility>

#include "core/check.h"
#include "core/units.h"

namespace memdecay {

/// Tells where on a path a match may end: the next query must find the windows of all groups.
class PrefixTree::WindowWatch {
 public:
  explicit WindowWatch(const std::vector<LineageGroup>& groups) : groups_(groups) {
    const auto windowed = [](const LineageGroup& group) { return group.window > 0; };
    if (std::any_of(groups.begin(), groups.end(), windowed)) lacking_until_.resize(groups.size());
  }
  void pass(const PrefixNode& node) {
    for (std::size_t g = 0; g < lacking_until_.size(); ++g)
      if (!node.pages[g].has_page()) lacking_until_[g] = node.end;
  }
  bool whole_at(Position end) const {
    for (std::size_t g = 0; g < lacking_until_.size(); ++g)
      if (lacking_until_[g] > std::max(0, end - groups_[g].window + 1)) return false;
    return true;
  }

 private:
  const std::vector<LineageGroup>& groups_;
  std::vector<Position> lacking_until_;  // empty where no group has a window
};

// ---- pins ----

PrefixPin::PrefixPin(PrefixPin&& other) noexcept
    : tree_(std::exchange(other.tree_, nullptr)),
      root_(std::exchange(other.root_, nullptr)),
      tip_(std::exchange(other.tip_, nullptr)),
      partial_(std::exchange(other.partial_, nullptr)),
      partial_tokens_(std::exchange(other.partial_tokens_, 0)) {}

PrefixPin& PrefixPin::operator=(PrefixPin&& other) noexcept {
  if (this != &other) {
    release();
    tree_ = std::exchange(other.tree_, nullptr);
    root_ = std::exchange(other.root_, nullptr);
    tip_ = std::exchange(other.tip_, nullptr);
    partial_ = std::exchange(other.partial_, nullptr);
    partial_tokens_ = std::exchange(other.partial_tokens_, 0);
  }
  return *this;
}

void PrefixPin::release() {
  if (tree_ != nullptr) tree_->release(*this);
  tree_ = nullptr;
}

PrefixPage PrefixPin::page(const PrefixNode& node) const {
  return {node.tokens(), node.begin(), {node.pages.get(), tree_->pools_.size()}};
}

std::vector<PrefixPage> PrefixPin::pages() const {
  std::vector<PrefixPage> pages;
  for (const PrefixNode* node = tip_; node != nullptr && !node->is_root(); node = node->parent)
    pages.push_back(page(*node));
  std::reverse(pages.begin(), pages.end());
  return pages;
}

PrefixPage PrefixPin::partial_page() const {
  MEMDECAY_CHECK(partial_ != nullptr);
  return page(*partial_);
}

void PrefixTree::pin_node(PrefixNode& node) {
  if (node.pins++ == 0 && node.let_go != 0) recency_.remove(node);
}

void PrefixTree::unpin_node(PrefixNode& node) {
  MEMDECAY_CHECK(node.pins > 0);
  if (--node.pins == 0) recency_.push_newest(node);
}

void PrefixTree::pin_path(PrefixNode* end) {
  if (end == nullptr) return;
  for (PrefixNode* node = end; !node->is_root(); node = node->parent) pin_node(*node);
  ++pin_ends_;
}

void PrefixTree::release(PrefixPin& pin) {
  // Deepest first: in the list children stand before their parents.
  PrefixNode* const partial = std::exchange(pin.partial_, nullptr);
  PrefixNode* const tip = std::exchange(pin.tip_, nullptr);
  PrefixNode* const end = partial != nullptr ? partial : tip;
  pin.partial_tokens_ = 0;
  if (end == nullptr) return;
  for (PrefixNode* node = end; !node->is_root(); node = node->parent) unpin_node(*node);
  --pin_ends_;
}

void PrefixTree::move_on(PrefixPin& pin, PrefixNode& node) {
  pin_node(node);
  if (PrefixNode* const partial = std::exchange(pin.partial_, nullptr))
    unpin_node(*partial);
  else if (pin.tip_ == nullptr)
    ++pin_ends_;
  pin.partial_tokens_ = 0;
  pin.tip_ = &node;
  if (node.parent->is_root()) pin.root_ = node.parent;
}

// ---- the tree ----

Result<std::unique_ptr<PrefixTree>> PrefixTree::create(KvBudget& budget,
                                                       std::vector<PagePool*> pools,
                                                       std::unique_ptr<LineageHasher> hasher,
                                                       std::int32_t remembered_evictions) {
  const std::vector<LineageGroup>& groups = hasher->model().groups;
  MEMDECAY_CHECK(!pools.empty() && pools.size() == groups.size() && remembered_evictions >= 1);
  for (std::size_t g = 0; g < pools.size(); ++g) {
    MEMDECAY_CHECK(pools[g]->layout() == groups[g].layout && groups[g].window >= 0);
    MEMDECAY_CHECK(groups[g].layout.page_tokens == groups[0].layout.page_tokens);
  }
  MEMDECAY_CHECK(groups[0].layout.page_tokens <= PrefixNode::kMaxTokens);
  const auto ring_bytes = static_cast<std::uint64_t>(remembered_evictions) * sizeof(std::uint64_t);
  auto records = budget.try_reserve(ring_bytes);
  if (!records)
    return make_status(StatusCode::kResourceExhausted,
                       "the KV budget of {} has no room to share prefixes",
                       format_bytes(budget.limit_bytes()));
  return std::unique_ptr<PrefixTree>(new PrefixTree(budget, std::move(pools), std::move(hasher),
                                                    *std::move(records), remembered_evictions));
}

PrefixTree::PrefixTree(KvBudget& budget, std::vector<PagePool*> pools,
                       std::unique_ptr<LineageHasher> hasher, BudgetReservation records,
                       std::int32_t remembered_evictions)
    : budget_(budget),
      pools_(std::move(pools)),
      hasher_(std::move(hasher)),
      records_(std::move(records)),
      places_(pools_.size()),
      past_evictions_(static_cast<std::size_t>(remembered_evictions)) {}

PrefixTree::~PrefixTree() {
  MEMDECAY_CHECK(pin_ends_ == 0);
  clear();
}

std::uint64_t PrefixTree::node_bytes() const {
  constexpr std::uint64_t kPlace = sizeof(std::pair<const PageId, PrefixNode*>) + 4 * sizeof(void*);
  return sizeof(PrefixNode) + pools_.size() * (sizeof(PageHandle) + kPlace);
}

std::uint64_t PrefixTree::root_bytes(const PrefixScope& scope) {
  constexpr std::uint64_t kMapEntry =
      sizeof(PrefixScope) + sizeof(std::unique_ptr<Root>) + 4 * sizeof(void*);
  return sizeof(Root) + kMapEntry + scope.salt.size() + scope.adapter.size();
}

void PrefixTree::check_plan(const PrefixPlan& plan) const {
  const std::int32_t most = pools_[0]->layout().page_tokens;
  std::size_t sum = 0;
  for (const std::int32_t tokens : plan.page_tokens) {
    MEMDECAY_CHECK(tokens >= 1 && tokens <= most);
    sum += static_cast<std::size_t>(tokens);
  }
  MEMDECAY_CHECK(sum == plan.tokens.size());
}

const PrefixTree::Root* PrefixTree::find_root(const PrefixScope& scope) const {
  const auto found = roots_.find(scope);
  return found != roots_.end() ? found->second.get() : nullptr;
}

PrefixPin PrefixTree::lookup_and_pin(const PrefixScope& scope, const PrefixPlan& plan) {
  check_plan(plan);
  ++counters_.lookups;
  counters_.queried_tokens += plan.tokens.size();
  PrefixPin pin(this);
  const Root* const root = find_root(scope);
  if (root == nullptr) return pin;

  WindowWatch watch(hasher_->model().groups);
  const PrefixNode* node = root;
  sibling_order::Closest next;
  for (const std::int32_t tokens : plan.page_tokens) {
    next = sibling_order::closest(
        node->children,
        plan.tokens.subspan(static_cast<std::size_t>(node->end), static_cast<std::size_t>(tokens)));
    if (!next.equal) break;
    node = next.node;
    watch.pass(*node);
    if (watch.whole_at(node->end)) pin.tip_ = next.node;
    next = {};
  }
  pin.root_ = root;
  // A page to copy from has every group's slots, and the match before it its windows.
  const auto lacks = [](const PageHandle& page) { return !page.has_page(); };
  if (next.common > 0 && pin.matched_tokens() == node->end &&
      std::none_of(&next.node->pages[0], &next.node->pages[0] + pools_.size(), lacks)) {
    pin.partial_ = next.node;
    pin.partial_tokens_ = next.common;
  }
  pin_path(pin.partial_ != nullptr ? pin.partial_ : pin.tip_);
  counters_.matched_tokens += static_cast<std::uint64_t>(pin.matched_tokens());
  counters_.partial_tokens += static_cast<std::uint64_t>(pin.partial_tokens_);
  return pin;
}

void PrefixTree::check_insertion(const PrefixScope& scope, const PrefixPin& pin,
                                 std::span<const TokenId> tokens,
                                 std::span<const PageHandle> pages) const {
  const std::vector<LineageGroup>& groups = hasher_->model().groups;
  MEMDECAY_CHECK(pin.tree_ == this && pages.size() == pools_.size() && !tokens.empty());
  MEMDECAY_CHECK(tokens.size() <= static_cast<std::size_t>(groups[0].layout.page_tokens));
  for (std::size_t g = 0; g < pages.size(); ++g) {
    MEMDECAY_CHECK(pages[g].has_page() || groups[g].window > 0);
    MEMDECAY_CHECK(!pages[g].has_page() || pools_[g]->base(pages[g].id()) == pages[g].base());
  }
  const auto root = roots_.find(scope);
  const bool nothing_matched = pin.tip_ == nullptr && pin.partial_ == nullptr;
  MEMDECAY_CHECK(nothing_matched || (root != roots_.end() && pin.root_ == root->second.get()));
}

PrefixTree::Insertion PrefixTree::insert(const PrefixScope& scope, PrefixPin& pin,
                                         std::span<const TokenId> tokens,
                                         std::span<PageHandle> pages, PageLineage lineage) {
  MEMDECAY_CHECK(lineage == PageLineage::kExact);
  check_insertion(scope, pin, tokens, pages);
  const auto root = roots_.find(scope);
  PrefixNode* parent = pin.tip_;
  if (parent == nullptr && root != roots_.end()) parent = root->second.get();

  PrefixNode* node = nullptr;
  auto found = sibling_order::closest(parent != nullptr ? parent->children : nullptr, tokens);
  const bool present = found.equal;
  const auto remembered = [](const PageHandle& page) {
    return page.has_page() && page.remembered();
  };
  if (present) {
    node = found.node;
    for (std::size_t g = 0; g < pages.size(); ++g) {
      if (!node->pages[g].has_page() && !remembered(pages[g])) take_page(*node, g, pages[g]);
      pages[g].reset();
    }
    ++counters_.duplicate_pages;
  } else if (std::any_of(pages.begin(), pages.end(), remembered)) {
    return Insertion::kElsewhere;
  } else {
    auto paid = budget_.try_reserve(node_bytes() + (parent == nullptr ? root_bytes(scope) : 0));
    if (!paid) {
      ++counters_.refused_pages;
      return Insertion::kNoRoom;
    }
    records_.merge(*std::move(paid));
    node = &add_node(parent != nullptr ? *parent : add_root(scope), tokens, pages);
  }
  move_on(pin, *node);
  return present ? Insertion::kPresent : Insertion::kAdded;
}

PrefixNode& PrefixTree::add_root(const PrefixScope& scope) {
  auto root = std::make_unique<Root>();
  root->salt = scope.salt;
  root->adapter = scope.adapter;
  root->key = hasher_->root(scope);
  PrefixNode& node = *root;
  const PrefixScope name{root->salt, root->adapter};
  roots_.emplace(name, std::move(root));
  return node;
}

PrefixNode& PrefixTree::add_node(PrefixNode& parent, std::span<const TokenId> tokens,
                                 std::span<PageHandle> pages) {
  auto* const node = new PrefixNode;  // owned by the parent's order until remove()
  node->key = hasher_->child(parent.key, tokens);
  node->parent = &parent;
  node->token_count = static_cast<std::int32_t>(tokens.size());
  node->end = parent.end + node->token_count;
  std::copy(tokens.begin(), tokens.end(), node->token_ids.begin());
  node->pages = std::make_unique<PageHandle[]>(pages.size());
  for (std::size_t g = 0; g < pages.size(); ++g) take_page(*node, g, pages[g]);
  sibling_order::insert(parent.children, *node);
  ++parent.child_count;
  ++counters_.nodes;
  ++counters_.inserted_pages;
  return *node;
}

void PrefixTree::take_page(PrefixNode& node, std::size_t group, PageHandle& page) {
  if (!page.has_page()) return;
  pools_[group]->set_remembered(page, true);
  places_[group].emplace(page.id(), &node);
  node.pages[group] = std::move(page);
}

void PrefixTree::let_page_go(PrefixNode& node, std::size_t group) {
  PageHandle& page = node.pages[group];
  if (!page.has_page()) return;
  pools_[group]->set_remembered(page, false);
  places_[group].erase(page.id());
  page.reset();
}

// ---- eviction ----

/// Pages that nobody but the tree holds.
std::int32_t PrefixTree::idle_pages() const {
  std::int32_t pages = 0;
  for (const PagePool* pool : pools_) pages += pool->idle_pages();
  return pages;
}

bool PrefixTree::cached_only(const PrefixNode& node) const {
  const auto free = [](const PageHandle& page) { return !page.has_page() || page.exclusive(); };
  return std::all_of(&node.pages[0], &node.pages[0] + pools_.size(), free);
}

bool PrefixTree::frees_a_page(const PrefixNode& node) const {
  const auto alone = [](const PageHandle& page) { return page.has_page() && page.exclusive(); };
  return std::any_of(&node.pages[0], &node.pages[0] + pools_.size(), alone);
}

void PrefixTree::use_path(PrefixNode& leaf) {
  for (PrefixNode* node = &leaf; !node->is_root() && node->pins == 0; node = node->parent)
    recency_.move_to_newest(*node);
}

std::uint64_t PrefixTree::evict(std::uint64_t bytes, Victims victims) {
  std::uint64_t freed = 0;
  const std::uint64_t start = recency_.now();
  while (freed < bytes && idle_pages() > 0 && recency_.oldest() != nullptr &&
         recency_.oldest()->let_go <= start) {
    PrefixNode& leaf = *recency_.oldest();
    if (cached_only(leaf))
      freed += remove(leaf);
    else
      use_path(leaf);
  }
  if (victims == Victims::kAlsoShared && freed < bytes) freed += evict_shared(bytes - freed);
  return freed;
}

std::uint64_t PrefixTree::evict_shared(std::uint64_t bytes) {
  if (idle_pages() == 0) return 0;
  // Parents are newer than their children, and a pinned parent stays.
  for (PrefixNode* node = recency_.newest(); node != nullptr; node = node->older) {
    const bool parent_goes = node->parent->let_go != 0 && node->parent->in_the_way;
    node->in_the_way = parent_goes || frees_a_page(*node);
  }
  std::uint64_t freed = 0;
  for (PrefixNode* node = recency_.oldest(); node != nullptr && freed < bytes;) {
    PrefixNode* const next = node->newer;
    if (node->in_the_way) freed += remove(*node);
    node = next;
  }
  return freed;
}

std::uint64_t PrefixTree::clear() {
  std::uint64_t freed = 0;
  while (recency_.oldest() != nullptr) freed += remove(*recency_.oldest());
  return freed;
}

std::uint64_t PrefixTree::forget_page(const PageHandle& page) {
  if (!page.remembered()) return 0;
  for (std::size_t g = 0; g < pools_.size(); ++g)
    if (pools_[g] == &page.pool()) return forget_from(*places_[g].at(page.id()));
  return 0;
}

std::uint64_t PrefixTree::forget_from(PrefixNode& node) {
  std::vector<PrefixNode*> doomed = nodes_below(node);
  doomed.insert(doomed.begin(), &node);
  std::uint64_t freed = 0;
  for (auto victim = doomed.rbegin(); victim != doomed.rend(); ++victim)
    if ((*victim)->pins == 0) freed += remove(**victim);  // a pinned child pins its parent
  return freed;
}

std::uint64_t PrefixTree::remove(PrefixNode& leaf) {
  MEMDECAY_CHECK(leaf.children == nullptr && leaf.pins == 0);
  std::uint64_t freed = node_bytes();
  for (std::size_t g = 0; g < pools_.size(); ++g) {
    if (leaf.pages[g].has_page() && leaf.pages[g].exclusive()) freed += pools_[g]->stride_bytes();
    let_page_go(leaf, g);
  }
  past_evictions_[next_eviction_++ % past_evictions_.size()] = leaf.key.leading_bits();
  recency_.remove(leaf);
  PrefixNode& parent = *leaf.parent;
  sibling_order::erase(parent.children, leaf);
  --parent.child_count;
  --counters_.nodes;
  ++counters_.evicted_pages;
  delete &leaf;
  records_.split(node_bytes()).release();
  if (!parent.is_root() || parent.child_count > 0) return freed;
  const auto& root = static_cast<const Root&>(parent);
  const PrefixScope name{root.salt, root.adapter};
  const std::uint64_t bytes = root_bytes(name);
  roots_.erase(roots_.find(name));
  records_.split(bytes).release();
  return freed + bytes;
}

bool PrefixTree::was_evicted(const LineageKey& key) const {
  return std::find(past_evictions_.begin(), past_evictions_.end(), key.leading_bits()) !=
         past_evictions_.end();
}

LineageKey PrefixTree::key(const PrefixScope& scope, const PrefixPin& pin) const {
  return pin.tip_ != nullptr ? pin.tip_->key : hasher_->root(scope);
}

PrefixTreeCounters PrefixTree::counters() const {
  PrefixTreeCounters counters = counters_;
  counters.tenants = static_cast<std::int32_t>(roots_.size());
  counters.record_bytes = records_.bytes();
  return counters;
}

}  // namespace memdecay
