#include "model/transformer/shifted_queries.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

namespace memdecay {
namespace {

struct Variant {
  int head_dim, dimensions;
  RopeOrder order;
  RopeScaling scaling = RopeScaling::kNone;
  bool has_divisors = false;

  ModelConfig config() const {
    ModelConfig config;
    config.head_dim = head_dim;
    config.rope.dimensions = dimensions;
    config.rope.order = order;
    config.rope.scaling = scaling;
    config.rope.factor = scaling == RopeScaling::kNone ? 1 : 4;
    config.rope.original_context_length = 2048;
    config.rope.theta = 100000;
    return config;
  }
  std::vector<float> divisors() const {
    std::vector<float> divisors;
    for (int pair = 0; has_divisors && pair < dimensions / 2; ++pair)
      divisors.push_back(1.0F + 7.0F * static_cast<float>(pair) / static_cast<float>(dimensions));
    return divisors;
  }
};

/// A head rotated by a place, in double.
std::vector<double> rotated(const Variant& variant, const std::vector<float>& head,
                            Position place) {
  const auto frequencies = rope_frequencies(variant.config().rope, variant.divisors());
  std::vector<double> x(head.begin(), head.end());
  for (std::size_t pair = 0; pair < frequencies.size(); ++pair) {
    const bool halves = variant.order == RopeOrder::kHalves;
    double& a = x[halves ? pair : 2 * pair];
    double& b = x[halves ? pair + frequencies.size() : 2 * pair + 1];
    const double cos = std::cos(frequencies[pair] * place);
    const double sin = std::sin(frequencies[pair] * place);
    const double first = a * cos - b * sin;
    b = a * sin + b * cos;
    a = first;
  }
  return x;
}

std::vector<float> random_head(int head_dim, std::mt19937& random) {
  std::normal_distribution<float> normal;
  std::vector<float> head(static_cast<std::size_t>(head_dim));
  for (float& value : head) value = normal(random);
  return head;
}

double dot(const std::vector<double>& a, const std::vector<double>& b) {
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
  return sum;
}

/// A pass over pages with these shifts; a page is only looked at.
void begin_pass(ShiftedQueries& queries, const std::vector<Position>& shifts) {
  LayerGroups groups;
  groups.groups.resize(1);
  std::vector<KvPageRef> pages(shifts.size());
  for (std::size_t i = 0; i < shifts.size(); ++i) pages[i].rope_shift = shifts[i];
  const PagedKvView view{&groups.groups[0].layout, pages, 0};
  SequenceSlice slice;
  slice.views = std::span(&view, 1);
  queries.begin({{}, std::span(&slice, 1)}, groups);
}

// A key written at one place and moved by a shift, against the same key rotated to where it is now.
TEST(ShiftedQueriesTest, ScoresAreThoseOfKeysRotatedToTheirVirtualPlaces) {
  const Variant variants[] = {
      {64, 64, RopeOrder::kInterleaved},
      {64, 64, RopeOrder::kHalves},
      {80, 32, RopeOrder::kHalves},
      {20, 12, RopeOrder::kInterleaved},
      {128, 128, RopeOrder::kHalves, RopeScaling::kYarn},
      {64, 64, RopeOrder::kInterleaved, RopeScaling::kLinear},
      {64, 64, RopeOrder::kInterleaved, RopeScaling::kNone, true},
  };
  std::mt19937 random(5);
  for (const Variant& variant : variants) {
    for (const KernelTable* kernels : supported_kernels()) {
      ShiftedQueries queries(variant.config(), variant.divisors(), *kernels);
      begin_pass(queries, {0, -3, -3, 0, -24000, -777});
      ASSERT_TRUE(queries.any());
      for (const Position shift : {-3, -777, -24000, 0}) {
        const Position query_place = 8000, written = 7000 - shift;
        const auto q = random_head(variant.head_dim, random);
        const auto key = random_head(variant.head_dim, random);
        const std::vector<double> q_rotated = rotated(variant, q, query_place);
        const std::vector<float> stored(q_rotated.begin(), q_rotated.end());
        std::vector<float> turned(stored.size());
        queries.turn(shift, stored.data(), 1, turned.data());
        const double actual = dot({turned.begin(), turned.end()}, rotated(variant, key, written));
        const double expected = dot(q_rotated, rotated(variant, key, written + shift));
        EXPECT_NEAR(actual, expected, 2e-5) << variant.head_dim << " " << shift;
        if (shift == 0) {
          EXPECT_EQ(turned, stored);
        }
      }
    }
  }
}

TEST(ShiftedQueriesTest, AnglesFollowThePass) {
  const Variant variant{64, 64, RopeOrder::kHalves};
  ShiftedQueries queries(variant.config(), {}, best_kernels());
  EXPECT_FALSE(queries.any());
  std::mt19937 random(6);
  const auto q = random_head(2 * 64, random);
  std::vector<float> first(q.size()), again(q.size()), other(q.size());
  begin_pass(queries, {-50});
  queries.turn(-50, q.data(), 2, first.data());
  begin_pass(queries, {-900, -50});
  queries.turn(-50, q.data(), 2, again.data());
  queries.turn(-900, q.data(), 2, other.data());
  EXPECT_EQ(again, first);
  EXPECT_NE(other, first);
  begin_pass(queries, {0, 0});
  EXPECT_FALSE(queries.any());
}

}  // namespace
}  // namespace memdecay
