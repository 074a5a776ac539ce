// LogitsFile: the --kl-divergence-base / --save-all-logits file of llama-perplexity
// (docs/formats/kl_base.md), so that either program can judge the other.
//
// Layout: "_logits_", int32 n_ctx, n_vocab, n_chunk, int32 tokens[n_chunk * n_ctx], then records
// (log_probs.h), one per scored position: n_ctx - 1 - n_ctx / 2 a chunk. Little-endian. The reader
// checks every count against the file's size before it is used. One thread.
#pragma once

#include <cstdint>
#include <fstream>
#include <span>
#include <string>
#include <vector>

#include "core/id.h"
#include "core/status.h"

namespace memdecay {

struct LogitsFileHeader {
  int context = 0;  ///< tokens a chunk
  int vocab_size = 0;
  int chunks = 0;
  std::vector<TokenId> tokens;  ///< [chunks * context]

  /// Position within a chunk of the first scored prediction.
  int first_scored() const { return context / 2; }
  int scored_per_chunk() const { return context - 1 - first_scored(); }
};

class LogitsFileWriter {
 public:
  static Result<LogitsFileWriter> create(const std::string& path, const LogitsFileHeader& header);
  /// The next scored position. kIoError when the disk is full.
  Status append(std::span<const float> logits);
  /// Flushes; the file is complete only after this returned OK.
  Status close();

 private:
  LogitsFileWriter(std::string path, std::ofstream stream)
      : path_(std::move(path)), stream_(std::move(stream)) {}
  Status failure() const;
  std::string path_;
  std::ofstream stream_;
  std::vector<std::uint16_t> record_;
};

class LogitsFileReader {
 public:
  /// kCorrupt for a wrong magic, impossible counts, or a size that does not fit them.
  static Result<LogitsFileReader> open(const std::string& path);
  const LogitsFileHeader& header() const { return header_; }
  /// Log-probabilities of the next scored position into [vocab_size]. kCorrupt for a record whose
  /// numbers are not finite.
  Status next(std::span<float> log_probs);

 private:
  LogitsFileReader(std::string path, std::ifstream stream)
      : path_(std::move(path)), stream_(std::move(stream)) {}
  Status read_header();
  std::string path_;
  std::ifstream stream_;
  LogitsFileHeader header_;
  std::vector<std::uint16_t> record_;
};

}  // namespace memdecay
