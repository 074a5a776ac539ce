// CHECK: programmer errors end the process with the place and the broken condition.
//
// Never reachable from input: a bad file, flag or request is a Status, and "no room" is an
// optional. CHECK is always on; DCHECK only where NDEBUG is not defined. Any thread may call them.
#pragma once

namespace memdecay {

/// Prints "file:line: CHECK failed: condition" to stderr and aborts.
[[noreturn]] void check_failed(const char* file, int line, const char* condition);

}  // namespace memdecay

#define MEMDECAY_CHECK(condition) \
  ((condition) ? static_cast<void>(0) : ::memdecay::check_failed(__FILE__, __LINE__, #condition))

#ifdef NDEBUG
#define MEMDECAY_DCHECK(condition) static_cast<void>(0)
#else
#define MEMDECAY_DCHECK(condition) MEMDECAY_CHECK(condition)
#endif
