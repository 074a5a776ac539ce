#include "kv/slot_copy.h"

#include <gtest/gtest.h>

#include <vector>

#include "kv/slot_pattern.h"

namespace memdecay {
namespace {

KvPageLayout layout_of(int page_tokens, KvFormat format) {
  return {.layers = 2, .kv_heads = 3, .head_dim = 5, .page_tokens = page_tokens, .format = format};
}

KvPageRef page_at(std::vector<std::byte>& bytes) {
  return {.base = bytes.data()};
}

TEST(SlotCopy, MovesExactlyTheSlotsThatAreNamed) {
  for (const KvFormat format : {KvFormat::kF16, KvFormat::kF32}) {
    for (const int page_tokens : {16, 32, 64}) {
      const KvPageLayout layout = layout_of(page_tokens, format);
      for (const int slots : {0, 1, 2, 7, page_tokens - 3, page_tokens}) {
        const int from = slots == page_tokens ? 0 : 3;
        const int to = page_tokens - slots;
        std::vector<std::byte> source(layout.page_bytes()), target(layout.page_bytes());
        for (int s = 0; s < page_tokens; ++s) {
          SlotPattern(layout, page_at(source), s).write(100U + static_cast<unsigned>(s));
          SlotPattern(layout, page_at(target), s).write(900U + static_cast<unsigned>(s));
        }
        copy_slots(layout, source.data(), from, slots, target.data(), to);
        for (int s = 0; s < page_tokens; ++s) {
          const bool copied = s >= to && s < to + slots;
          const int marker = copied ? 100 + from + s - to : 900 + s;
          ASSERT_TRUE(SlotPattern(layout, page_at(target), s).holds(static_cast<unsigned>(marker)))
              << "slot " << s << " of " << page_tokens << ", " << slots << " copied";
          ASSERT_TRUE(
              SlotPattern(layout, page_at(source), s).holds(100U + static_cast<unsigned>(s)));
        }
      }
    }
  }
}

TEST(SlotCopyDeathTest, WhatCannotBeCopiedIsABug) {
  const KvPageLayout layout = layout_of(16, KvFormat::kF16);
  std::vector<std::byte> source(layout.page_bytes()), target(layout.page_bytes());
  EXPECT_DEATH(copy_slots(layout, source.data(), 10, 7, target.data(), 0), "CHECK failed");
  EXPECT_DEATH(copy_slots(layout, source.data(), 0, 7, target.data(), 10), "CHECK failed");
  EXPECT_DEATH(copy_slots(layout.in(KvFormat::kInt8), source.data(), 0, 1, target.data(), 0),
               "is_quantized");
}

}  // namespace
}  // namespace memdecay
