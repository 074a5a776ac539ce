// MemoryDenied: while one lives, the system gives this process no new memory.
//
// For tests of what happens then; they end it before they let gtest print. One at a time, one
// thread.
#pragma once

#include <gtest/gtest.h>
#include <sys/resource.h>

#include "core/check.h"

namespace memdecay {

class MemoryDenied {
 public:
#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define MEMDECAY_SANITIZED_FOR_TEST
#endif
#endif
#if defined(MEMDECAY_SANITIZED_FOR_TEST) || defined(__SANITIZE_ADDRESS__) || \
    defined(__SANITIZE_THREAD__)
  /// A sanitizer's allocator needs new memory at any time, so it is never denied there.
  static constexpr bool kPossible = false;
#else
  static constexpr bool kPossible = true;
#endif

  MemoryDenied() {
    MEMDECAY_CHECK(kPossible && getrlimit(RLIMIT_DATA, &before_) == 0);
    const rlimit none{4096, before_.rlim_max};
    MEMDECAY_CHECK(setrlimit(RLIMIT_DATA, &none) == 0);
  }
  ~MemoryDenied() {
    setrlimit(RLIMIT_DATA, &before_);
  }
  MemoryDenied(const MemoryDenied&) = delete;
  MemoryDenied& operator=(const MemoryDenied&) = delete;

 private:
  rlimit before_{};
};

}  // namespace memdecay
