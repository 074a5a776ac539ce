#include "kv/prefix/lineage.h"

#include <gtest/gtest.h>

#include <functional>
#include <set>
#include <string>
#include <vector>

namespace memdecay {
namespace {

LineageModel model() {
  return {
      "model-1",
      {{{.layers = 2, .kv_heads = 1, .head_dim = 64, .page_tokens = 32}, 0},
       {{.layers = 4, .kv_heads = 1, .head_dim = 256, .page_tokens = 32, .format = KvFormat::kInt8},
        512}}};
}

// Expected values were computed with Python's hashlib and struct from the formulas of lineage.h.
TEST(Lineage, KeysAreThoseOfTheWrittenFormat) {
  const LineageHasher hasher(model());
  const LineageKey root = hasher.root({"tenant a", ""});
  EXPECT_EQ(root.hex(), "68ecae9ff40cdaa5b6d1cd72abe7907f0ce6bb0c2978a76d40d4ed12f0ccd324");
  const LineageKey child = hasher.child(root, std::vector<TokenId>{1, 70000, -2});
  EXPECT_EQ(child.hex(), "47a0f6f4b27c29c036622fe7df9a471e666368efcab6d45cdc961b831ff15fbc");
  EXPECT_EQ(child, hasher.child(root, std::vector<TokenId>{1, 70000, -2}));
}

TEST(Lineage, EverythingThatChangesKeysAndValuesChangesTheKey) {
  using Change = std::function<void(LineageModel&)>;
  const std::vector<Change> changes = {
      [](LineageModel&) {},
      [](LineageModel& m) { m.fingerprint = "model-2"; },
      [](LineageModel& m) { m.groups[0].layout.layers = 3; },
      [](LineageModel& m) { m.groups[0].layout.kv_heads = 2; },
      [](LineageModel& m) { m.groups[0].layout.head_dim = 80; },
      [](LineageModel& m) { m.groups[0].layout.page_tokens = 16; },
      [](LineageModel& m) { m.groups[0].layout.format = KvFormat::kF32; },
      [](LineageModel& m) { m.groups[1].window = 511; },
      [](LineageModel& m) { m.groups.pop_back(); },
      [](LineageModel& m) { std::swap(m.groups[0], m.groups[1]); },
  };
  const std::vector<PrefixScope> scopes = {
      {"", ""}, {"a", ""}, {"", "a"}, {"ab", "c"}, {"a", "bc"}};
  std::set<LineageKey> keys;
  for (const Change& change : changes) {
    LineageModel changed = model();
    change(changed);
    const LineageHasher hasher(changed);
    for (const PrefixScope& scope : scopes) {
      const LineageKey root = hasher.root(scope);
      keys.insert(root);
      const LineageKey one = hasher.child(root, std::vector<TokenId>{1});
      keys.insert(one);
      keys.insert(hasher.child(root, std::vector<TokenId>{2}));
      keys.insert(hasher.child(root, std::vector<TokenId>{1, 2}));
      // The same tokens in other pages are other pages.
      keys.insert(hasher.child(one, std::vector<TokenId>{2}));
    }
  }
  EXPECT_EQ(keys.size(), changes.size() * scopes.size() * 5);
}

TEST(Lineage, LeadingBitsAreTheFirstEightBytes) {
  LineageKey key;
  for (std::size_t i = 0; i < key.bytes.size(); ++i) key.bytes[i] = static_cast<std::uint8_t>(i);
  EXPECT_EQ(key.leading_bits(), 0x0001020304050607U);
  EXPECT_EQ(key.hex().substr(0, 8), "00010203");
}

}  // namespace
}  // namespace memdecay
