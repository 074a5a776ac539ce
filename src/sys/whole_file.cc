#include "sys/whole_file.h"

#include <cerrno>
#include <cstring>
#include <fstream>
#include <random>
#include <sstream>

namespace memdecay {
namespace {

Status write_failure(const std::filesystem::path& path, const std::string& reason) {
  return make_status(StatusCode::kIoError, "\"{}\" cannot be written: {}", path.string(), reason);
}

/// errno of what failed, or 0.
int write_into(const std::filesystem::path& path, std::string_view bytes) {
  errno = 0;
  std::ofstream stream(path, std::ios::binary | std::ios::trunc);
  stream.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  stream.close();
  if (stream) return 0;
  return errno != 0 ? errno : EIO;
}

}  // namespace

Result<std::string> read_file(const std::filesystem::path& path) {
  const auto failure = [&] {
    return make_status(
        errno == ENOENT || errno == ENOTDIR ? StatusCode::kNotFound : StatusCode::kIoError,
        "\"{}\" cannot be read: {}", path.string(), std::strerror(errno));
  };
  errno = 0;
  std::ifstream stream(path, std::ios::binary);
  if (!stream) return failure();
  std::ostringstream text;
  // An empty stream would count as a failure to put anything in.
  if (stream.peek() != std::ifstream::traits_type::eof()) text << stream.rdbuf();
  if (stream.bad() || text.bad()) return failure();
  return std::move(text).str();
}

Status replace_file(const std::filesystem::path& path, std::string_view bytes) {
  std::error_code failure;
  const auto there = std::filesystem::symlink_status(path, failure);
  if (std::filesystem::exists(there) && !std::filesystem::is_regular_file(there)) {
    const int error = write_into(path, bytes);
    return error == 0 ? Status() : write_failure(path, std::strerror(error));
  }
  // Two processes may write at once: each has a file of its own until it is whole.
  const std::filesystem::path beside =
      path.string() + fmt::format(".{:08x}", std::random_device()());
  std::string reason;
  if (const int error = write_into(beside, bytes); error != 0) {
    reason = std::strerror(error);
  } else {
    std::filesystem::rename(beside, path, failure);
    if (!failure) return Status();
    reason = failure.message();
  }
  std::error_code ignored;
  std::filesystem::remove(beside, ignored);
  return write_failure(path, reason);
}

Status make_folder(const std::filesystem::path& folder) {
  std::error_code failure;
  std::filesystem::create_directories(folder, failure);
  if (!failure) return Status();
  return make_status(StatusCode::kIoError, "the folder \"{}\" cannot be made: {}", folder.string(),
                     failure.message());
}

}  // namespace memdecay
