// What a command says beside its results, on standard error: notes, and how far it is.
//
// Failures are told by report() (exit_status.h). One thread.
#pragma once

#include <cstdint>
#include <string>

namespace memdecay {

/// What is told next stands at the begin of a line: where a Progress line is open at a terminal,
/// in its place. print_note() does it by itself.
void clear_progress_line();

/// "note: ..."
void print_note(const std::string& note);

/// "[...]" on a line of its own, dimmed at a terminal: what a conversation's turns cost.
void print_aside(const std::string& text);

/// How far a task is, and what is left by the share done and the time taken since construction.
///
/// At a terminal one line that is written anew; else a line every few seconds, so that a log stays
/// one, and one at the end.
class Progress {
 public:
  Progress();
  /// "chunk 3 of 8: 25 %, 0:12 left". `share` is from 0 to 1; 1 is the end.
  void tell(const std::string& what, double share);

 private:
  std::int64_t begin_ns_;
  std::int64_t told_ns_;
};

}  // namespace memdecay
