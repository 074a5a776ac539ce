// Loop and inlining directives of the matrix kernels. A register tile is an array that must never
// live in memory: every loop over it is unrolled whole, with either compiler.
#pragma once

#if defined(__clang__)
#define MEMDECAY_UNROLL _Pragma("clang loop unroll(full)")
#else
#define MEMDECAY_UNROLL _Pragma("GCC unroll 32")
#endif

#define MEMDECAY_INLINE inline __attribute__((always_inline))
