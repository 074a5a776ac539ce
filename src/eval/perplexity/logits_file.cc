#include "eval/perplexity/logits_file.h"

#include <array>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <filesystem>

#include "eval/metrics/log_probs.h"

namespace memdecay {
namespace {

constexpr std::array<char, 8> kMagic = {'_', 'l', 'o', 'g', 'i', 't', 's', '_'};
constexpr std::uint64_t kHeaderBytes = kMagic.size() + 3 * sizeof(std::int32_t);

template <typename T>
void write(std::ofstream& stream, const T* values, std::size_t count) {
  stream.write(reinterpret_cast<const char*>(values),
               static_cast<std::streamsize>(count * sizeof(T)));
}

template <typename T>
bool read(std::ifstream& stream, T* values, std::size_t count) {
  stream.read(reinterpret_cast<char*>(values), static_cast<std::streamsize>(count * sizeof(T)));
  return stream.good();
}

}  // namespace

Result<LogitsFileWriter> LogitsFileWriter::create(const std::string& path,
                                                  const LogitsFileHeader& header) {
  std::ofstream stream(path, std::ios::binary | std::ios::trunc);
  if (!stream)
    return make_status(StatusCode::kIoError, "cannot write {}: {}", path, std::strerror(errno));
  const std::array<std::int32_t, 3> counts = {header.context, header.vocab_size, header.chunks};
  write(stream, kMagic.data(), kMagic.size());
  write(stream, counts.data(), counts.size());
  write(stream, header.tokens.data(), header.tokens.size());
  LogitsFileWriter writer(path, std::move(stream));
  writer.record_.resize(log_prob_record_words(header.vocab_size));
  if (!writer.stream_) return writer.failure();
  return writer;
}

Status LogitsFileWriter::append(std::span<const float> logits) {
  encode_log_probs(logits, record_);
  write(stream_, record_.data(), record_.size());
  return stream_ ? Status() : failure();
}

Status LogitsFileWriter::close() {
  stream_.close();
  return stream_ ? Status() : failure();
}

Status LogitsFileWriter::failure() const {
  return make_status(StatusCode::kIoError, "cannot write {}: the disk may be full", path_);
}

Result<LogitsFileReader> LogitsFileReader::open(const std::string& path) {
  std::error_code error;  // asked before opening: a pipe without a writer would never open
  if (std::filesystem::exists(path, error) && !std::filesystem::is_regular_file(path, error))
    return make_status(StatusCode::kInvalidArgument, "{} is no regular file", path);
  std::ifstream stream(path, std::ios::binary);
  if (!stream)
    return make_status(StatusCode::kNotFound, "cannot read {}: {}", path, std::strerror(errno));
  LogitsFileReader reader(path, std::move(stream));
  MEMDECAY_RETURN_IF_ERROR(reader.read_header());
  return reader;
}

Status LogitsFileReader::read_header() {
  std::error_code error;
  const std::uint64_t size = std::filesystem::file_size(path_, error);
  std::array<char, 8> magic{};
  std::array<std::int32_t, 3> counts{};
  if (error || !read(stream_, magic.data(), magic.size()) || magic != kMagic ||
      !read(stream_, counts.data(), counts.size())) {
    return make_status(StatusCode::kCorrupt,
                       "{} is no logits file: it does not begin with _logits_", path_);
  }
  header_.context = counts[0];
  header_.vocab_size = counts[1];
  header_.chunks = counts[2];
  const bool sane = counts[0] >= 4 && counts[1] >= 1 && counts[2] >= 1;
  const std::uint64_t tokens = sane ? std::uint64_t(counts[0]) * std::uint64_t(counts[2]) : 0;
  const std::uint64_t left = size - kHeaderBytes;
  if (!sane || tokens > left / sizeof(TokenId)) {
    return make_status(StatusCode::kCorrupt,
                       "{}: impossible counts (context {}, vocabulary {}, chunks {})", path_,
                       counts[0], counts[1], counts[2]);
  }
  const std::uint64_t records =
      std::uint64_t(header_.chunks) * std::uint64_t(header_.scored_per_chunk());
  const std::uint64_t record_bytes = 2 * log_prob_record_words(header_.vocab_size);
  const std::uint64_t rest = left - tokens * sizeof(TokenId);
  if (rest / record_bytes > records ||
      (rest / record_bytes == records && rest % record_bytes != 0)) {
    return make_status(StatusCode::kCorrupt, "{} is longer than its {} scored positions", path_,
                       records);
  }
  if (rest / record_bytes < records) {
    return make_status(StatusCode::kCorrupt, "{} is cut off: {} of {} scored positions are there",
                       path_, rest / record_bytes, records);
  }
  header_.tokens.resize(tokens);
  if (!read(stream_, header_.tokens.data(), header_.tokens.size())) {
    return make_status(StatusCode::kIoError, "cannot read {}", path_);
  }
  for (const TokenId token : header_.tokens) {
    if (token < 0 || token >= header_.vocab_size) {
      return make_status(StatusCode::kCorrupt, "{}: token {} is outside its vocabulary of {}",
                         path_, token, header_.vocab_size);
    }
  }
  record_.resize(log_prob_record_words(header_.vocab_size));
  return Status();
}

Status LogitsFileReader::next(std::span<float> log_probs) {
  if (!read(stream_, record_.data(), record_.size())) {
    return make_status(StatusCode::kIoError, "cannot read the next position of {}", path_);
  }
  float header[2];
  std::memcpy(header, record_.data(), sizeof header);
  if (!std::isfinite(header[0]) || !std::isfinite(header[1]) || header[0] < 0.0F) {
    return make_status(StatusCode::kCorrupt, "{}: a position has scale {} and minimum {}", path_,
                       header[0], header[1]);
  }
  decode_log_probs(record_, log_probs);
  return Status();
}

}  // namespace memdecay
