#include "sys/memory.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <optional>
#include <utility>

#include "sys/memory_denied_for_test.h"

namespace memdecay {
namespace {

bool all_zero(const std::byte* begin, std::size_t bytes) {
  return std::all_of(begin, begin + bytes, [](std::byte b) { return b == std::byte{0}; });
}

TEST(AnonymousMemory, IsAlignedZeroedAndAsLargeAsAsked) {
  for (const std::size_t bytes : {std::size_t{1}, std::size_t{4095}, std::size_t{4096},
                                  AnonymousMemory::kHugePageBytes + 1, std::size_t{5} << 20}) {
    for (const HugePages huge : {HugePages::kAsk, HugePages::kNever}) {
      auto memory = AnonymousMemory::allocate(bytes, huge);
      ASSERT_TRUE(memory.ok());
      EXPECT_EQ(memory->size(), bytes);
      EXPECT_EQ(reinterpret_cast<std::uintptr_t>(memory->data()) % AnonymousMemory::kHugePageBytes,
                0U);
      EXPECT_TRUE(all_zero(memory->data(), bytes));
      std::fill_n(memory->data(), bytes, std::byte{0xFF});
    }
  }
}

TEST(AnonymousMemory, RefusesNothingAndTooMuchInWords) {
  EXPECT_EQ(AnonymousMemory::allocate(0).status().code(), StatusCode::kInvalidArgument);
  constexpr std::size_t kMost = std::numeric_limits<std::size_t>::max();
  for (const std::size_t bytes : {kMost, kMost / 2, kMost / 2 + 1, std::size_t{1} << 62}) {
    const Status status = AnonymousMemory::reserve(bytes).status();
    EXPECT_EQ(status.code(), StatusCode::kResourceExhausted) << bytes;
    EXPECT_FALSE(status.message().empty());
  }
}

TEST(AnonymousMemory, DecommitZeroesExactlyItsRange) {
  const std::size_t page = system_page_bytes();
  auto memory = AnonymousMemory::allocate(8 * page + 100);
  ASSERT_TRUE(memory.ok());
  const std::size_t size = memory->size();
  // Inside one page, across borders, whole pages, up to the odd end, nothing at all.
  const std::pair<std::size_t, std::size_t> ranges[] = {{10, 20},
                                                        {page - 1, 2},
                                                        {page, page},
                                                        {page + 7, 3 * page},
                                                        {2 * page, 0},
                                                        {8 * page, 100},
                                                        {7 * page + 1, page + 99},
                                                        {0, size},
                                                        {size, 0}};
  for (const auto& [offset, bytes] : ranges) {
    std::fill_n(memory->data(), size, std::byte{0xA5});
    memory->decommit(offset, bytes);
    for (std::size_t i = 0; i < size; ++i)
      ASSERT_EQ(memory->data()[i] == std::byte{0}, i >= offset && i < offset + bytes)
          << "byte " << i << " after decommit of " << bytes << " at " << offset;
  }
}

TEST(AnonymousMemory, MovesItsRange) {
  auto first = AnonymousMemory::allocate(100);
  ASSERT_TRUE(first.ok());
  std::byte* const data = first->data();
  AnonymousMemory second(std::move(*first));
  EXPECT_EQ(second.data(), data);
  EXPECT_EQ(first->data(), nullptr);
  EXPECT_EQ(first->size(), 0U);
  second = AnonymousMemory();
  second = AnonymousMemory::allocate(7).value();
  EXPECT_EQ(second.size(), 7U);
}

TEST(AnonymousMemory, ReservedMemoryOpensPieceByPiece) {
  const std::size_t page = system_page_bytes();
  auto memory = AnonymousMemory::reserve(std::size_t{1} << 40);  // more than the machine has
  ASSERT_TRUE(memory.ok()) << memory.status().message();
  ASSERT_TRUE(memory->make_accessible(3 * page + 5, 2).ok());
  memory->data()[3 * page] = std::byte{1};
  memory->data()[4 * page - 1] = std::byte{1};
  EXPECT_TRUE(memory->make_accessible(0, 0).ok());
}

TEST(AnonymousMemory, ASystemThatSaysNoIsAStatus) {
  if (!MemoryDenied::kPossible) GTEST_SKIP() << "a sanitizer needs memory";
  auto memory = AnonymousMemory::reserve(std::size_t{64} << 20);
  ASSERT_TRUE(memory.ok());
  std::optional<MemoryDenied> denied(std::in_place);
  const Status status = memory->make_accessible(0, memory->size());
  denied.reset();
  EXPECT_EQ(status.code(), StatusCode::kResourceExhausted);
  ASSERT_TRUE(memory->make_accessible(0, memory->size()).ok());
  memory->data()[memory->size() - 1] = std::byte{1};
}

TEST(AnonymousMemoryDeathTest, OffsetsOutsideAreBugs) {
  auto memory = AnonymousMemory::allocate(100);
  ASSERT_TRUE(memory.ok());
  EXPECT_DEATH(memory->decommit(101, 0), "CHECK failed");
  EXPECT_DEATH(memory->decommit(50, 51), "CHECK failed");
  EXPECT_DEATH(static_cast<void>(memory->make_accessible(1, ~std::size_t{0})), "CHECK failed");
}

}  // namespace
}  // namespace memdecay
