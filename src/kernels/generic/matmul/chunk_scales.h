// ChunkScales: the scales and mins of one chunk of a panel, 16 rows of each sub-block.
//
// Included inside a target region.
#pragma once

#include "kernels/generic/matmul/weight_codes.h"

namespace memdecay {
namespace {

template <class T>
struct ChunkScales {
  static constexpr int kCount = T::kChunkInputs / kActivationBlock * T::kSubBlocks;
  Rows<typename T::Lanes> s[extent(kCount)];
  Rows<typename T::Lanes> m[extent(kCount)];
};

}  // namespace
}  // namespace memdecay
