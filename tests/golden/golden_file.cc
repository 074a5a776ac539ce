#include "golden_file.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <fstream>
#include <iterator>
#include <limits>
#include <numeric>

namespace memdecay {
namespace {

constexpr std::string_view kMagic = "MDGOLD1\n";
constexpr std::uint32_t kMostVocabulary = 1U << 20;
constexpr std::uint32_t kMostTokens = 1U << 24;

// Takes little-endian arrays off the front of `rest`.
class Cursor {
 public:
  explicit Cursor(std::span<const std::byte> content) : rest_(content) {}

  template <typename T>
  bool take(std::vector<T>& out, std::size_t count) {
    if (count > rest_.size() / sizeof(T)) return false;
    out.resize(count);
    if (count > 0) std::memcpy(out.data(), rest_.data(), count * sizeof(T));
    rest_ = rest_.subspan(count * sizeof(T));
    return true;
  }
  bool take_bytes(std::span<std::byte> out) {
    if (out.size() > rest_.size()) return false;
    std::copy_n(rest_.begin(), out.size(), out.begin());
    rest_ = rest_.subspan(out.size());
    return true;
  }
  bool at_end() const { return rest_.empty(); }

 private:
  std::span<const std::byte> rest_;
};

Status cut_short() {
  return make_status(StatusCode::kCorrupt, "the golden file is cut short");
}

}  // namespace

Result<GoldenFile> GoldenFile::read(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return make_status(StatusCode::kNotFound, "cannot open {}", path);
  const std::vector<char> content{std::istreambuf_iterator<char>(file), {}};
  GoldenFile golden;
  const Status parsed = golden.parse(std::as_bytes(std::span(content)));
  if (!parsed.ok()) return parsed.with_context(path);
  return golden;
}

Status GoldenFile::parse(std::span<const std::byte> content) {
  Cursor cursor(content);
  std::array<std::byte, kMagic.size()> magic{};
  if (!cursor.take_bytes(magic) || std::memcmp(magic.data(), kMagic.data(), kMagic.size()) != 0) {
    return make_status(StatusCode::kCorrupt, "this is not a golden file");
  }
  std::vector<std::uint32_t> header;
  if (!cursor.take_bytes(model_sha256_) || !cursor.take(header, 5)) return cut_short();
  const std::uint32_t n_ctx = header[0];
  const std::uint32_t n_vocab = header[1];
  const std::uint32_t n_chunks = header[2];
  const std::uint32_t first = header[3];
  if (n_ctx < 2 || n_ctx > kMostTokens || first > n_ctx - 2 || n_vocab == 0 ||
      n_vocab > kMostVocabulary || n_chunks == 0 || n_chunks > kMostTokens / n_ctx) {
    return make_status(StatusCode::kCorrupt, "the golden file's counts make no sense");
  }
  n_ctx_ = static_cast<int>(n_ctx);
  n_vocab_ = static_cast<int>(n_vocab);
  n_chunks_ = static_cast<int>(n_chunks);
  first_scored_ = static_cast<int>(first);

  const std::size_t n_scored = std::size_t{n_chunks} * (n_ctx - 1 - first);
  std::vector<std::uint16_t> counts;
  if (!cursor.take(tokens_, std::size_t{n_chunks} * n_ctx) || !cursor.take(counts, n_scored) ||
      !cursor.take(target_log_prob_, n_scored) || !cursor.take(rest_log_prob_, n_scored)) {
    return cut_short();
  }
  starts_.assign(1, 0);
  for (const std::uint16_t count : counts) starts_.push_back(starts_.back() + count);
  const bool lists_all =
      std::all_of(counts.begin(), counts.end(), [&](auto count) { return count == n_vocab; });
  if (lists_all) {
    for (std::size_t i = 0; i < starts_.back(); ++i) {
      ids_.push_back(static_cast<std::uint32_t>(i % n_vocab));
    }
  } else if (!cursor.take(ids_, starts_.back())) {
    return cut_short();
  }
  if (!cursor.take(log_probs_, starts_.back())) return cut_short();
  const auto in_range = [&](auto id) { return static_cast<std::uint32_t>(id) < n_vocab; };
  if (header[4] != starts_.back() || !cursor.at_end() ||
      !std::all_of(ids_.begin(), ids_.end(), in_range) ||
      !std::all_of(tokens_.begin(), tokens_.end(), in_range)) {
    return make_status(StatusCode::kCorrupt, "the golden file contradicts itself");
  }
  return {};
}

std::span<const std::int32_t> GoldenFile::chunk_tokens(int chunk) const {
  MEMDECAY_CHECK(chunk >= 0 && chunk < n_chunks_);
  const auto length = static_cast<std::size_t>(n_ctx_);
  return std::span(tokens_).subspan(static_cast<std::size_t>(chunk) * length, length);
}

GoldenVerdict GoldenFile::judge(int chunk, int offset, std::span<const float> logits) const {
  MEMDECAY_CHECK(offset >= 0 && offset < scored_per_chunk());
  MEMDECAY_CHECK(logits.size() == static_cast<std::size_t>(n_vocab_));
  const auto position = static_cast<std::size_t>(chunk * scored_per_chunk() + offset);
  const std::size_t start = starts_[position];
  const std::size_t count = starts_[position + 1] - start;
  const auto ids = std::span(ids_).subspan(start, count);
  const auto log_p = std::span(log_probs_).subspan(start, count);

  const auto best = std::max_element(logits.begin(), logits.end());
  const double highest = static_cast<double>(*best);
  std::vector<double> weight(logits.size());
  std::transform(logits.begin(), logits.end(), weight.begin(),
                 [&](float logit) { return std::exp(static_cast<double>(logit) - highest); });
  const double total = std::accumulate(weight.begin(), weight.end(), 0.0);
  const auto log_q = [&](std::size_t id) {
    return static_cast<double>(logits[id]) - highest - std::log(total);
  };

  GoldenVerdict verdict;
  for (std::size_t i = 0; i < count; ++i) {
    const auto reference = static_cast<double>(log_p[i]);
    const double difference = reference - log_q(ids[i]);
    verdict.kl += std::exp(reference) * difference;
    verdict.largest_difference = std::max(verdict.largest_difference, std::abs(difference));
    weight[ids[i]] = 0;  // what stays is the bucket of the rest
  }
  const auto rest = static_cast<double>(rest_log_prob_[position]);
  if (std::isfinite(rest)) {
    const double others = std::accumulate(weight.begin(), weight.end(), 0.0);
    verdict.kl += std::exp(rest) * (rest - std::log(others / total));
  }
  const auto first_choice = std::max_element(log_p.begin(), log_p.end()) - log_p.begin();
  verdict.same_top = ids[static_cast<std::size_t>(first_choice)] ==
                     static_cast<std::uint32_t>(best - logits.begin());
  const auto next = static_cast<std::size_t>(first_scored_ + offset + 1);
  verdict.target_log_prob = log_q(static_cast<std::size_t>(chunk_tokens(chunk)[next]));
  return verdict;
}

double GoldenFile::reference_perplexity() const {
  double sum = 0;
  for (const float value : target_log_prob_) sum += static_cast<double>(value);
  return std::exp(-sum / static_cast<double>(target_log_prob_.size()));
}

void GoldenSummary::add(const GoldenVerdict& verdict) {
  kls_.push_back(verdict.kl);
  same_top_ += verdict.same_top ? 1 : 0;
  log_prob_sum_ += verdict.target_log_prob;
  largest_difference_ = std::max(largest_difference_, verdict.largest_difference);
}

double GoldenSummary::mean_kl() const {
  MEMDECAY_CHECK(!kls_.empty());
  return std::accumulate(kls_.begin(), kls_.end(), 0.0) / static_cast<double>(kls_.size());
}

double GoldenSummary::kl_quantile(double fraction) const {
  MEMDECAY_CHECK(!kls_.empty());
  std::vector<double> sorted = kls_;
  std::sort(sorted.begin(), sorted.end());
  const double place = fraction * static_cast<double>(sorted.size() - 1);
  const auto below = static_cast<std::size_t>(place);
  const std::size_t above = std::min(below + 1, sorted.size() - 1);
  const double share = place - static_cast<double>(below);
  return (1 - share) * sorted[below] + share * sorted[above];
}

double GoldenSummary::same_top() const {
  MEMDECAY_CHECK(!kls_.empty());
  return static_cast<double>(same_top_) / static_cast<double>(kls_.size());
}

double GoldenSummary::perplexity() const {
  MEMDECAY_CHECK(!kls_.empty());
  return std::exp(-log_prob_sum_ / static_cast<double>(kls_.size()));
}

}  // namespace memdecay
