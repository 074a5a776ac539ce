// Opens a region whose functions are compiled for avx2. Include it after every other header, and
// close the region with target_end.h: standard library code stays outside, so none of it is
// compiled for a processor that may be absent. Deliberately without #pragma once.
#if defined(__clang__)
#pragma clang attribute push(__attribute__((target("avx2,fma,f16c"))), apply_to = function)
#else
#pragma GCC push_options
#pragma GCC target("avx2,fma,f16c")
#endif
