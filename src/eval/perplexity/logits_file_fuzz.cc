// Fuzzes the reader of logits files: any bytes are read or refused, and never cost more memory than
// the file is long.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <random>
#include <string>

#include "eval/perplexity/logits_file.h"

namespace {

/// One file a process, overwritten for every input.
const std::string& scratch_path() {
  static const std::string path =
      (std::filesystem::temp_directory_path() /
       ("memdecay_logits_fuzz_" + std::to_string(std::random_device()())))
          .string();
  return path;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::FILE* file = std::fopen(scratch_path().c_str(), "wb");
  if (file == nullptr || std::fwrite(data, 1, size, file) != size || std::fclose(file) != 0)
    std::abort();
  auto reader = memdecay::LogitsFileReader::open(scratch_path());
  if (!reader.ok()) return 0;
  std::vector<float> log_probs(static_cast<std::size_t>(reader->header().vocab_size));
  const int records = reader->header().chunks * reader->header().scored_per_chunk();
  for (int i = 0; i < records && reader->next(log_probs).ok(); ++i) {
  }
  return 0;
}
