#include "sys/subprocess.h"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <system_error>

#include "core/check.h"

extern char** environ;

namespace memdecay {
namespace {

std::string error_text(int error) {
  return std::generic_category().message(error);
}

/// Owns a file descriptor.
class Descriptor {
 public:
  explicit Descriptor(int descriptor) : descriptor_(descriptor) {}
  ~Descriptor() { close_now(); }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int get() const { return descriptor_; }
  void close_now() {
    if (descriptor_ >= 0) ::close(descriptor_);
    descriptor_ = -1;
  }

 private:
  int descriptor_;
};

/// Starts the program with `output` as its stdout; the number of an error, or 0.
int spawn(const std::vector<std::string>& arguments, int output, pid_t& child) {
  std::vector<char*> argv;
  for (const std::string& argument : arguments) argv.push_back(const_cast<char*>(argument.c_str()));
  argv.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  if (const int error = posix_spawn_file_actions_init(&actions); error != 0) return error;
  // dup2 clears close-on-exec on the copy; when the pipe already is descriptor 1, spawn does so
  // too.
  int error = posix_spawn_file_actions_adddup2(&actions, output, STDOUT_FILENO);
  if (error == 0) error = posix_spawnp(&child, argv[0], &actions, nullptr, argv.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  return error;
}

Status read_all(int descriptor, std::size_t max_bytes, std::string& output) {
  std::array<char, 65536> buffer;
  while (true) {
    const ssize_t count = ::read(descriptor, buffer.data(), buffer.size());
    if (count == 0) return {};
    if (count < 0) {
      if (errno == EINTR) continue;
      return make_status(StatusCode::kIoError, "reading its output failed: {}", error_text(errno));
    }
    output.append(buffer.data(), static_cast<std::size_t>(count));
    if (output.size() > max_bytes) {
      return make_status(StatusCode::kResourceExhausted, "it printed more than {} bytes",
                         max_bytes);
    }
  }
}

Result<int> wait_for(pid_t child) {
  int state = 0;
  while (::waitpid(child, &state, 0) < 0) {
    if (errno != EINTR) {
      return make_status(StatusCode::kIoError, "waiting for it failed: {}", error_text(errno));
    }
  }
  return WIFSIGNALED(state) ? 128 + WTERMSIG(state) : WEXITSTATUS(state);
}

}  // namespace

Result<CommandResult> run_command(const std::vector<std::string>& arguments,
                                  std::size_t max_output_bytes) {
  MEMDECAY_CHECK(!arguments.empty());
  for (const std::string& argument : arguments) {
    MEMDECAY_CHECK(argument.find('\0') == std::string::npos);
  }
  const std::string& program = arguments.front();
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) {
    return make_status(StatusCode::kIoError, "cannot run {}: {}", program, error_text(errno));
  }
  Descriptor reader(ends[0]);
  Descriptor writer(ends[1]);
  pid_t child = 0;
  if (const int error = spawn(arguments, writer.get(), child); error != 0) {
    const StatusCode code = error == ENOENT ? StatusCode::kNotFound : StatusCode::kIoError;
    return make_status(code, "cannot run {}: {}", program, error_text(error));
  }
  writer.close_now();  // or the read below would never see the end

  CommandResult result;
  const Status reading = read_all(reader.get(), max_output_bytes, result.output);
  if (!reading.ok()) ::kill(child, SIGKILL);
  Result<int> exit_status = wait_for(child);
  if (!reading.ok()) return reading.with_context(program);
  if (!exit_status.ok()) return exit_status.status().with_context(program);
  result.exit_status = *exit_status;
  return result;
}

}  // namespace memdecay
