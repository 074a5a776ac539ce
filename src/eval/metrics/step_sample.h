// StepSample: what one decode step took, as it was timed. A plain value.
#pragma once

#include <cstdint>

namespace memdecay {

/// Milliseconds of a decode step, its logits included, after so many of the assistant's turns.
struct StepSample {
  std::int32_t turn = 0;
  double ms = 0;
};

}  // namespace memdecay
