// Loops, inlining and array sizes of the matrix kernels. A register tile is an array that must
// never live in memory: every loop over it is unrolled whole, with either compiler.
#pragma once

#include <cstddef>

#if defined(__clang__)
#define MEMDECAY_UNROLL _Pragma("clang loop unroll(full)")
#define MEMDECAY_ROLLED _Pragma("clang loop unroll(disable)")
#else
#define MEMDECAY_UNROLL _Pragma("GCC unroll 32")
#define MEMDECAY_ROLLED _Pragma("GCC unroll 1")
#endif

#define MEMDECAY_INLINE inline __attribute__((always_inline))
/// For the loops around register tiles: one copy each, or sanitizer builds take many minutes.
#define MEMDECAY_NOINLINE __attribute__((noinline))

namespace memdecay {

/// An int constant as an array size; g++ warns about the plain int in templates.
constexpr std::size_t extent(int count) {
  return static_cast<std::size_t>(count);
}

}  // namespace memdecay
