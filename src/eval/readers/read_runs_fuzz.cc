// Fuzzes the readers of recorded runs: any bytes, packed or not, are read or refused with a
// sentence, and what is read holds its invariants.
#include <cstdint>
#include <cstdlib>
#include <span>

#include "eval/readers/read_runs.h"
#include "eval/readers/run_text.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace memdecay;
  const std::span<const std::byte> bytes(reinterpret_cast<const std::byte*>(data), size);
  const Result<std::string> text = unpack_run_text(bytes, "input", std::size_t{1} << 20);
  if (!text.ok()) return text.status().message().empty() ? (std::abort(), 0) : 0;
  RunContents contents;
  const Status status = read_run_text_into(*text, "input", contents);
  if (!status.ok() && status.message().empty()) std::abort();
  finish_runs(contents);
  for (const Trajectory& trajectory : contents.trajectories) {
    const auto& messages = trajectory.messages();
    if (messages.size() != trajectory.recorded.size() || messages.empty()) std::abort();
    for (std::size_t i = 0; i < messages.size(); ++i) {
      const bool assistant = messages[i].at("role") == "assistant";
      if (!messages[i].at("content").is_string() || (trajectory.recorded[i] != 0 && !assistant))
        std::abort();
    }
  }
  return 0;
}
