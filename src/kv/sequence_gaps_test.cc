// Gaps that are closed virtually: worked examples, and random operations against one number a
// token.
#include <gtest/gtest.h>

#include <array>
#include <optional>
#include <random>

#include "core/units.h"
#include "kv/kv_cache.h"

namespace memdecay {
namespace {

constexpr LayerGroupId kGlobal(0);
constexpr LayerGroupId kWindowed(1);

KvLayerGroup group(std::int32_t window, int page_tokens = 16) {
  return {{.layers = 1, .kv_heads = 1, .head_dim = 2, .page_tokens = page_tokens}, window};
}

std::unique_ptr<KvCache> make_cache(std::vector<KvLayerGroup> groups) {
  return std::move(KvCache::create({.groups = std::move(groups), .forms = {KvFormat::kInt8}}))
      .value();
}

void copy_page(const KvPageLayout&, const std::byte*, const KvPageLayout&, std::byte*,
               std::int32_t) {}

/// first position, filled slots, rope_shift, closed_before.
using Entry = std::array<std::int32_t, 4>;

std::vector<Entry> entries(const Sequence& sequence, LayerGroupId group = kGlobal) {
  std::vector<Entry> result;
  for (const KvPageRef& page : sequence.view(group).pages)
    result.push_back({page.first_position, page.filled, page.rope_shift, page.closed_before});
  return result;
}

void drop(Sequence& sequence, std::vector<Position> first_positions) {
  sequence.drop(first_positions);
}

TEST(SequenceGaps, PagesBehindAGapMoveUpAndNewOnesStartThere) {
  const auto cache = make_cache({group(0)});
  auto sequence = cache->try_create_sequence();
  ASSERT_TRUE(sequence->try_append(70));
  EXPECT_EQ(sequence->rope_position(), 70);
  drop(*sequence, {16, 48});
  EXPECT_EQ(sequence->close_gaps(17), 0);
  EXPECT_TRUE(sequence->is_open());
  EXPECT_EQ(sequence->close_gaps(16), 32);
  EXPECT_EQ(sequence->size(), 70);
  EXPECT_EQ(sequence->rope_position(), 38);
  EXPECT_FALSE(sequence->is_open());
  ASSERT_TRUE(sequence->try_append(20));
  EXPECT_EQ(
      entries(*sequence),
      (std::vector<Entry>{
          {0, 16, 0, 0}, {32, 16, -16, 16}, {64, 6, -32, 32}, {70, 16, 0, 32}, {86, 4, 0, 32}}));
  // A second time: what was written behind the first closing moves from there.
  drop(*sequence, {0, 64});
  EXPECT_EQ(sequence->close_gaps(1), 22);
  EXPECT_EQ(sequence->rope_position(), 36);
  EXPECT_EQ(entries(*sequence),
            (std::vector<Entry>{{32, 16, -32, 32}, {70, 16, -22, 54}, {86, 4, -22, 54}}));
  EXPECT_TRUE(cache->validate().ok()) << cache->validate().message();
}

TEST(SequenceGaps, SmallGapsStayAndCanBeClosedLater) {
  const auto cache = make_cache({group(0)});
  auto sequence = cache->try_create_sequence();
  ASSERT_TRUE(sequence->try_append(112));
  drop(*sequence, {16, 48, 64});
  EXPECT_EQ(sequence->close_gaps(20), 32);
  EXPECT_EQ(
      entries(*sequence),
      (std::vector<Entry>{{0, 16, 0, 0}, {32, 16, 0, 0}, {80, 16, -32, 32}, {96, 16, -32, 32}}));
  EXPECT_EQ(sequence->close_gaps(1), 16);
  EXPECT_EQ(
      entries(*sequence),
      (std::vector<Entry>{{0, 16, 0, 0}, {32, 16, -16, 16}, {80, 16, -48, 48}, {96, 16, -48, 48}}));
  EXPECT_EQ(sequence->close_gaps(1), 0);
}

TEST(SequenceGaps, AGapAtTheEndAndAnEmptyTableAreClosedToo) {
  const auto cache = make_cache({group(0)});
  auto sequence = cache->try_create_sequence();
  ASSERT_TRUE(sequence->try_append(64));
  drop(*sequence, {32, 48});
  EXPECT_EQ(sequence->close_gaps(1), 32);
  EXPECT_EQ(sequence->rope_position(), 32);
  drop(*sequence, {0, 16});
  EXPECT_EQ(sequence->close_gaps(1), 32);
  EXPECT_EQ(sequence->rope_position(), 0);
  ASSERT_TRUE(sequence->try_append(3));
  EXPECT_EQ(entries(*sequence), (std::vector<Entry>{{64, 3, 0, 64}}));
  EXPECT_TRUE(cache->validate().ok()) << cache->validate().message();
}

TEST(SequenceGaps, ACutBackFollowsTheLastPageThatIsLeft) {
  const auto cache = make_cache({group(0)});
  auto sequence = cache->try_create_sequence();
  ASSERT_TRUE(sequence->try_append(80));
  drop(*sequence, {16, 48});
  EXPECT_EQ(sequence->close_gaps(1), 32);
  ASSERT_TRUE(sequence->try_append(40));
  const auto all = sequence->try_fork();
  EXPECT_EQ(all->rope_position(), 120 - 32);
  struct {
    Position to, rope_position;
    bool open;
  } const cuts[] = {
      {100, 68, true},  // within pages that were written after the closing
      {80, 48, false},  // their border
      {70, 38, false},  // within a page that moved by 32: the next token needs a new one
      {60, 44, false},  // in a gap that was closed: it opens again
      {40, 24, false},  // within a page that moved by 16
      {20, 20, false}, {10, 10, true}, {0, 0, false}};
  for (const auto& cut : cuts) {
    auto one = all->try_fork();
    ASSERT_TRUE(one->try_truncate(cut.to));
    EXPECT_EQ(one->rope_position(), cut.rope_position) << cut.to;
    EXPECT_EQ(one->is_open(), cut.open) << cut.to;
    ASSERT_TRUE(one->try_append(5));
    EXPECT_EQ(one->view(kGlobal).pages.back().rope_shift, 0);
    EXPECT_EQ(one->rope_position(), cut.rope_position + 5) << cut.to;
    EXPECT_TRUE(cache->validate().ok()) << cache->validate().message();
  }
}

TEST(SequenceGaps, FormsPackedPagesAndForksKeepTheirPlaces) {
  const auto cache = make_cache({group(0)});
  auto sequence = cache->try_create_sequence();
  const Position cuts[] = {40, 44, 50};
  ASSERT_TRUE(sequence->try_append(60, cuts));
  drop(*sequence, {0, 44});
  // [16, 32) [32, 40) [40, 44) [50, 60): the middle two become one page, then the last, with a gap.
  EXPECT_EQ(sequence->close_gaps(10), 16);
  EXPECT_TRUE(sequence->pack_pages(std::array<Position, 2>{32, 40}));
  EXPECT_TRUE(sequence->try_replace(16, KvFormat::kInt8, copy_page));
  EXPECT_EQ(entries(*sequence),
            (std::vector<Entry>{{16, 16, -16, 16}, {32, 12, -16, 16}, {50, 10, -16, 16}}));
  ASSERT_TRUE(sequence->try_append(4));  // [60, 64)
  drop(*sequence, {16});
  const auto fork = sequence->try_fork();
  EXPECT_EQ(fork->close_gaps(1), 16 + 6);
  EXPECT_EQ(fork->rope_position(), 26);
  EXPECT_EQ(sequence->rope_position(), 48);
  EXPECT_EQ(entries(*fork),
            (std::vector<Entry>{{32, 12, -32, 32}, {50, 10, -38, 38}, {60, 4, -22, 38}}));
  EXPECT_EQ(entries(*sequence),
            (std::vector<Entry>{{32, 12, -16, 16}, {50, 10, -16, 16}, {60, 4, 0, 16}}));
  EXPECT_TRUE(cache->validate().ok()) << cache->validate().message();
}

TEST(SequenceGaps, GapsWithinAPackedPageStay) {
  const auto cache = make_cache({group(0)});
  auto sequence = cache->try_create_sequence();
  const Position cuts[] = {5, 25, 30};
  ASSERT_TRUE(sequence->try_append(40, cuts));
  drop(*sequence, {5, 21});
  EXPECT_TRUE(sequence->pack_pages(std::array<Position, 2>{0, 25}));
  EXPECT_EQ(entries(*sequence), (std::vector<Entry>{{0, 10, 0, 0}, {30, 10, 0, 0}}));
  EXPECT_EQ(sequence->close_gaps(1), 0);
  EXPECT_EQ(sequence->rope_position(), 40);
}

TEST(SequenceGaps, GroupsWithAWindowStayWhereTheyAre) {
  const auto cache = make_cache({group(0), group(40)});
  auto sequence = cache->try_create_sequence();
  ASSERT_TRUE(sequence->try_append(90));
  sequence->trim();
  const auto before = entries(*sequence, kWindowed);
  drop(*sequence, {0, 32});
  EXPECT_EQ(sequence->close_gaps(1), 32);
  EXPECT_EQ(entries(*sequence, kWindowed), before);
  ASSERT_TRUE(sequence->try_append(10));
  for (const Entry& entry : entries(*sequence, kWindowed)) EXPECT_EQ(entry[2] + entry[3], 0);
  EXPECT_EQ(entries(*sequence, kWindowed).back()[0], 96);  // it went on in its open page
  EXPECT_TRUE(cache->validate().ok()) << cache->validate().message();
}

TEST(SequenceGapsDeathTest, ClosedGapsAreNotPackedOver) {
  const auto cache = make_cache({group(0)});
  auto sequence = cache->try_create_sequence();
  const Position cuts[] = {4, 20};
  ASSERT_TRUE(sequence->try_append(26, cuts));
  drop(*sequence, {4});
  EXPECT_EQ(sequence->close_gaps(1), 16);
  EXPECT_DEATH(static_cast<void>(sequence->pack_pages(std::array<Position, 2>{0, 20})), "CHECK");
}

/// Where every token stands and by what its key is rotated, in the plainest form.
struct Naive {
  struct Token {
    Position place, rotation;
  };
  std::vector<std::optional<Token>> tokens;
  Position next = 0;  // the next token's place

  void append(std::int32_t count) {
    for (; count > 0; --count, ++next) tokens.push_back(Token{next, next});
  }
  void drop(Position begin, std::int32_t count) {
    for (; count > 0; --count) tokens[static_cast<std::size_t>(begin++)].reset();
  }
  void close(std::int32_t smallest) {
    Position end = 0, won = 0;
    const auto meet = [&](Position place) {
      if (place - end >= smallest) won += place - end;
      end = place + 1;
      return place - won;
    };
    for (auto& token : tokens)
      if (token.has_value()) token->place = meet(token->place);
    next = meet(next);
  }
  void truncate(Position to) {
    tokens.resize(static_cast<std::size_t>(to));
    for (Position last = to; last > 0; --last) {
      const auto& token = tokens[static_cast<std::size_t>(last - 1)];
      if (!token.has_value()) continue;
      next = token->place + 1 + to - last;
      return;
    }
    next = to;
  }
};

struct Twin {
  SequenceHandle real;
  Naive naive;
};

void expect_alike(const Twin& twin) {
  ASSERT_EQ(twin.real->size(), static_cast<Position>(twin.naive.tokens.size()));
  ASSERT_EQ(twin.real->rope_position(), twin.naive.next);
  std::size_t held = 0, expected = 0;
  for (const auto& token : twin.naive.tokens) expected += token.has_value() ? 1 : 0;
  for (const KvPageRef& page : twin.real->view(kGlobal).pages) {
    for (std::int32_t slot = 0; slot < page.filled; ++slot, ++held) {
      const Position position = page.first_position + slot;
      const auto& token = twin.naive.tokens[static_cast<std::size_t>(position)];
      ASSERT_TRUE(token.has_value()) << position;
      ASSERT_EQ(token->place, position - page.closed_before) << position;
      ASSERT_EQ(token->place - token->rotation, page.rope_shift) << position;
    }
  }
  ASSERT_EQ(held, expected);
  if (twin.real->is_open()) {
    ASSERT_EQ(twin.real->view(kGlobal).pages.back().rope_shift, 0);
  }
}

TEST(SequenceGaps, RandomOperationsEqualOneNumberAToken) {
  for (std::uint32_t seed = 0; seed < 20; ++seed) {
    std::mt19937 random(seed);
    const auto choose = [&](std::int32_t bound) {
      return static_cast<std::int32_t>(random() % static_cast<std::uint32_t>(bound));
    };
    const auto cache = make_cache({group(0), group(24)});
    std::vector<Twin> twins(1);
    twins[0].real = cache->try_create_sequence();
    for (int step = 0; step < 300; ++step) {
      const std::size_t which = static_cast<std::size_t>(choose(static_cast<int>(twins.size())));
      Twin& twin = twins[which];
      const Position size = twin.real->size();
      const int kind = choose(12);
      if (kind < 5) {
        const std::int32_t count = 1 + choose(40);
        std::vector<Position> cuts;
        if (choose(3) == 0) cuts.push_back(size + choose(count));
        ASSERT_TRUE(twin.real->try_append(count, cuts));
        twin.naive.append(count);
      } else if (kind < 9) {
        const auto pages = twin.real->view(kGlobal).pages;
        const auto droppable =
            static_cast<std::int32_t>(pages.size()) - (twin.real->is_open() ? 1 : 0);
        if (droppable <= 0) continue;
        const KvPageRef page = pages[static_cast<std::size_t>(choose(droppable))];
        twin.naive.drop(page.first_position, page.filled);
        twin.real->drop(std::array<Position, 1>{page.first_position});
      } else if (kind < 10) {
        const std::int32_t smallest = 1 + choose(50);
        const Position before = twin.naive.next;
        twin.naive.close(smallest);
        ASSERT_EQ(twin.real->close_gaps(smallest), before - twin.naive.next);
      } else if (kind < 11) {
        const Position to = std::max(0, size - choose(60));
        if (!twin.real->try_truncate(to)) continue;
        if (to < size) twin.naive.truncate(to);
      } else if (twins.size() < 4) {
        Twin fork{twin.real->try_fork(), twin.naive};
        twins.push_back(std::move(fork));
      }
      for (const Twin& each : twins) ASSERT_NO_FATAL_FAILURE(expect_alike(each)) << seed;
      const Status status = cache->validate();
      ASSERT_TRUE(status.ok()) << seed << " " << step << " " << status.message();
    }
  }
}

}  // namespace
}  // namespace memdecay
