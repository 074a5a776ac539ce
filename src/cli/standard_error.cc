#include "cli/standard_error.h"

#include <fmt/format.h>

#include <cmath>
#include <cstdio>

#include "core/steady_clock.h"
#include "sys/standard_streams.h"

namespace memdecay {
namespace {

constexpr double kTerminalSeconds = 0.1;
constexpr double kLogSeconds = 2;
constexpr double kLeastShare = 0.01;  // less says too little of the time that is left
// Goes back to the line's begin, and clears what is left of it.
constexpr const char* kLineBegin = "\r";
constexpr const char* kClearRest = "\033[K";

/// Whether the terminal's cursor is behind a Progress line that will be written anew.
bool& progress_line_is_open() {
  static bool is_open = false;
  return is_open;
}

double seconds_between(std::int64_t begin_ns, std::int64_t end_ns) {
  return static_cast<double>(end_ns - begin_ns) / 1e9;
}

std::string time_left(double share, double seconds) {
  if (share < kLeastShare || share >= 1) return "";
  const long left = std::lround(seconds / share - seconds);
  return fmt::format(", {}:{:02} left", left / 60, left % 60);
}

}  // namespace

void clear_progress_line() {
  if (!progress_line_is_open()) return;
  std::fprintf(stderr, "%s%s", kLineBegin, kClearRest);
  progress_line_is_open() = false;
}

void print_note(const std::string& note) {
  clear_progress_line();
  std::fprintf(stderr, "note: %s\n", note.c_str());
}

void print_aside(const std::string& text) {
  const bool dim = is_terminal(stderr);
  std::fprintf(stderr, "%s[%s]%s\n", dim ? "\033[2m" : "", text.c_str(), dim ? "\033[0m" : "");
}

Progress::Progress() : begin_ns_(steady_now_ns()), told_ns_(begin_ns_) {}

void Progress::tell(const std::string& what, double share) {
  const bool terminal = is_terminal(stderr);
  const std::int64_t now_ns = steady_now_ns();
  const bool ends = share >= 1;
  if (!ends && seconds_between(told_ns_, now_ns) < (terminal ? kTerminalSeconds : kLogSeconds))
    return;
  told_ns_ = now_ns;
  std::fprintf(stderr, "%s%s: %.0f %%%s%s", terminal ? kLineBegin : "", what.c_str(), 100 * share,
               time_left(share, seconds_between(begin_ns_, now_ns)).c_str(),
               terminal ? kClearRest : "\n");
  if (terminal && ends) std::fprintf(stderr, "\n");
  progress_line_is_open() = terminal && !ends;
}

}  // namespace memdecay
