// Reads recorded runs: files or folders in, trajectories out, whatever their upstream format.
//
// Formats are told apart by content (run_format.h). A named file must be readable; below a named
// folder, files that hold no runs (licences, traces without text) or damaged ones are left out as a
// whole, with a note. Files are read in order of their paths, so that the same
// folder gives the same list everywhere. Cost: all runs in memory.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/status.h"
#include "eval/readers/run_format.h"

namespace memdecay {

/// kNotFound, kUnsupported (text that is no run, or a trace of lengths without text), kCorrupt with
/// file and place.
Result<RunContents> read_runs(std::span<const std::string> paths);

/// The same of one file's text.
Status read_run_text_into(std::string_view text, const std::string& place, RunContents& contents);

/// Gives ids and joins questions with the conversation that holds their answer; questions that find
/// none are noted.
void finish_runs(RunContents& contents);

}  // namespace memdecay
