// The forward pass over pages that were dropped around and moved virtually: against the naive pass
// with keys rotated anew to their virtual places for every query, and bit for bit against itself.
#include <gtest/gtest.h>

#include <numeric>
#include <optional>

#include "model/transformer/paged_model_for_test.h"
#include "model/transformer/random_model_for_test.h"
#include "model/transformer/reference_forward_for_test.h"

namespace memdecay {
namespace {

/// What happens to a sequence between passes, in this order, and the pass.
struct Step {
  std::vector<int> drop;  ///< pages by number, descending
  int close = 0;          ///< closes gaps of at least so many tokens; 0: none
  bool seal = false;
  int rows = 0;
};

/// Gaps that stay open, are closed at once and later, at the end, in the middle and at the front.
std::vector<Step> script() {
  return {{{}, 0, false, 100},     // pages of 32, 32, 32, 4
          {{1}, 0, false, 30},     // a gap of 32 stays open; the last page goes on: 32, 32, 32, 2
          {{}, 1, false, 45},      // closed: 32, 32, 32, 2, 32, 13
          {{4, 3}, 33, true, 20},  // a gap of 34 closed: 32, 32, 32, 13, 20
          {{3}, 50, false, 3},     // a gap of 13 is too small
          {{0}, 10, false, 1},     // the front and the 13
          {{}, 10, false, 1},      // nothing to close: the page stays open
          {{3, 2}, 1, false, 1},   // the two newest pages: the gap is at the end
          {{}, 0, false, 70}};
}

/// Places of tokens in the plainest form: one number a token, empty where it is gone.
class NaivePlaces {
 public:
  void drop(const KvPageRef& page) {
    for (int slot = 0; slot < page.filled; ++slot)
      now_[to_size(page.first_position + slot)].reset();
  }
  void close(int smallest) {
    Position end = 0, won = 0;
    const auto meet = [&](Position place) {
      if (place - end >= smallest) won += place - end;
      end = place + 1;
      return place - won;
    };
    for (auto& place : now_)
      if (place.has_value()) place = meet(*place);
    next_ = meet(next_);
  }
  void append(int rows) {
    for (int row = 0; row < rows; ++row) {
      now_.push_back(next_++);
      seen_.push_back(now_);
    }
  }
  std::optional<Position> at(std::size_t query, std::size_t key) const { return seen_[query][key]; }

 private:
  std::vector<std::optional<Position>> now_;
  std::vector<std::vector<std::optional<Position>>> seen_;  // by query
  Position next_ = 0;
};

class MovedSequence {
 public:
  explicit MovedSequence(PagedModel& model) : model_(model) {}

  void change(const Step& step) {
    for (const int page : step.drop) {
      places.drop(sequence.refs[0][to_size(page)]);
      model_.drop(sequence, {page});
    }
    if (step.close == 0) return;
    places.close(step.close);
    model_.close_gaps(sequence, step.close);
  }
  SequenceSlice append(int first_row, int rows, bool seal) {
    places.append(rows);
    return model_.append(sequence, first_row, rows, seal);
  }

  PagedModel::Sequence sequence;
  NaivePlaces places;

 private:
  PagedModel& model_;
};

struct Outcome {
  std::vector<float> logits, evidence;
};

/// Runs the script in passes of at most `chunk` rows.
Outcome run_script(PagedModel& model, MovedSequence& moved, std::span<const TokenId> tokens,
                   int chunk) {
  Outcome outcome;
  for (const Step& step : script()) {
    moved.change(step);
    for (int done = 0; done < step.rows;) {
      const int rows = std::min(chunk, step.rows - done);
      const auto part = tokens.subspan(to_size(moved.sequence.size), to_size(rows));
      SequenceSlice slice = moved.append(0, rows, step.seal && done == 0);
      std::vector<PageAttention> pages(slice.views[0].pages.size());
      PageProbe probe{-1, 1, 0, pages};
      slice.probe = &probe;
      model.forward(part, std::span(&slice, 1));
      const auto logits = model.logits(rows);
      outcome.logits.insert(outcome.logits.end(), logits.begin(), logits.end());
      done += rows;
      if (done < step.rows) continue;
      for (const PageAttention& page : pages)
        outcome.evidence.insert(outcome.evidence.end(), {page.mean_error, page.mean_mass});
    }
  }
  return outcome;
}

int tokens_of_script() {
  const auto steps = script();
  return std::accumulate(steps.begin(), steps.end(), 0,
                         [](int sum, const Step& step) { return sum + step.rows; });
}

struct Tested {
  const char* name;
  const char* architecture;
  std::uint32_t rope_dimensions = 0;
};

class VirtualPositionsTest : public testing::TestWithParam<Tested> {
 protected:
  static RandomModelShape shape() {
    RandomModelShape shape;
    shape.rope_dimensions = GetParam().rope_dimensions;
    if (std::string_view(GetParam().architecture) == "gemma3") shape.layers = 7;
    return shape;
  }
  std::vector<std::byte> model_ = random_model(GetParam().architecture, shape(), 41);
};

TEST_P(VirtualPositionsTest, EqualTheNaivePassWithKeysRotatedAnew) {
  PagedModel model(model_, Precision::kExact, 2);
  MovedSequence moved(model);
  const auto tokens = random_tokens(tokens_of_script(), 42);
  const Outcome actual = run_script(model, moved, tokens, 64);
  ASSERT_LT(moved.sequence.refs[0][0].rope_shift, 0);
  ReferenceForward reference(model.file(), model.config());
  reference.place = [&](std::size_t query, std::size_t key) { return moved.places.at(query, key); };
  const auto expected = reference.logits(tokens);
  double error = 0, power = 0;
  for (std::size_t i = 0; i < actual.logits.size(); ++i) {
    const double truth = expected[i / 50][i % 50];
    error += (actual.logits[i] - truth) * (actual.logits[i] - truth);
    power += truth * truth;
  }
  EXPECT_GT(power / static_cast<double>(actual.logits.size()), 1e-3);
  EXPECT_LT(error / power, 1e-10);
}

TEST_P(VirtualPositionsTest, ChunksThreadsAndKernelsOfOneSetDoNotChangeABit) {
  const auto tokens = random_tokens(tokens_of_script(), 43);
  for (const KernelTable* kernels : supported_kernels()) {
    const auto run = [&](int threads, int chunk) {
      PagedModel model(model_, Precision::kFast, threads, *kernels);
      MovedSequence moved(model);
      return run_script(model, moved, tokens, chunk);
    };
    const Outcome expected = run(1, 256);
    for (const auto& [threads, chunk] : {std::pair(1, 1), std::pair(2, 7), std::pair(3, 64)}) {
      const Outcome actual = run(threads, chunk);
      EXPECT_EQ(actual.logits, expected.logits) << kernels->name << " " << chunk;
      EXPECT_EQ(actual.evidence, expected.evidence) << kernels->name << " " << chunk;
    }
  }
}

// Sequences that moved by different shifts share passes with one that never did.
TEST_P(VirtualPositionsTest, NeighboursInABatchDoNotChangeABit) {
  const auto tokens = random_tokens(160, 44);
  const int cuts[3][2] = {{1, 0}, {2, 1}, {0, 0}};  // page to drop after the first pass, and count
  const auto run = [&](std::span<const int> numbers) {
    PagedModel model(model_, Precision::kFast, 2);
    std::vector<PagedModel::Sequence> sequences(numbers.size());
    std::vector<std::vector<float>> logits(numbers.size());
    for (const int rows : {130, 1, 25, 1, 3}) {
      std::vector<SequenceSlice> slices;
      std::vector<TokenId> all;
      if (rows == 130) {  // each in a pass of its own: a batch holds 256
        for (PagedModel::Sequence& sequence : sequences) {
          const SequenceSlice slice = model.append(sequence, 0, rows, false);
          model.forward(std::span(tokens).first(130), std::span(&slice, 1));
        }
        for (std::size_t i = 0; i < numbers.size(); ++i) {
          const int* cut = cuts[numbers[i]];
          if (numbers[i] == 2) continue;
          for (int page = cut[0]; page >= cut[0] - cut[1]; --page) model.drop(sequences[i], {page});
          model.close_gaps(sequences[i], 1);
        }
        continue;
      }
      for (PagedModel::Sequence& sequence : sequences) {
        const auto part = std::span(tokens).subspan(to_size(sequence.size), to_size(rows));
        slices.push_back(model.append(sequence, static_cast<int>(all.size()), rows, false));
        all.insert(all.end(), part.begin(), part.end());
      }
      model.forward(all, slices);
      const auto of_all = model.logits(static_cast<int>(all.size()));
      for (std::size_t i = 0; i < numbers.size(); ++i) {
        const auto begin = of_all.begin() + static_cast<std::ptrdiff_t>(i) * rows * 50;
        logits[i].insert(logits[i].end(), begin, begin + std::ptrdiff_t{rows} * 50);
      }
    }
    return logits;
  };
  const int together[] = {0, 1, 2};
  const auto logits = run(together);
  for (const int number : together)
    EXPECT_EQ(run(std::span(&number, 1))[0], logits[to_size(number)]);
  EXPECT_NE(logits[0], logits[1]);
}

INSTANTIATE_TEST_SUITE_P(Architectures, VirtualPositionsTest,
                         testing::Values(Tested{"llama", "llama"}, Tested{"qwen2", "qwen2"},
                                         Tested{"qwen3", "qwen3"}, Tested{"gemma3", "gemma3"},
                                         Tested{"part_of_a_head", "llama", 24}),
                         [](const auto& tested) { return std::string(tested.param.name); });

// Keys and values of one layer know nothing of other tokens, so closing the gap of dropped pages
// must give what a sequence gives that never had them.
TEST(VirtualPositionsOfOneLayerTest, EqualASequenceWithoutTheDroppedTokens) {
  RandomModelShape shape;
  shape.layers = 1;
  const auto bytes = random_model("llama", shape, 45);
  PagedModel model(bytes, Precision::kExact, 1);
  const auto tokens = random_tokens(200, 46);
  PagedModel::Sequence moved, fresh;
  SequenceSlice slice = model.append(moved, 0, 160, false);
  model.forward(std::span(tokens).first(160), std::span(&slice, 1));
  model.drop(moved, {3, 1});
  model.close_gaps(moved, 1);
  slice = model.append(moved, 0, 40, false);
  model.forward(std::span(tokens).last(40), std::span(&slice, 1));
  const auto actual = model.logits(40);
  std::vector<TokenId> kept;
  for (int i = 0; i < 200; ++i)
    if (i / 32 != 1 && i / 32 != 3) kept.push_back(tokens[to_size(i)]);
  slice = model.append(fresh, 0, 136, false);
  model.forward(kept, std::span(&slice, 1));
  const auto all = model.logits(136);
  for (std::size_t i = 0; i < actual.size(); ++i)
    ASSERT_NEAR(actual[i], all[all.size() - actual.size() + i], 1e-4F) << i;
}

}  // namespace
}  // namespace memdecay
