// MEMDECAY_UNROLL before a loop of constant length: the compiler must unroll it fully, so that
// arrays of vectors live in registers. MEMDECAY_ROLLED: a loop of two or four turns, which
// unrolling or vectors would only burden with their rest (and vectors with loads of what scalars
// have just stored). MEMDECAY_INLINE: always inlined, for the same reason. MEMDECAY_NOINLINE: a hot
// loop of its own, so that nothing around it competes for registers, and sanitizer builds do not
// take many minutes.
#pragma once

#include <cstddef>

#if defined(__clang__)
#define MEMDECAY_UNROLL _Pragma("clang loop unroll(full)")
#define MEMDECAY_ROLLED _Pragma("clang loop unroll(disable) vectorize(disable)")
#else
#define MEMDECAY_UNROLL _Pragma("GCC unroll 32")
#define MEMDECAY_ROLLED _Pragma("GCC unroll 1")
#endif
#define MEMDECAY_INLINE inline __attribute__((always_inline))
#define MEMDECAY_NOINLINE __attribute__((noinline))

namespace memdecay {

/// An int constant as an array size; g++ warns about the plain int in templates.
constexpr std::size_t extent(int count) {
  return static_cast<std::size_t>(count);
}

}  // namespace memdecay
