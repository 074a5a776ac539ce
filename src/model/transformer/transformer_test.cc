#include "model/transformer/transformer.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <random>

#include "model/transformer/paged_model_for_test.h"
#include "model/transformer/random_model_for_test.h"
#include "model/transformer/reference_forward_for_test.h"

namespace memdecay {
namespace {

/// A model with its team, and a plain page store whose pages lie in a shuffled order.
class Bench {
 public:
  struct Settings {
    Precision precision = Precision::kFast;
    int threads = 1;
    int page_tokens = 32;
    std::uint32_t page_order_seed = 0;
    const KernelTable* kernels = &best_kernels();
  };
  static constexpr int kMaxTokens = 1216;

  Bench(std::span<const std::byte> model, const Settings& settings)
      : model_(GgufFile::from_bytes(model, "test model").value(), settings.precision,
               settings.page_tokens, settings.threads, {256, 16}, *settings.kernels) {
    random_.seed(settings.page_order_seed);
  }

  const ModelConfig& config() const { return model_.config; }
  const GgufFile& file() const { return model_.file; }
  Transformer& transformer() { return *model_.transformer; }
  const LayerGroups& groups() const { return model_.groups; }

  /// Pages for one sequence.
  struct Pages {
    std::vector<std::vector<std::byte>> slabs;  // by layer group
    std::vector<std::vector<KvPageRef>> refs;
    std::vector<PagedKvView> views;
    int size = 0;
  };
  Pages make_pages() {
    Pages pages;
    for (const LayerGroups::Group& group : model_.groups.groups) {
      const int count = kMaxTokens / group.layout.page_tokens;
      auto& slab =
          pages.slabs.emplace_back(group.layout.page_bytes() * static_cast<std::size_t>(count));
      std::vector<std::size_t> order(static_cast<std::size_t>(count));
      std::iota(order.begin(), order.end(), 0);
      std::shuffle(order.begin(), order.end(), random_);
      auto& refs = pages.refs.emplace_back();
      for (std::size_t i = 0; i < order.size(); ++i) {
        refs.push_back({slab.data() + order[i] * group.layout.page_bytes(),
                        static_cast<Position>(i) * group.layout.page_tokens, 0,
                        group.layout.format});
      }
    }
    return pages;
  }
  /// Counts `tokens` more slots as filled and points the views at them.
  void grow(Pages& pages, int tokens) {
    pages.size += tokens;
    pages.views.clear();
    for (std::size_t g = 0; g < model_.groups.groups.size(); ++g) {
      const int page_tokens = model_.groups.groups[g].layout.page_tokens;
      const int count = (pages.size + page_tokens - 1) / page_tokens;
      for (int i = 0; i < count; ++i) {
        pages.refs[g][static_cast<std::size_t>(i)].filled =
            std::min(page_tokens, pages.size - i * page_tokens);
      }
      pages.views.push_back({&model_.groups.groups[g].layout,
                             std::span(pages.refs[g]).first(static_cast<std::size_t>(count)), 0});
    }
  }

  /// Logits after every token: the first `prefix` tokens in passes of 256, the rest in passes of
  /// `chunk` (1 is decode).
  std::vector<float> run(std::span<const TokenId> tokens, int chunk, std::size_t prefix = 0) {
    Pages pages = make_pages();
    std::vector<float> result;
    for (std::size_t begin = 0; begin < tokens.size();) {
      const std::size_t limit = begin < prefix ? std::min<std::size_t>(256, prefix - begin)
                                               : static_cast<std::size_t>(chunk);
      const auto part = tokens.subspan(begin, std::min(tokens.size() - begin, limit));
      const SequenceSlice slice = next_slice(pages, 0, static_cast<int>(part.size()));
      EXPECT_TRUE(model_.transformer->forward({part, std::span(&slice, 1)}).ok());
      append_logits(0, static_cast<int>(part.size()), result);
      begin += part.size();
    }
    return result;
  }
  SequenceSlice next_slice(Pages& pages, int first_row, int rows) {
    SequenceSlice slice;
    slice.first_row = first_row;
    slice.rows = rows;
    slice.first_position = pages.size;
    grow(pages, rows);
    slice.views = pages.views;
    return slice;
  }
  void append_logits(int first_row, int rows, std::vector<float>& out) {
    for (int row = first_row; row < first_row + rows; row += 16) {
      std::vector<int> wanted(static_cast<std::size_t>(std::min(16, first_row + rows - row)));
      std::iota(wanted.begin(), wanted.end(), row);
      const auto logits = model_.transformer->logits(wanted);
      out.insert(out.end(), logits.begin(), logits.end());
    }
  }

 private:
  LoadedModel model_;
  std::mt19937 random_;
};

class TransformerTest : public testing::TestWithParam<const char*> {
 protected:
  std::vector<std::byte> model_ = random_model(GetParam(), shape(), 11);

  static RandomModelShape shape() {
    RandomModelShape shape;
    if (std::string_view(GetParam()) == "gemma3")
      shape.layers = 7;  // five slide, one sees all, one slides
    return shape;
  }
};

/// Squared error of logits against the naive forward pass, relative to the logits' own power.
double relative_error(Bench& bench) {
  const auto tokens = random_tokens(150, 1);
  const auto expected = ReferenceForward(bench.file(), bench.config()).logits(tokens);
  const auto actual = bench.run(tokens, 64);
  double error = 0, power = 0;
  for (std::size_t i = 0; i < actual.size(); ++i) {
    const double truth = expected[i / 50][i % 50];
    error += (actual[i] - truth) * (actual[i] - truth);
    power += truth * truth;
  }
  EXPECT_GT(power / static_cast<double>(actual.size()), 1e-3);
  return error / power;
}

TEST_P(TransformerTest, ExactPrecisionFollowsTheNaiveUnpagedForwardPass) {
  Bench bench(model_, {Precision::kExact});
  EXPECT_LT(relative_error(bench), 1e-10);
}

TEST_P(TransformerTest, FastPrecisionStaysNearTheNaiveForwardPass) {
  Bench bench(model_, {Precision::kFast});
  EXPECT_LT(relative_error(bench), 1e-3);
}

// Every supported kernel table: the same bits for any chunk size (1 is decode), thread count and
// page order.
TEST_P(TransformerTest, ChunksThreadsAndPagePlacesDoNotChangeABit) {
  const auto tokens = random_tokens(1150, 2);  // crosses the first segment of 1024 slots
  for (const KernelTable* kernels : supported_kernels()) {
    if (kernels == &scalar_kernels()) continue;  // the same code path, too slow for this length
    Bench base(model_, {Precision::kFast, 1, 32, 0, kernels});
    const auto expected = base.run(tokens, 256);
    const auto logits = [&](int threads, std::uint32_t page_order, int chunk, std::size_t prefix) {
      return Bench(model_, {Precision::kFast, threads, 32, page_order, kernels})
          .run(tokens, chunk, prefix);
    };
    EXPECT_EQ(logits(1, 5, 1, 0), expected) << kernels->name;
    EXPECT_EQ(logits(2, 6, 37, 0), expected) << kernels->name;
    EXPECT_EQ(logits(2, 7, 1, 1000), expected) << kernels->name;  // decode across the segment's end
    EXPECT_EQ(logits(3, 8, 3, 1020), expected) << kernels->name;
  }
}

TEST_P(TransformerTest, ExactPrecisionIsAsDeterministic) {
  const auto tokens = random_tokens(300, 3);
  const auto expected = Bench(model_, {Precision::kExact, 1, 16, 0}).run(tokens, 128);
  EXPECT_EQ(Bench(model_, {Precision::kExact, 2, 16, 5}).run(tokens, 1, 250), expected);
}

TEST_P(TransformerTest, NeighboursInABatchDoNotChangeABit) {
  Bench bench(model_, {Precision::kFast, 2});
  const auto a = random_tokens(130, 4), b = random_tokens(90, 5);
  const auto expected_a = bench.run(a, 256), expected_b = bench.run(b, 256);
  Bench::Pages pages_a = bench.make_pages(), pages_b = bench.make_pages();
  std::vector<float> got_a, got_b;
  std::size_t at_a = 0, at_b = 0;
  for (int step = 0; at_a < a.size() || at_b < b.size(); ++step) {
    const int rows_a =
        static_cast<int>(std::min<std::size_t>(step % 2 == 0 ? 17 : 1, a.size() - at_a));
    const int rows_b =
        static_cast<int>(std::min<std::size_t>(step % 3 == 0 ? 1 : 9, b.size() - at_b));
    std::vector<TokenId> tokens(a.begin() + static_cast<std::ptrdiff_t>(at_a),
                                a.begin() + static_cast<std::ptrdiff_t>(at_a) + rows_a);
    tokens.insert(tokens.end(), b.begin() + static_cast<std::ptrdiff_t>(at_b),
                  b.begin() + static_cast<std::ptrdiff_t>(at_b) + rows_b);
    std::vector<SequenceSlice> slices;
    if (rows_a > 0) slices.push_back(bench.next_slice(pages_a, 0, rows_a));
    if (rows_b > 0) slices.push_back(bench.next_slice(pages_b, rows_a, rows_b));
    ASSERT_TRUE(bench.transformer().forward({tokens, slices}).ok());
    bench.append_logits(0, rows_a, got_a);
    bench.append_logits(rows_a, rows_b, got_b);
    at_a += static_cast<std::size_t>(rows_a);
    at_b += static_cast<std::size_t>(rows_b);
  }
  EXPECT_EQ(got_a, expected_a);
  EXPECT_EQ(got_b, expected_b);
}

TEST_P(TransformerTest, PageMassCountsEveryQueryOfEveryHeadOnce) {
  Bench bench(model_, {Precision::kFast, 2});
  const auto tokens = random_tokens(1100, 6);
  Bench::Pages pages = bench.make_pages();
  for (std::size_t begin = 0; begin < tokens.size();) {
    const std::size_t rows = begin < 1000 ? 200 : begin == 1000 ? 99 : 1;
    SequenceSlice slice = bench.next_slice(pages, 0, static_cast<int>(rows));
    std::vector<std::vector<float>> mass;
    std::vector<float*> pointers;
    for (const PagedKvView& view : slice.views) mass.emplace_back(view.pages.size(), -1.0F);
    for (auto& group : mass) pointers.push_back(group.data());
    slice.page_mass = pointers;
    ASSERT_TRUE(bench.transformer()
                    .forward({std::span(tokens).subspan(begin, rows), std::span(&slice, 1)})
                    .ok());
    for (std::size_t g = 0; g < mass.size(); ++g) {
      const double total = std::accumulate(mass[g].begin(), mass[g].end(), 0.0);
      const double queries =
          static_cast<double>(rows) * bench.config().heads * bench.groups().groups[g].layout.layers;
      EXPECT_NEAR(total / queries, 1.0, 1e-4);
    }
    begin += rows;
  }
}

TEST_P(TransformerTest, PageMassFromARowOnIsThatOfTheRowsBehind) {
  Bench bench(model_, {Precision::kFast, 2});
  const auto tokens = random_tokens(300, 8);
  const auto mass_of = [&](std::size_t before, int from_row) {
    Bench::Pages pages = bench.make_pages();
    std::vector<std::vector<float>> mass;
    for (std::size_t begin = 0; begin < tokens.size();) {
      const std::size_t rows =
          begin < before ? std::min<std::size_t>(200, before - begin) : tokens.size() - before;
      SequenceSlice slice = bench.next_slice(pages, 0, static_cast<int>(rows));
      mass.clear();
      std::vector<float*> pointers;
      for (const PagedKvView& view : slice.views) mass.emplace_back(view.pages.size(), -1.0F);
      for (auto& group : mass) pointers.push_back(group.data());
      slice.page_mass = pointers;
      slice.mass_from_row = begin < before ? 0 : from_row;
      EXPECT_TRUE(bench.transformer()
                      .forward({std::span(tokens).subspan(begin, rows), std::span(&slice, 1)})
                      .ok());
      begin += rows;
    }
    return mass;
  };
  const auto expected = mass_of(299, 0);
  for (const auto& [before, from_row] : {std::pair{200, 99}, {250, 49}}) {
    const auto actual = mass_of(static_cast<std::size_t>(before), from_row);
    ASSERT_EQ(actual.size(), expected.size());
    for (std::size_t group = 0; group < actual.size(); ++group) {
      // Of layers with a window the longer slice sees more pages, all of them before the last
      // query's window.
      const std::size_t more = actual[group].size() - expected[group].size();
      for (std::size_t page = 0; page < actual[group].size(); ++page) {
        const float wanted = page < more ? 0.0F : expected[group][page - more];
        EXPECT_NEAR(actual[group][page], wanted, 1e-4F * (1.0F + wanted)) << group << " " << page;
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Architectures, TransformerTest,
                         testing::Values("llama", "qwen2", "qwen3", "gemma3"),
                         [](const auto& tested) { return std::string(tested.param); });

}  // namespace
}  // namespace memdecay
