// LineQueue: cache lines to ask for while other work is done, a line of each page in turn: memory
// then works all the time, and serves several streams better than one.
//
// A hint alone: it changes no result. One thread's own; a step costs some 20 cycles of work that
// the caller counts, and a few instructions here. Included inside a target region.
#pragma once

namespace memdecay {
namespace {

struct LineQueue {
  const std::byte* const* pages = nullptr;
  int pages_shift = 0;  ///< log2 of the number of pages
  int next = 0, end = 0;
  int due = 0;    ///< lines that should have been asked for, in 256ths
  int share = 0;  ///< what one step of work adds to that

  /// The first `bytes` of `count` pages, a power of two, within so many steps.
  static LineQueue over(const std::byte* const* pages, int count, int bytes, int steps) {
    LineQueue lines;
    lines.pages = pages;
    while ((1 << lines.pages_shift) < count) ++lines.pages_shift;
    lines.end = (bytes + 63) / 64 * count;
    lines.share =
        static_cast<int>(256.0f * static_cast<float>(lines.end) / static_cast<float>(steps)) + 1;
    return lines;
  }

  /// At each step of work, which is some 20 cycles.
  MEMDECAY_INLINE void step(int steps = 1) {
    due += share * steps;
    const int stop = due >> 8 < end ? due >> 8 : end;
    const int mask = (1 << pages_shift) - 1;
    MEMDECAY_ROLLED
    for (; next < stop; ++next) {
      const std::byte* at = pages[next & mask] + std::ptrdiff_t{next >> pages_shift} * 64;
      _mm_prefetch(reinterpret_cast<const char*>(at), _MM_HINT_T0);
    }
  }
};

}  // namespace
}  // namespace memdecay
