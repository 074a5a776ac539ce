// LineQueue: cache lines to ask for while other work is done, a line of each page at once: memory
// then works all the time, and serves several streams better than one. What is used first, a page's
// scales, comes first; within a stream lines go up, which memory serves better than down.
//
// A hint alone: it changes no result. One thread's own; a step costs some 20 cycles of work that
// the caller counts, and two instructions here where nothing is due. Included inside a target
// region.
#pragma once

namespace memdecay {
namespace {

struct LineQueue {
  const std::byte* const* pages = nullptr;
  int count = 0;   ///< of pages
  int offset = 0;  ///< of the line that is asked for next
  int first = 0;   ///< of the one that was asked for first
  int end = 0;     ///< behind the last
  int rest = 0;    ///< until a line of each page is due, in 256ths
  int share = 0;   ///< what one step of work takes from that; 0: all were asked for

  /// The first `bytes` of `count` pages, an even number, from the line with byte `first` on and
  /// then those before it, within so many steps.
  static LineQueue over(const std::byte* const* pages, int count, int first, int bytes,
                        float steps) {
    LineQueue lines;
    if (bytes <= 0) return lines;
    const int lines_of_page = (bytes + 63) / 64;
    lines.pages = pages;
    lines.count = count;
    lines.end = lines_of_page * 64;
    lines.first = lines.offset = first < bytes ? first / 64 * 64 : 0;
    lines.share = static_cast<int>(256.0f * static_cast<float>(lines_of_page) / steps) + 1;
    return lines;
  }

  MEMDECAY_INLINE void step(int steps = 1) {
    rest -= share * steps;
    if (__builtin_expect(static_cast<long>(rest < 0), 0) != 0) ask();
  }

 private:
  MEMDECAY_INLINE void ask() {
    MEMDECAY_ROLLED
    for (; rest < 0; rest += 256) {
      MEMDECAY_ROLLED
      for (int p = 0; p < count; p += 2) {
        _mm_prefetch(reinterpret_cast<const char*>(pages[p] + offset), _MM_HINT_T0);
        _mm_prefetch(reinterpret_cast<const char*>(pages[p + 1] + offset), _MM_HINT_T0);
      }
      offset += 64;
      if (offset >= end) offset = 0;
      if (offset != first) continue;
      share = 0;
      rest = 0;
      return;
    }
  }
};

}  // namespace
}  // namespace memdecay
