#include "kv/prefix/prefix_node.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <random>
#include <vector>

namespace memdecay {
namespace {

std::unique_ptr<PrefixNode> make_node(const std::vector<TokenId>& tokens, std::uint64_t random) {
  auto node = std::make_unique<PrefixNode>();
  node->token_count = static_cast<std::int32_t>(tokens.size());
  std::copy(tokens.begin(), tokens.end(), node->token_ids.begin());
  for (std::size_t i = 0; i < 8; ++i)
    node->key.bytes[i] = static_cast<std::uint8_t>(random >> (8 * i));
  return node;
}

std::vector<TokenId> random_tokens(std::mt19937_64& random) {
  std::vector<TokenId> tokens(1 + random() % 6);
  for (TokenId& token : tokens) token = static_cast<TokenId>(random() % 3) - 1;
  return tokens;
}

TEST(SiblingOrder, FindsTheClosestOfManyWhileTheyComeAndGo) {
  std::mt19937_64 random(5);
  PrefixNode parent;
  std::vector<std::unique_ptr<PrefixNode>> nodes;
  for (int step = 0; step < 3000; ++step) {
    const std::vector<TokenId> wanted = random_tokens(random);
    const auto found = sibling_order::closest(parent.children, wanted);
    std::int32_t most = 0;
    bool equal = false;
    for (const auto& node : nodes) {
      most = std::max(most, common_tokens(node->tokens(), wanted));
      equal |= std::ranges::equal(node->tokens(), wanted);
    }
    ASSERT_EQ(found.node == nullptr, nodes.empty());
    ASSERT_EQ(found.equal, equal);
    ASSERT_EQ(found.common, most);
    if (!equal && (nodes.size() < 50 || random() % 2 == 0)) {
      // A third of the priorities are equal.
      nodes.push_back(make_node(wanted, random() % 3 == 0 ? 7 : random()));
      sibling_order::insert(parent.children, *nodes.back());
    } else if (!nodes.empty()) {
      const auto gone = nodes.begin() + static_cast<std::ptrdiff_t>(random() % nodes.size());
      sibling_order::erase(parent.children, **gone);
      nodes.erase(gone);
    }
    const auto order = children_of(parent);
    ASSERT_EQ(order.size(), nodes.size());
    ASSERT_TRUE(std::is_sorted(order.begin(), order.end(), [](auto* a, auto* b) {
      return std::ranges::lexicographical_compare(a->tokens(), b->tokens());
    }));
  }
}

TEST(SiblingOrder, AShorterRunStandsBeforeItsContinuations) {
  PrefixNode parent;
  const auto longer = make_node({1, 2, 3}, 1), shorter = make_node({1, 2}, 2);
  sibling_order::insert(parent.children, *longer);
  sibling_order::insert(parent.children, *shorter);
  EXPECT_EQ(children_of(parent), (std::vector<PrefixNode*>{shorter.get(), longer.get()}));
  EXPECT_EQ(sibling_order::closest(parent.children, std::vector<TokenId>{1, 2, 3, 4}).node,
            longer.get());
  EXPECT_EQ(sibling_order::closest(parent.children, std::vector<TokenId>{1, 2}).node,
            shorter.get());
  EXPECT_TRUE(sibling_order::closest(parent.children, std::vector<TokenId>{1, 2}).equal);
}

TEST(RecencyList, OldestFirstAndNothingTwice) {
  RecencyList list;
  PrefixNode a, b, c;
  EXPECT_EQ(list.oldest(), nullptr);
  for (PrefixNode* node : {&a, &b, &c}) list.push_newest(*node);
  list.move_to_newest(a);
  EXPECT_EQ(list.oldest(), &b);
  EXPECT_EQ(list.newest(), &a);
  EXPECT_LT(c.let_go, a.let_go);
  list.remove(c);
  EXPECT_EQ(b.newer, &a);
  EXPECT_EQ(c.let_go, 0U);
  EXPECT_DEATH(list.remove(c), "CHECK failed");
  EXPECT_DEATH(list.push_newest(a), "CHECK failed");
  list.remove(b);
  list.remove(a);
  EXPECT_EQ(list.oldest(), nullptr);
  EXPECT_EQ(list.newest(), nullptr);
}

}  // namespace
}  // namespace memdecay
