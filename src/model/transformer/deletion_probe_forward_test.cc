// The probe within the forward pass: against the naive pass with a page's tokens really deleted
// from each layer's attention, and what it must not change.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "model/transformer/paged_model_for_test.h"
#include "model/transformer/random_model_for_test.h"
#include "model/transformer/reference_forward_for_test.h"

namespace memdecay {
namespace {

double length(const double* x, std::size_t n) {
  double square = 0;
  for (std::size_t i = 0; i < n; ++i) square += x[i] * x[i];
  return std::sqrt(square);
}

/// Deletes each page's tokens from the attention of the query at one position, in every layer
/// without a window.
class NaiveEvidence {
 public:
  NaiveEvidence(PagedModel& model, std::span<const TokenId> tokens, std::size_t position,
                std::span<const KvPageRef> pages)
      : config_(model.config()), position_(position), pages_(pages), evidence_(pages.size()) {
    ReferenceForward reference(model.file(), config_);
    reference.on_attention = [&](const ReferenceForward::AttentionInput& input) {
      if (input.position == position_ && !config_.is_sliding(input.layer)) look(reference, input);
    };
    reference.logits(tokens);
    for (PageAttention& page : evidence_) {
      page.mean_error /= static_cast<float>(heads_);
      page.mean_mass /= static_cast<float>(heads_);
    }
  }

  const std::vector<PageAttention>& pages() const { return evidence_; }
  int heads() const { return heads_; }

 private:
  void look(const ReferenceForward& reference, const ReferenceForward::AttentionInput& input) {
    const auto dim = to_size(config_.head_dim);
    const ReferenceForward::Vector all = reference.attend(input);
    heads_ += config_.heads;
    for (std::size_t page = 0; page < pages_.size(); ++page) {
      const auto begin = to_size(pages_[page].first_position);
      const ReferenceForward::Tokens tokens{begin, begin + to_size(pages_[page].filled)};
      ReferenceForward::Vector apart = reference.attend(input, tokens);
      for (std::size_t i = 0; i < all.size(); ++i) apart[i] -= all[i];
      // The share of a page is what comes out where its values are 1 and all others 0.
      std::vector<ReferenceForward::Vector> marks(input.values.size(),
                                                  ReferenceForward::Vector(input.values[0].size()));
      for (std::size_t t = tokens.begin; t < tokens.end; ++t)
        std::fill(marks[t].begin(), marks[t].end(), 1.0);
      const ReferenceForward::Vector share =
          reference.attend({input.layer, input.position, input.q, input.keys, marks});
      for (std::size_t head = 0; head < all.size(); head += dim) {
        const double error = std::min(static_cast<double>(kMaxDeletionError),
                                      length(&apart[head], dim) / length(&all[head], dim));
        evidence_[page].mean_error += static_cast<float>(error);
        evidence_[page].max_error = std::max(evidence_[page].max_error, static_cast<float>(error));
        evidence_[page].mean_mass += static_cast<float>(share[head]);
      }
    }
  }

  const ModelConfig& config_;
  std::size_t position_;
  std::span<const KvPageRef> pages_;
  std::vector<PageAttention> evidence_;
  int heads_ = 0;
};

class DeletionProbeForwardTest : public testing::TestWithParam<const char*> {
 protected:
  std::vector<std::byte> model_ = random_model(GetParam(), shape(), 21);

  static RandomModelShape shape() {
    RandomModelShape shape;
    if (std::string_view(GetParam()) == "gemma3") shape.layers = 13;  // two of them see all
    return shape;
  }
};

// Chunks that seal their last page partly filled, then a decode step into a page of its own.
TEST_P(DeletionProbeForwardTest, EqualsDeletingPagesFromTheNaivePass) {
  PagedModel model(model_, Precision::kExact, 2);
  const auto tokens = random_tokens(150, 22);
  struct Pass {
    int rows, row;
    bool seal;
  };
  const Pass passes[] = {
      {40, -1, false}, {13, 4, true}, {70, 33, true}, {26, -1, false}, {1, -1, true}};
  PagedModel::Sequence sequence;
  for (const Pass& pass : passes) {
    const auto begin = to_size(sequence.size);
    SequenceSlice slice = model.append(sequence, 0, pass.rows, pass.seal);
    std::vector<PageAttention> actual(slice.views[0].pages.size());
    PageProbe probe{pass.row, 1, 0, actual};
    slice.probe = &probe;
    model.forward(std::span(tokens).subspan(begin, to_size(pass.rows)), std::span(&slice, 1));
    const int row = pass.row < 0 ? pass.rows - 1 : pass.row;
    const NaiveEvidence expected(model, std::span(tokens).first(to_size(sequence.size)),
                                 begin + to_size(row), sequence.refs[0]);
    EXPECT_EQ(probe.heads, expected.heads());
    for (std::size_t page = 0; page < actual.size(); ++page) {
      const PageAttention& truth = expected.pages()[page];
      EXPECT_NEAR(actual[page].mean_error, truth.mean_error, 1e-6F + 1e-3F * truth.mean_error);
      EXPECT_NEAR(actual[page].max_error, truth.max_error, 1e-6F + 1e-3F * truth.max_error);
      EXPECT_NEAR(actual[page].mean_mass, truth.mean_mass, 1e-6F + 1e-3F * truth.mean_mass);
    }
  }
  EXPECT_EQ(sequence.size, 150);
}

/// One run of three sequences in mixed passes; every bit that comes out of it.
struct MixedRun {
  std::vector<float> logits;
  std::vector<std::vector<std::byte>> pages;  // of all sequences, K and V
  std::vector<float> evidence;
};

MixedRun mixed_run(std::span<const std::byte> bytes, int threads, bool probing) {
  PagedModel model(bytes, Precision::kFast, threads);
  PagedModel::Sequence sequences[3];
  MixedRun run;
  const int rows_of[3][4] = {{90, 1, 1, 1}, {17, 30, 1, 1}, {1, 1, 100, 1}};
  for (int step = 0; step < 4; ++step) {
    std::vector<SequenceSlice> slices;
    std::vector<PageAttention> evidence[3];
    PageProbe probes[3];
    int rows = 0;
    for (int number = 0; number < 3; ++number) {
      const int more = rows_of[number][step];
      slices.push_back(model.append(sequences[number], rows, more, step == 1));
      rows += more;
      if (!probing || number == step % 3) continue;  // one of them does not ask
      evidence[number].resize(slices.back().views[0].pages.size());
      probes[number] = {-1, 2, (number + step) % 2, evidence[number]};
      slices.back().probe = &probes[number];
    }
    model.forward(random_tokens(rows, 30 + static_cast<std::uint32_t>(step)), slices);
    for (const auto& pages : evidence) {
      for (const PageAttention& page : pages)
        run.evidence.insert(run.evidence.end(), {page.mean_error, page.max_error, page.mean_mass});
    }
    const auto logits = model.logits(std::min(rows, 64));
    run.logits.insert(run.logits.end(), logits.begin(), logits.end());
  }
  for (const auto& sequence : sequences) {
    for (const auto& slabs : sequence.slabs)
      run.pages.insert(run.pages.end(), slabs.begin(), slabs.end());
  }
  return run;
}

TEST_P(DeletionProbeForwardTest, ChangesNoBitAndItsOwnDependOnNoThread) {
  const MixedRun without = mixed_run(model_, 1, false), with = mixed_run(model_, 1, true);
  EXPECT_EQ(with.logits, without.logits);
  EXPECT_EQ(with.pages, without.pages);
  EXPECT_FALSE(with.evidence.empty());
  for (const int threads : {2, 3}) {
    const MixedRun more = mixed_run(model_, threads, true);
    EXPECT_EQ(more.logits, without.logits);
    EXPECT_EQ(more.pages, without.pages);
    EXPECT_EQ(more.evidence, with.evidence);
  }
}

INSTANTIATE_TEST_SUITE_P(Architectures, DeletionProbeForwardTest,
                         testing::Values("llama", "qwen2", "qwen3", "gemma3"),
                         [](const auto& tested) { return std::string(tested.param); });

}  // namespace
}  // namespace memdecay
