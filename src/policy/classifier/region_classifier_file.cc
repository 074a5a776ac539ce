#include "policy/classifier/region_classifier_file.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <type_traits>
#include <utility>

#include "core/text_hash.h"

namespace memdecay {
namespace {

static_assert(std::endian::native == std::endian::little, "the file is written as memory is");

constexpr std::string_view kMagic = "MDREGCLS";
constexpr std::uint32_t kVersion = 1;
constexpr std::uint32_t kLongestName = 256;
constexpr std::uint32_t kMostProbes = 1024;
constexpr std::int32_t kProbes = 16;

std::size_t size_of(std::int64_t count) {
  return static_cast<std::size_t>(count);
}

class Writer {
 public:
  template <typename T>
  void number(T value) {
    static_assert(std::is_trivially_copyable_v<T>);
    out_.append(reinterpret_cast<const char*>(&value), sizeof value);
  }
  template <typename T>
  void numbers(std::span<const T> values) {
    for (const T value : values) number(value);
  }
  void text(std::string_view value) { out_.append(value); }

  /// A matrix [rows][columns] as int8, column j times scale j.
  void matrix(std::span<const float> values, std::size_t columns) {
    std::vector<float> scales(columns);
    for (std::size_t i = 0; i < values.size(); ++i) {
      float& scale = scales[i % columns];
      scale = std::max(scale, std::abs(values[i]));
    }
    for (float& scale : scales) scale /= 127.0F;
    numbers<float>(scales);
    for (std::size_t i = 0; i < values.size(); ++i) {
      const float scale = scales[i % columns];
      number(static_cast<std::int8_t>(scale > 0 ? std::lround(values[i] / scale) : 0));
    }
  }
  std::string take() { return std::move(out_); }

 private:
  std::string out_;
};

/// Reads on; after the first failure everything is zero and ok() is false.
class Reader {
 public:
  explicit Reader(std::string_view bytes) : bytes_(bytes) {}

  bool ok() const { return ok_; }
  std::size_t left() const { return bytes_.size(); }
  std::string_view text(std::size_t count) {
    if (!ok_ || count > bytes_.size()) {
      ok_ = false;
      return {};
    }
    const std::string_view taken = bytes_.substr(0, count);
    bytes_.remove_prefix(count);
    return taken;
  }
  template <typename T>
  T number() {
    T value{};
    const std::string_view taken = text(sizeof value);
    if (ok_) std::memcpy(&value, taken.data(), sizeof value);
    return value;
  }
  /// REQUIRES: the caller knows that the count is no larger than the file warrants.
  template <typename T>
  std::vector<T> numbers(std::size_t count) {
    const std::string_view taken = text(count * sizeof(T));
    std::vector<T> values(ok_ ? count : 0);
    if (!values.empty()) std::memcpy(values.data(), taken.data(), taken.size());
    return values;
  }
  std::vector<float> matrix(std::size_t rows, std::size_t columns) {
    const std::vector<float> scales = numbers<float>(columns);
    const std::vector<std::int8_t> codes = numbers<std::int8_t>(rows * columns);
    std::vector<float> values(codes.size());
    for (std::size_t i = 0; i < codes.size(); ++i)
      values[i] = scales[i % columns] * static_cast<float>(codes[i]);
    return values;
  }

 private:
  std::string_view bytes_;
  bool ok_ = true;
};

Status corrupt(const char* what) {
  return make_status(StatusCode::kCorrupt, "the region classifier's file {}", what);
}

bool all_finite(std::span<const float> values) {
  return std::all_of(values.begin(), values.end(), [](float v) { return std::isfinite(v); });
}

std::size_t weight_bytes(const ClassifierShape& shape) {
  const std::size_t projected = size_of(shape.projected_width);
  const std::size_t hidden = size_of(shape.hidden_width);
  const std::size_t columns = projected + hidden + hidden + kRegionCount * (hidden + 1);
  return 4 * columns + size_of(shape.embedding_width) * projected + shape.inputs() * hidden;
}

}  // namespace

std::vector<TokenId> probe_tokens(std::int32_t vocabulary_size) {
  std::vector<TokenId> tokens;
  const std::int32_t count = std::min(kProbes, vocabulary_size);
  for (std::int64_t i = 0; i < count; ++i)
    tokens.push_back(static_cast<TokenId>(i * vocabulary_size / count));
  return tokens;
}

double probe_likeness(const ClassifierFile& file, std::span<const float> embeddings) {
  const std::size_t length = size_of(file.classifier.shape().embedding_width);
  const std::size_t width = size_of(file.classifier.shape().projected_width);
  const std::size_t probes = file.probe_tokens.size();
  if (probes == 0 || embeddings.size() != probes * length) return 0;
  std::vector<float> own(width);
  double sum = 0;
  for (std::size_t p = 0; p < probes; ++p) {
    file.classifier.project(embeddings.subspan(p * length, length), own);
    const std::span<const float> stored =
        std::span(file.probe_projections).subspan(p * width, width);
    double product = 0, own_square = 0, stored_square = 0;
    for (std::size_t k = 0; k < width; ++k) {
      product += double(own[k]) * double(stored[k]);
      own_square += double(own[k]) * double(own[k]);
      stored_square += double(stored[k]) * double(stored[k]);
    }
    const double sizes = std::sqrt(own_square * stored_square);
    if (sizes > 0) sum += product / sizes;
  }
  return sum / double(probes);
}

std::string serialize_classifier(const ClassifierFile& file) {
  const ClassifierShape& shape = file.classifier.shape();
  const ClassifierWeights& weights = file.classifier.weights();
  const std::string_view name = std::string_view(file.model).substr(0, kLongestName);
  Writer out;
  out.text(kMagic);
  out.number(kVersion);
  for (const std::int32_t value :
       {shape.embedding_width, shape.projected_width, shape.hidden_width, shape.near_tokens,
        shape.wide_tokens, shape.smooth_tokens, file.vocabulary_size})
    out.number(value);
  out.number(static_cast<std::uint32_t>(file.probe_tokens.size()));
  out.number(static_cast<std::uint32_t>(name.size()));
  out.text(name);
  out.numbers<TokenId>(file.probe_tokens);
  out.numbers<float>(file.probe_projections);
  out.matrix(weights.projection, size_of(shape.projected_width));
  out.matrix(weights.hidden, size_of(shape.hidden_width));
  out.numbers<float>(weights.hidden_bias);
  out.numbers<float>(weights.output);
  out.numbers<float>(weights.output_bias);
  std::string bytes = out.take();
  const std::uint64_t sum = text_hash(bytes);
  bytes.append(reinterpret_cast<const char*>(&sum), sizeof sum);
  return bytes;
}

Result<ClassifierFile> parse_classifier(std::string_view bytes) {
  if (!bytes.starts_with(kMagic)) return corrupt("does not begin with MDREGCLS");
  Reader in(bytes.substr(kMagic.size()));
  const auto version = in.number<std::uint32_t>();
  if (!in.ok() || version == 0) return corrupt("is cut off");
  if (version > kVersion) {
    return make_status(StatusCode::kUnsupported,
                       "the region classifier's file has version {}, and this build reads {}",
                       version, kVersion);
  }
  const auto sizes = in.numbers<std::int32_t>(7);
  const auto probes = in.number<std::uint32_t>();
  const auto name_bytes = in.number<std::uint32_t>();
  if (!in.ok()) return corrupt("is cut off");
  ClassifierShape shape;
  shape.embedding_width = sizes[0];
  shape.projected_width = sizes[1];
  shape.hidden_width = sizes[2];
  shape.near_tokens = sizes[3];
  shape.wide_tokens = sizes[4];
  shape.smooth_tokens = sizes[5];
  const std::int32_t vocabulary_size = sizes[6];
  if (!shape.is_sane() || vocabulary_size < 1 || probes > kMostProbes || name_bytes > kLongestName)
    return corrupt("has impossible sizes");
  const std::size_t probe_values = probes * size_of(shape.projected_width);
  const std::size_t rest = name_bytes + 4 * (probes + probe_values) + weight_bytes(shape) + 8;
  if (in.left() != rest) return corrupt("is not as long as its sizes demand");
  std::uint64_t sum = 0;
  std::memcpy(&sum, bytes.data() + bytes.size() - sizeof sum, sizeof sum);
  if (text_hash(bytes.substr(0, bytes.size() - sizeof sum)) != sum)
    return corrupt("is damaged: its checksum differs");
  std::string name(in.text(name_bytes));
  std::vector<TokenId> tokens = in.numbers<TokenId>(probes);
  std::vector<float> projections = in.numbers<float>(probe_values);
  ClassifierWeights weights;
  weights.projection = in.matrix(size_of(shape.embedding_width), size_of(shape.projected_width));
  weights.hidden = in.matrix(shape.inputs(), size_of(shape.hidden_width));
  weights.hidden_bias = in.numbers<float>(size_of(shape.hidden_width));
  weights.output = in.numbers<float>(size_of(shape.hidden_width) * kRegionCount);
  weights.output_bias = in.numbers<float>(kRegionCount);
  const bool in_vocabulary = std::all_of(tokens.begin(), tokens.end(), [&](TokenId token) {
    return token >= 0 && token < vocabulary_size;
  });
  const bool finite = all_finite(projections) && all_finite(weights.projection) &&
                      all_finite(weights.hidden) && all_finite(weights.hidden_bias) &&
                      all_finite(weights.output) && all_finite(weights.output_bias);
  if (!in.ok() || !in_vocabulary || !finite) return corrupt("holds what cannot be");
  return ClassifierFile{std::move(name), vocabulary_size, std::move(tokens), std::move(projections),
                        RegionClassifier(shape, std::move(weights))};
}

}  // namespace memdecay
