// The probe alone, over keys and values made for the purpose; deletion_probe_forward_test.cc has it
// within the forward pass.
#include "model/transformer/deletion_probe.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>

namespace memdecay {
namespace {

std::size_t to_size(int value) {
  return static_cast<std::size_t>(value);
}

struct Shape {
  int layers = 1, heads = 4, kv_heads = 2, head_dim = 64, page_tokens = 32;
  KvFormat format = KvFormat::kF16;

  LayerGroups groups() const {
    LayerGroups result;
    result.groups.push_back({{layers, kv_heads, head_dim, page_tokens, format}, 0});
    for (int layer = 0; layer < layers; ++layer) result.layers.push_back({LayerGroupId(0), layer});
    return result;
  }
};

/// A number that halves hold exactly.
float coarse(float x) {
  return std::round(x * 256.0F) / 256.0F;
}

/// Random pages of one sequence and the query rows of a slice at its end.
struct Sequence {
  Sequence(const Shape& of, const std::vector<int>& filled, int rows_, std::uint32_t seed)
      : shape(of), groups(of.groups()), rows(rows_) {
    std::mt19937 random(seed);
    std::normal_distribution<float> normal;
    const KvPageLayout& layout = groups.groups[0].layout;
    slab.resize(layout.page_bytes() * filled.size());
    for (std::size_t page = 0; page < filled.size(); ++page) {
      refs.push_back({slab.data() + page * layout.page_bytes(), tokens, filled[page], of.format});
      for (int slot = 0; slot < filled[page]; ++slot)
        page_of_token.push_back(static_cast<int>(page));
      tokens += filled[page];
    }
    const std::size_t floats = to_size(of.layers * of.kv_heads * tokens * of.head_dim);
    for (std::size_t i = 0; i < floats; ++i) {
      keys.push_back(coarse(normal(random)));
      values.push_back(coarse(normal(random) + 0.2F));
    }
    const float scale = 3.0F / std::sqrt(static_cast<float>(of.head_dim));
    for (int i = 0; i < rows * of.heads * of.head_dim; ++i) q.push_back(normal(random) * scale);
    view = {&layout, refs, 0};
  }
  Sequence(const Sequence&) = delete;
  Sequence& operator=(const Sequence&) = delete;

  /// Of (layer, kv head, token): head_dim floats.
  std::size_t at(int layer, int kv_head, int token) const {
    return to_size(((layer * shape.kv_heads + kv_head) * tokens + token) * shape.head_dim);
  }

  /// What ShiftedQueries wants to know of a model. A part of each head turns.
  ModelConfig config() const {
    ModelConfig config;
    config.head_dim = shape.head_dim;
    config.rope.dimensions = shape.head_dim / 4 * 2;
    config.rope.order = RopeOrder::kHalves;
    return config;
  }

  /// Writes keys and values into the pages.
  void store() {
    const KvPageLayout& layout = groups.groups[0].layout;
    for (int layer = 0; layer < shape.layers; ++layer) {
      for (int head = 0; head < shape.kv_heads; ++head) {
        for (const KvPageRef& page : refs) {
          const std::size_t from = at(layer, head, page.first_position);
          scalar_kernels().store_kv({&layout, page.base + layout.head_offset(layer, head), 0,
                                     page.filled, keys.data() + from, values.data() + from,
                                     shape.head_dim, shape.head_dim});
        }
      }
    }
  }

  Shape shape;
  LayerGroups groups;
  int rows;
  int tokens = 0;
  std::vector<std::byte> slab;
  std::vector<KvPageRef> refs;
  std::vector<int> page_of_token;
  std::vector<float> keys, values;  // [layer][kv head][token][head_dim]
  std::vector<float> q;             // [rows][heads][head_dim]
  PagedKvView view;
};

/// A query turned by -shift.
std::vector<double> turned(const Sequence& s, const float* q, Position shift) {
  std::vector<double> x(q, q + s.shape.head_dim);
  const std::vector<double> frequencies = rope_frequencies(s.config().rope, {});
  for (std::size_t pair = 0; pair < frequencies.size() && shift != 0; ++pair) {
    double& a = x[pair];
    double& b = x[pair + frequencies.size()];
    const double cos = std::cos(-shift * frequencies[pair]);
    const double sin = std::sin(-shift * frequencies[pair]);
    const double first = a * cos - b * sin;
    b = a * sin + b * cos;
    a = first;
  }
  return x;
}

/// One head's attention, page by page: sums of weights and of weighted values.
struct NaiveHead {
  NaiveHead(const Sequence& s, int layer, int row, int head)
      : sums(s.refs.size()), outs(s.refs.size(), std::vector<double>(to_size(s.shape.head_dim))) {
    const int kv_head = head / (s.shape.heads / s.shape.kv_heads);
    const float* of_row = s.q.data() + to_size((row * s.shape.heads + head) * s.shape.head_dim);
    std::vector<double> scores;
    for (int token = 0; token <= s.tokens - s.rows + row; ++token) {
      double score = 0;
      const auto q = turned(s, of_row, s.refs[to_size(s.page_of_token[to_size(token)])].rope_shift);
      for (std::size_t d = 0; d < outs[0].size(); ++d)
        score += q[d] * double{s.keys[s.at(layer, kv_head, token) + d]};
      scores.push_back(score);
    }
    const double max = *std::max_element(scores.begin(), scores.end());
    for (std::size_t token = 0; token < scores.size(); ++token) {
      const auto page = to_size(s.page_of_token[token]);
      const double weight = std::exp2(scores[token] - max);
      const float* v = s.values.data() + s.at(layer, kv_head, static_cast<int>(token));
      sums[page] += weight;
      for (std::size_t d = 0; d < outs[0].size(); ++d) outs[page][d] += weight * double{v[d]};
    }
  }

  /// The output over all pages but one (none: pages.size()); empty where nothing is left.
  std::vector<double> output_without(std::size_t without) const {
    std::vector<double> out(outs[0].size());
    double sum = 0;
    for (std::size_t page = 0; page < sums.size(); ++page) {
      if (page == without) continue;
      sum += sums[page];
      for (std::size_t d = 0; d < out.size(); ++d) out[d] += outs[page][d];
    }
    if (sum == 0) return {};
    for (double& x : out) x /= sum;
    return out;
  }

  std::vector<double> sums;
  std::vector<std::vector<double>> outs;
};

double length(const std::vector<double>& x) {
  double square = 0;
  for (const double value : x) square += value * value;
  return std::sqrt(square);
}

/// Deletes each page in turn and looks at what comes out.
std::vector<PageAttention> naive_evidence(const Sequence& s, int row,
                                          const std::vector<int>& layers) {
  const double heads = static_cast<double>(layers.size()) * s.shape.heads;
  std::vector<double> error_sum(s.refs.size()), error_max(s.refs.size()), mass(s.refs.size());
  for (const int layer : layers) {
    for (int number = 0; number < s.shape.heads; ++number) {
      const NaiveHead head(s, layer, row, number);
      const std::vector<double> all = head.output_without(s.refs.size());
      const double sum = std::accumulate(head.sums.begin(), head.sums.end(), 0.0);
      for (std::size_t page = 0; page < s.refs.size(); ++page) {
        std::vector<double> apart = head.output_without(page);
        double error = double{kMaxDeletionError};
        if (!apart.empty()) {
          for (std::size_t d = 0; d < all.size(); ++d) apart[d] -= all[d];
          error = std::min(error, length(apart) / length(all));
        }
        error_sum[page] += error / heads;
        error_max[page] = std::max(error_max[page], error);
        mass[page] += head.sums[page] / sum / heads;
      }
    }
  }
  std::vector<PageAttention> result;
  for (std::size_t page = 0; page < s.refs.size(); ++page) {
    result.push_back({static_cast<float>(error_sum[page]), static_cast<float>(error_max[page]),
                      static_cast<float>(mass[page])});
  }
  return result;
}

/// Runs a probe over sequences of one shape as a pass would; slices of null probes do not ask.
void run_probe(const std::vector<const Sequence*>& sequences, const std::vector<PageProbe*>& probes,
               int threads, const KernelTable& kernels = best_kernels()) {
  Workspace workspace;
  std::vector<float> q;
  std::vector<SequenceSlice> slices;
  for (std::size_t i = 0; i < sequences.size(); ++i) {
    const Sequence& sequence = *sequences[i];
    SequenceSlice slice;
    slice.first_row = static_cast<int>(workspace.positions.size());
    slice.rows = sequence.rows;
    slice.first_position = sequence.tokens - sequence.rows;
    slice.views = std::span(&sequence.view, 1);
    slice.probe = probes[i];
    slices.push_back(slice);
    for (int row = 0; row < slice.rows; ++row)
      workspace.positions.push_back(slice.first_position + row);
    q.insert(q.end(), sequence.q.begin(), sequence.q.end());
  }
  workspace.q = q.data();
  const Sequence& first = *sequences[0];
  ShiftedQueries shifted_queries(first.config(), {}, kernels);
  DeletionProbe probe(first.groups, first.shape.heads, kernels, workspace, shifted_queries,
                      threads);
  ThreadTeam team(threads);
  shifted_queries.begin({{}, slices}, first.groups);
  ASSERT_TRUE(probe.begin({{}, slices}).ok());
  team.run([&](ThreadTeam::Member& member) {
    for (int layer = 0; layer < first.shape.layers; ++layer) {
      if (!probe.probes(layer)) continue;
      probe.attend_pages(member, layer);
      member.barrier();
      probe.weigh_pages(member, layer);
      member.barrier();
    }
  });
  probe.end();
}

struct Probed {
  std::vector<PageAttention> pages;
  int heads;
};

Probed probe_one(const Sequence& sequence, int row, int stride, int phase, int threads = 2,
                 const KernelTable& kernels = best_kernels()) {
  Probed result{std::vector<PageAttention>(sequence.refs.size()), -1};
  PageProbe probe{row, stride, phase, result.pages};
  run_probe({&sequence}, {&probe}, threads, kernels);
  result.heads = probe.heads;
  return result;
}

void expect_near(const std::vector<PageAttention>& actual,
                 const std::vector<PageAttention>& expected, float tolerance) {
  ASSERT_EQ(actual.size(), expected.size());
  const auto near = [&](float a, float b, std::size_t page) {
    EXPECT_NEAR(a, b, 1e-7F + tolerance * b) << "page " << page;
  };
  for (std::size_t page = 0; page < actual.size(); ++page) {
    near(actual[page].mean_error, expected[page].mean_error, page);
    near(actual[page].max_error, expected[page].max_error, page);
    near(actual[page].mean_mass, expected[page].mean_mass, page);
  }
}

void expect_same_bits(const std::vector<PageAttention>& a, const std::vector<PageAttention>& b) {
  ASSERT_EQ(a.size(), b.size());
  for (std::size_t page = 0; page < a.size(); ++page) {
    EXPECT_EQ(a[page].mean_error, b[page].mean_error);
    EXPECT_EQ(a[page].max_error, b[page].max_error);
    EXPECT_EQ(a[page].mean_mass, b[page].mean_mass);
  }
}

/// Full pages with sealed, partly filled ones among them; the last one is open.
std::vector<int> ragged(int pages, int page_tokens) {
  std::vector<int> filled(to_size(pages), page_tokens);
  for (int page = 3; page < pages; page += 7) filled[to_size(page)] = 1 + page * 5 % page_tokens;
  filled.back() = page_tokens - 3;
  return filled;
}

TEST(DeletionProbeTest, EqualsDeletingEachPage) {
  const Shape shapes[] = {{2, 9, 3, 64, 32, KvFormat::kF16},  {1, 7, 1, 128, 16, KvFormat::kF16},
                          {1, 2, 2, 80, 64, KvFormat::kF16},  {2, 6, 2, 64, 32, KvFormat::kF32},
                          {1, 14, 2, 96, 32, KvFormat::kF16}, {1, 3, 1, 20, 16, KvFormat::kF32}};
  for (const Shape& shape : shapes) {
    Sequence sequence(shape, ragged(70, shape.page_tokens), 40, 7);
    sequence.store();
    const std::vector<int> layers = shape.layers == 1 ? std::vector{0} : std::vector{0, 1};
    for (const int row : {-1, 0, 11}) {
      const auto expected = naive_evidence(sequence, row < 0 ? 39 : row, layers);
      for (const KernelTable* kernels : supported_kernels()) {
        const Probed actual = probe_one(sequence, row, 1, 0, 2, *kernels);
        EXPECT_EQ(actual.heads, shape.layers * shape.heads);
        expect_near(actual.pages, expected, 1e-4F);
      }
    }
  }
}

TEST(DeletionProbeTest, PagesThatMovedAreMeasuredWhereTheyAre) {
  const Shape shape{2, 6, 2, 64, 32, KvFormat::kF16};
  Sequence sequence(shape, ragged(40, 32), 3, 8);
  for (std::size_t page = 2; page < 38; ++page)
    sequence.refs[page].rope_shift = page < 20 ? -64 : page % 3 == 0 ? -5000 : -777;
  sequence.store();
  for (const KernelTable* kernels : supported_kernels())
    expect_near(probe_one(sequence, 1, 1, 0, 2, *kernels).pages,
                naive_evidence(sequence, 1, {0, 1}), 1e-4F);
  const Probed moved = probe_one(sequence, 1, 1, 0, 1);
  expect_same_bits(probe_one(sequence, 1, 1, 0, 3).pages, moved.pages);
  for (KvPageRef& page : sequence.refs) page.rope_shift = 0;
  EXPECT_GT(std::abs(probe_one(sequence, 1, 1, 0).pages[25].mean_mass - moved.pages[25].mean_mass),
            1e-4F);
}

TEST(DeletionProbeTest, MassSumsToOneAndPagesNotVisibleHaveNone) {
  const Shape shape;
  Sequence sequence(shape, {32, 32, 32, 32}, 60, 1);
  sequence.refs.push_back(sequence.refs.back());  // room for what comes next, nothing in it yet
  sequence.refs.back().filled = 0;
  sequence.view.pages = sequence.refs;
  sequence.store();
  const Probed probed = probe_one(sequence, 3, 1, 0);
  float mass = 0;
  for (const PageAttention& page : probed.pages) mass += page.mean_mass;
  EXPECT_NEAR(mass, 1.0F, 1e-6F);
  EXPECT_GT(probed.pages[2].mean_mass, 0.0F);
  for (const std::size_t page : {3U, 4U}) {  // in the future of row 3; empty
    EXPECT_EQ(probed.pages[page].mean_mass, 0.0F);
    EXPECT_EQ(probed.pages[page].mean_error, 0.0F);
    EXPECT_EQ(probed.pages[page].max_error, 0.0F);
  }
}

TEST(DeletionProbeTest, TheOnlyPageIsAtTheCap) {
  Sequence sequence({}, {20}, 2, 2);
  sequence.store();
  const Probed probed = probe_one(sequence, -1, 1, 0);
  EXPECT_EQ(probed.pages[0].mean_error, kMaxDeletionError);
  EXPECT_EQ(probed.pages[0].max_error, kMaxDeletionError);
  EXPECT_EQ(probed.pages[0].mean_mass, 1.0F);
}

// One token takes nearly everything: o - o_b is then far smaller than either.
TEST(DeletionProbeTest, APageThatTakesNearlyEverythingIsStillMeasured) {
  Shape shape;
  shape.heads = shape.kv_heads = 1;
  for (const float score : {15.0F, 25.0F, 30.0F, 100.0F}) {
    Sequence sequence(shape, ragged(12, 32), 1, 3);
    float* key = sequence.keys.data() + sequence.at(0, 0, 40);
    std::fill_n(key, 64, 0.0F);
    key[5] = 1.0F;
    std::fill(sequence.q.begin(), sequence.q.end(), 0.0F);
    sequence.q[5] = score;
    for (int token = 0; token < sequence.tokens; ++token) {
      if (token != 40) sequence.keys[sequence.at(0, 0, token) + 5] *= 0.0625F;
    }
    sequence.store();
    const Probed probed = probe_one(sequence, -1, 1, 0);
    if (score == 100.0F) {
      EXPECT_EQ(probed.pages[1].mean_error, kMaxDeletionError);
      EXPECT_EQ(probed.pages[1].mean_mass, 1.0F);
      EXPECT_LT(probed.pages[0].max_error, 1e-9F);
    } else {
      expect_near(probed.pages, naive_evidence(sequence, 0, {0}), 1e-4F);
      EXPECT_LT(probed.pages[1].mean_error, kMaxDeletionError);
    }
  }
}

TEST(DeletionProbeTest, AnOutputOfZeroLosesNothing) {
  Sequence sequence({}, {32, 32, 9}, 1, 4);
  std::fill(sequence.values.begin(), sequence.values.end(), 0.0F);
  sequence.store();
  const Probed probed = probe_one(sequence, -1, 1, 0);
  for (const PageAttention& page : probed.pages) {
    EXPECT_EQ(page.mean_error, 0.0F);
    EXPECT_GT(page.mean_mass, 0.0F);
  }
}

TEST(DeletionProbeTest, PhasesCoverEveryLayerOnce) {
  Shape shape;
  shape.layers = 7;
  Sequence sequence(shape, ragged(5, 32), 1, 5);
  sequence.store();
  const Probed all = probe_one(sequence, -1, 1, 0);
  std::vector<double> errors(5), masses(5);
  std::vector<float> max(5);
  int heads = 0;
  for (int phase = 0; phase < 3; ++phase) {
    const Probed part = probe_one(sequence, -1, 3, phase);
    std::vector<int> layers;
    for (int layer = phase; layer < 7; layer += 3) layers.push_back(layer);
    EXPECT_EQ(part.heads, static_cast<int>(layers.size()) * shape.heads);
    expect_near(part.pages, naive_evidence(sequence, 0, layers), 1e-4F);
    heads += part.heads;
    for (std::size_t page = 0; page < 5; ++page) {
      errors[page] += double{part.pages[page].mean_error} * part.heads;
      masses[page] += double{part.pages[page].mean_mass} * part.heads;
      max[page] = std::max(max[page], part.pages[page].max_error);
    }
  }
  EXPECT_EQ(heads, all.heads);
  for (std::size_t page = 0; page < 5; ++page) {
    EXPECT_NEAR(errors[page] / heads, all.pages[page].mean_error, 1e-6);
    EXPECT_NEAR(masses[page] / heads, all.pages[page].mean_mass, 1e-6);
    EXPECT_EQ(max[page], all.pages[page].max_error);
  }
  const Probed none = probe_one(sequence, -1, 9, 8);  // there is no layer 8
  EXPECT_EQ(none.heads, 0);
  expect_same_bits(none.pages, std::vector<PageAttention>(5));
}

TEST(DeletionProbeTest, ThreadsAndNeighboursDoNotChangeABit) {
  Shape shape;
  shape.layers = 4;
  Sequence a(shape, ragged(75, 32), 5, 6), b(shape, ragged(9, 32), 1, 7), c(shape, {17}, 17, 8);
  for (Sequence* sequence : {&a, &b, &c}) sequence->store();
  const Probed alone_a = probe_one(a, 2, 1, 0, 1), alone_c = probe_one(c, -1, 2, 1, 1);
  for (const int threads : {1, 2, 3, 5}) {
    expect_same_bits(probe_one(a, 2, 1, 0, threads).pages, alone_a.pages);
    std::vector<PageAttention> of_a(a.refs.size()), of_c(c.refs.size());
    PageProbe probe_a{2, 1, 0, of_a}, probe_c{-1, 2, 1, of_c};
    run_probe({&b, &a, &c}, {nullptr, &probe_a, &probe_c}, threads);
    expect_same_bits(of_a, alone_a.pages);
    expect_same_bits(of_c, alone_c.pages);
    EXPECT_EQ(probe_a.heads, 16);
    EXPECT_EQ(probe_c.heads, 8);
  }
}

TEST(DeletionProbeTest, LayersWithAWindowAreSkippedAndNotCounted) {
  Shape shape;
  shape.layers = 2;
  LayerGroups groups = shape.groups();
  groups.groups.push_back({groups.groups[0].layout, 16});
  groups.layers = {
      {LayerGroupId(1), 0}, {LayerGroupId(0), 0}, {LayerGroupId(1), 1}, {LayerGroupId(0), 1}};
  const Sequence sequence(shape, {32, 3}, 1, 9);
  const PagedKvView views[] = {sequence.view, sequence.view};
  std::vector<PageAttention> pages(2);
  PageProbe page_probe{-1, 2, 1, pages};
  SequenceSlice slice;
  slice.rows = 1;
  slice.views = views;
  slice.probe = &page_probe;
  const Workspace workspace;
  const ShiftedQueries shifted_queries(sequence.config(), {}, best_kernels());
  DeletionProbe probe(groups, shape.heads, best_kernels(), workspace, shifted_queries, 1);
  ASSERT_TRUE(probe.begin({{}, std::span(&slice, 1)}).ok());
  const bool expected[] = {false, false, false, true};
  for (int layer = 0; layer < 4; ++layer) EXPECT_EQ(probe.probes(layer), expected[layer]) << layer;
}

}  // namespace
}  // namespace memdecay
