// Opens a region whose functions are compiled for avx512. Include it after every other header, and
// close the region with target_end.h: standard library code stays outside, so none of it is
// compiled for a processor that may be absent. Deliberately without #pragma once.
#if defined(__clang__)
#pragma clang attribute push(                                                               \
    __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,avx512vnni,avx2,fma,f16c"))), \
    apply_to = function)
#else
#pragma GCC push_options
#pragma GCC target("avx512f,avx512bw,avx512dq,avx512vl,avx512vnni,avx2,fma,f16c")
#endif
