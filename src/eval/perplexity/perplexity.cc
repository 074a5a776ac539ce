#include "eval/perplexity/perplexity.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <optional>
#include <vector>

#include "core/log_softmax.h"
#include "eval/metrics/divergence.h"
#include "eval/metrics/log_probs.h"
#include "eval/perplexity/logits_file.h"

namespace memdecay {
namespace {

/// One measurement: walks the chunks and gathers what is asked for.
class Measurement {
 public:
  Measurement(Engine& engine, const PerplexityOptions& options)
      : engine_(engine), options_(options) {}

  Status open(std::span<const TokenId> text);
  Status run();
  PerplexityResult result() const;

 private:
  Status open_base();
  Status cut_text(std::span<const TokenId> text);
  Status measure_chunk(int chunk);
  Status score(std::span<const float> logits, TokenId next);

  Engine& engine_;
  const PerplexityOptions& options_;
  LogitsFileHeader header_;
  std::optional<LogitsFileReader> base_;
  std::optional<LogitsFileWriter> save_;
  Divergence divergence_;
  std::vector<double> log_probs_;
  std::vector<float> base_log_probs_;
  double sum_ = 0, sum_of_squares_ = 0;
  std::int64_t scored_ = 0;
};

Status Measurement::open(std::span<const TokenId> text) {
  std::error_code error;
  if (!options_.base_file.empty() &&
      std::filesystem::equivalent(options_.base_file, options_.save_file, error)) {
    return make_status(StatusCode::kInvalidArgument,
                       "{} cannot be read as the base and be overwritten at once",
                       options_.base_file);
  }
  MEMDECAY_RETURN_IF_ERROR(options_.base_file.empty() ? cut_text(text) : open_base());
  if (options_.chunks > 0) header_.chunks = std::min(header_.chunks, options_.chunks);
  header_.tokens.resize(static_cast<std::size_t>(header_.chunks) *
                        static_cast<std::size_t>(header_.context));
  if (header_.context > engine_.context_tokens()) {
    return make_status(StatusCode::kInvalidArgument,
                       "chunks of {} tokens do not fit the context of {}", header_.context,
                       engine_.context_tokens());
  }
  if (!options_.save_file.empty()) {
    MEMDECAY_ASSIGN_OR_RETURN(save_, LogitsFileWriter::create(options_.save_file, header_));
  }
  log_probs_.resize(static_cast<std::size_t>(header_.vocab_size));
  base_log_probs_.resize(log_probs_.size());
  return Status();
}

Status Measurement::open_base() {
  MEMDECAY_ASSIGN_OR_RETURN(base_, LogitsFileReader::open(options_.base_file));
  header_ = base_->header();
  const int vocab_size = engine_.model().config().vocab_size;
  if (header_.vocab_size == vocab_size) return Status();
  return make_status(StatusCode::kInvalidArgument,
                     "{} is of another model: its vocabulary has {} pieces, this one {}",
                     options_.base_file, header_.vocab_size, vocab_size);
}

Status Measurement::cut_text(std::span<const TokenId> text) {
  if (options_.context < 4)
    return Status(StatusCode::kInvalidArgument, "a chunk needs at least 4 tokens");
  header_.context = options_.context;
  header_.vocab_size = engine_.model().config().vocab_size;
  header_.chunks = static_cast<int>(text.size() / static_cast<std::size_t>(options_.context));
  if (header_.chunks == 0) {
    return make_status(StatusCode::kInvalidArgument,
                       "the text has {} tokens, but one chunk needs {}", text.size(),
                       options_.context);
  }
  header_.tokens.assign(text.begin(), text.end());
  return Status();
}

Status Measurement::run() {
  for (int chunk = 0; chunk < header_.chunks; ++chunk) {
    MEMDECAY_RETURN_IF_ERROR(measure_chunk(chunk));
    if (options_.on_progress) options_.on_progress(chunk + 1, header_.chunks);
  }
  return save_ ? save_->close() : Status();
}

Status Measurement::measure_chunk(int chunk) {
  const auto context = static_cast<std::size_t>(header_.context);
  const auto begin = header_.tokens.begin() +
                     static_cast<std::ptrdiff_t>(static_cast<std::size_t>(chunk) * context);
  std::vector<TokenId> tokens(begin, begin + header_.context);
  const std::optional<TokenId> bos = engine_.model().leading_token();
  if (bos) tokens[0] = *bos;
  MEMDECAY_ASSIGN_OR_RETURN(const std::unique_ptr<Session> session, engine_.open_session());
  Status failure;
  const auto on_logits = [&](int position, std::span<const float> logits) {
    if (position + 1 >= header_.context || !failure.ok()) return;
    failure = score(logits, tokens[static_cast<std::size_t>(position) + 1]);
  };
  MEMDECAY_RETURN_IF_ERROR(engine_.extend(*session, tokens, header_.first_scored(), on_logits));
  return failure;
}

Status Measurement::score(std::span<const float> logits, TokenId next) {
  log_softmax(logits, log_probs_);
  const double surprise = -log_probs_[static_cast<std::size_t>(next)];
  sum_ += surprise;
  sum_of_squares_ += surprise * surprise;
  ++scored_;
  if (base_) {
    MEMDECAY_RETURN_IF_ERROR(base_->next(base_log_probs_));
    divergence_.add(base_log_probs_, log_probs_, kLogProbFloor);
  }
  return save_ ? save_->append(logits) : Status();
}

PerplexityResult Measurement::result() const {
  PerplexityResult result;
  const auto count = static_cast<double>(scored_);
  const double mean = sum_ / count;
  const double variance = std::max(0.0, sum_of_squares_ / count - mean * mean);
  result.perplexity = std::exp(mean);
  result.perplexity_error =
      scored_ > 1 ? std::sqrt(variance / (count - 1)) * result.perplexity : 0.0;
  result.scored_tokens = scored_;
  result.chunks = header_.chunks;
  if (base_) {
    result.comparison = {divergence_.mean_kl(), divergence_.quantile_kl(0.99), divergence_.max_kl(),
                         divergence_.same_top()};
  }
  return result;
}

}  // namespace

Result<PerplexityResult> measure_perplexity(Engine& engine, std::span<const TokenId> text,
                                            const PerplexityOptions& options) {
  Measurement measurement(engine, options);
  MEMDECAY_RETURN_IF_ERROR(measurement.open(text));
  MEMDECAY_RETURN_IF_ERROR(measurement.run());
  return measurement.result();
}

}  // namespace memdecay
