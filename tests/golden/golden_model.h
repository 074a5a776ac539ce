// GoldenModel: a GGUF file, loaded and ready to be judged against a golden file.
//
// Runs every chunk from an empty cache, in passes of at most kPass tokens over pages that lie in
// one plain buffer per layer group: no pool, no policy, only the forward pass. One thread at a
// time.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "golden_file.h"
#include "model/transformer/loaded_model_for_test.h"

namespace memdecay {

class GoldenModel {
 public:
  static constexpr int kPass = 128;
  static constexpr int kLogitRows = 32;

  struct Options {
    Precision precision = Precision::kFast;
    const KernelTable* kernels = &best_kernels();
    int threads = 1;
    int page_tokens = 32;
  };

  /// Fails where the file cannot be opened; dies on one that is damaged.
  static Result<std::unique_ptr<GoldenModel>> open(const std::string& path, const Options& options);

  /// Evaluates the first `chunks` chunks and compares every scored position. Fails when the
  /// vocabularies differ. REQUIRES: 1 <= chunks <= golden.n_chunks().
  Result<GoldenSummary> judge(const GoldenFile& golden, int chunks);

 private:
  GoldenModel(GgufFile file, const Options& options);
  void lay_out_pages(int tokens);
  Status judge_chunk(const GoldenFile& golden, int chunk, GoldenSummary& summary);
  void judge_rows(const GoldenFile& golden, int chunk, int begin, int end, GoldenSummary& summary);

  LoadedModel model_;
  std::vector<std::vector<std::byte>> slabs_;  ///< by layer group
  std::vector<std::vector<KvPageRef>> pages_;
};

}  // namespace memdecay
