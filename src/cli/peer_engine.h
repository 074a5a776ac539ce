// Runs another engine's llama-bench, one case and one repetition at a time, so that its runs
// alternate with ours.
#pragma once

#include <string>

#include "core/status.h"
#include "eval/speed/speed.h"

namespace memdecay {

class PeerEngine {
 public:
  PeerEngine(std::string program, std::string model_path)
      : program_(std::move(program)), model_path_(std::move(model_path)) {}

  /// Tokens a second of one repetition (its own warm-up before it), flash attention on, fp16 keys
  /// and values.
  Result<double> repeat(const SpeedCase& speed_case, int threads) const;

 private:
  std::string program_;
  std::string model_path_;
};

}  // namespace memdecay
