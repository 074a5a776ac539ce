#include "cli/standard_output.h"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <optional>

namespace memdecay {
namespace {

int first_error = 0;  // errno of the first write that failed

void note_error() {
  if (first_error == 0 && std::ferror(stdout) != 0) first_error = errno;
}

}  // namespace

void print_text(const std::string& text) {
  errno = 0;
  std::fwrite(text.data(), 1, text.size(), stdout);
  std::fflush(stdout);
  note_error();
}

void print_json(const nlohmann::ordered_json& json, int indent) {
  print_text(json.dump(indent, ' ', false, nlohmann::ordered_json::error_handler_t::replace) +
             "\n");
}

Status output_status() {
  errno = 0;
  std::fflush(stdout);
  note_error();
  if (std::ferror(stdout) == 0) return Status();
  return make_status(StatusCode::kIoError, "cannot write to standard output: {}",
                     first_error != 0 ? std::strerror(first_error) : "a write failed");
}

Result<GenerationResult> generate_while_heard(Engine& engine, GenerationRequest request) {
  std::optional<GenerationResult> result;
  request.on_done = [&](const GenerationResult& done) { result = done; };
  MEMDECAY_ASSIGN_OR_RETURN(const RequestId id, engine.submit(std::move(request)));
  while (!result) {
    if (std::ferror(stdout) != 0) engine.cancel(id);
    engine.step();
  }
  return *std::move(result);
}

}  // namespace memdecay
