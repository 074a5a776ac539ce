// MEMDECAY_UNROLL before a loop of constant length: the compiler must unroll it fully, so that
// arrays of vectors live in registers. MEMDECAY_INLINE: always inlined, for the same reason.
#pragma once

#if defined(__clang__)
#define MEMDECAY_UNROLL _Pragma("clang loop unroll(full)")
#else
#define MEMDECAY_UNROLL _Pragma("GCC unroll 32")
#endif
#define MEMDECAY_INLINE inline __attribute__((always_inline))
