// PrefixTree's view of itself: where its bytes are, which pages it refers to, whether all is well.
#include <algorithm>
#include <utility>

#include "core/check.h"
#include "kv/prefix/prefix_tree.h"

namespace memdecay {

PrefixTreeMemory PrefixTree::memory() const {
  PrefixTreeMemory memory;
  for (std::size_t g = 0; g < pools_.size(); ++g) {
    const std::int32_t idle = pools_[g]->idle_pages();
    const std::int32_t shared = static_cast<std::int32_t>(places_[g].size()) - idle;
    memory.cached_only_pages += idle;
    memory.shared_pages += shared;
    memory.cached_only_bytes += static_cast<std::uint64_t>(idle) * pools_[g]->stride_bytes();
    memory.shared_bytes += static_cast<std::uint64_t>(shared) * pools_[g]->stride_bytes();
  }
  return memory;
}

void PrefixTree::count_references(LayerGroupId group, std::span<std::int32_t> named) const {
  for (const auto& [scope, root] : roots_)
    for (const PrefixNode* node : nodes_below(*root)) {
      const PageHandle& page = node->pages[group.index()];
      if (!page.has_page()) continue;
      MEMDECAY_CHECK(page.id().index() < named.size());
      ++named[page.id().index()];
    }
}

Status PrefixTree::check() const {
  std::int64_t ends = 0;
  for (const auto& [scope, root] : roots_) {
    const PrefixScope own{root->salt, root->adapter};
    if (own != scope || root->child_count == 0 || !root->is_root() || root->end != 0)
      return Status(StatusCode::kCorrupt, "a tenant of the prefix tree is empty or misnamed");
    MEMDECAY_RETURN_IF_ERROR(check_children(*root));
    for (const PrefixNode* node : nodes_below(*root)) {
      MEMDECAY_RETURN_IF_ERROR(check_node(*node));
      MEMDECAY_RETURN_IF_ERROR(check_children(*node));
      ends += node->pins - pins_of_children(*node);
    }
  }
  if (ends != pin_ends_)
    return make_status(StatusCode::kCorrupt, "{} pins end in the prefix tree but {} are counted",
                       ends, pin_ends_);
  MEMDECAY_RETURN_IF_ERROR(check_list());
  for (std::size_t g = 0; g < pools_.size(); ++g) MEMDECAY_RETURN_IF_ERROR(check_pages(g));
  return check_totals();
}

std::int32_t PrefixTree::pins_of_children(const PrefixNode& node) {
  std::int32_t pins = 0;
  for (const PrefixNode* child : children_of(node)) pins += child->pins;
  return pins;
}

Status PrefixTree::check_node(const PrefixNode& node) const {
  const auto wrong = [&](const char* what) {
    return make_status(StatusCode::kCorrupt, "a prefix page at token {}: {}", node.begin(), what);
  };
  if (node.token_count < 1 || node.token_count > pools_[0]->layout().page_tokens)
    return wrong("it holds no tokens or too many");
  if (node.begin() != node.parent->end) return wrong("it does not begin where its parent ends");
  if (node.pins < pins_of_children(node)) return wrong("it has fewer pins than its children");
  if ((node.pins == 0) != (node.let_go != 0)) return wrong("pinned and listed contradict");
  if (node.key != hasher_->child(node.parent->key, node.tokens())) return wrong("a wrong key");
  for (std::size_t g = 0; g < pools_.size(); ++g)
    if (!node.pages[g].has_page() && hasher_->model().groups[g].window == 0)
      return wrong("a layer group without a window has no page");
  return {};
}

Status PrefixTree::check_children(const PrefixNode& node) {
  const std::vector<PrefixNode*> children = children_of(node);
  if (children.size() != static_cast<std::size_t>(node.child_count))
    return make_status(StatusCode::kCorrupt, "{} pages follow token {} but {} are counted",
                       children.size(), node.end, node.child_count);
  for (std::size_t i = 0; i < children.size(); ++i) {
    const std::span<const TokenId> own = children[i]->tokens();
    const std::span<const TokenId> last =
        i > 0 ? children[i - 1]->tokens() : std::span<const TokenId>();
    const bool ordered =
        std::lexicographical_compare(last.begin(), last.end(), own.begin(), own.end());
    if (children[i]->parent != &node || !ordered)
      return make_status(StatusCode::kCorrupt, "the pages after token {} are out of order",
                         node.end);
  }
  return {};
}

Status PrefixTree::check_list() const {
  std::int32_t pinned = 0;
  for (const auto& [scope, root] : roots_)
    for (const PrefixNode* node : nodes_below(*root)) pinned += node->pins > 0 ? 1 : 0;
  std::int32_t listed = 0;
  std::uint64_t last = 0;
  for (const PrefixNode* node = recency_.oldest(); node != nullptr; node = node->newer) {
    const bool before_parent = node->parent->let_go == 0 || node->let_go < node->parent->let_go;
    if (node->pins != 0 || node->let_go <= last || !before_parent)
      return make_status(StatusCode::kCorrupt, "the page at token {} is listed out of order",
                         node->begin());
    last = node->let_go;
    ++listed;
  }
  if (listed + pinned != counters_.nodes || last > recency_.now())
    return make_status(StatusCode::kCorrupt, "{} of {} prefix pages are listed, {} are pinned",
                       listed, counters_.nodes, pinned);
  return {};
}

/// Every page that a node names stands in places_ under that node, and nothing else does. That a
/// page's mark and its pool's count of idle pages are right, the pool checks.
Status PrefixTree::check_pages(std::size_t group) const {
  std::size_t named = 0;
  for (const auto& [scope, root] : roots_)
    for (PrefixNode* const node : nodes_below(*root)) {
      const PageHandle& page = node->pages[group];
      if (!page.has_page()) continue;
      ++named;
      const auto place = places_[group].find(page.id());
      if (place == places_[group].end() || place->second != node || !page.remembered())
        return make_status(StatusCode::kCorrupt, "page {} of layer group {} has another place",
                           page.id().value(), group);
    }
  if (named != places_[group].size())
    return make_status(StatusCode::kCorrupt, "{} pages of layer group {} are remembered, {} listed",
                       named, group, places_[group].size());
  return {};
}

Status PrefixTree::check_totals() const {
  std::uint64_t bytes = empty_bytes();
  std::int32_t nodes = 0;
  for (const auto& [scope, root] : roots_) {
    bytes += root_bytes(scope);
    nodes += static_cast<std::int32_t>(nodes_below(*root).size());
  }
  bytes += static_cast<std::uint64_t>(nodes) * node_bytes();
  if (nodes != counters_.nodes || bytes != records_.bytes())
    return make_status(StatusCode::kCorrupt,
                       "the prefix tree has {} pages and {} bytes but counts {} and {}", nodes,
                       bytes, counters_.nodes, records_.bytes());
  return {};
}

}  // namespace memdecay
