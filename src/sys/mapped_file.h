// MappedFile: a regular file's bytes, read-only, through the page cache.
//
// It is not a snapshot: whoever truncates the file while it is mapped ends this process (SIGBUS),
// as with every mapped file. It maps, and reads nothing before the bytes are touched. drop() takes
// pages out of this process (not out of the page cache), so that repacking a model does not keep
// the file resident twice. Reading, advising and dropping may happen from any thread; a dropped
// byte that is read again comes back from the file.
//
// Costs: open is two system calls and no copy; the advice calls are one each and never fail.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <utility>

#include "core/status.h"

namespace memdecay {

class MappedFile {
 public:
  /// kNotFound when nothing is there; kInvalidArgument for a directory, a device or an empty file;
  /// kIoError when the system refuses.
  static Result<MappedFile> open(const std::string& path);

  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&& other) noexcept;
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;
  ~MappedFile();

  const std::string& path() const { return path_; }
  /// The whole file, never empty; page-aligned; valid as long as this object or the one it was
  /// moved to.
  std::span<const std::byte> bytes() const { return bytes_; }

  /// The file will be read from front to back: read ahead generously.
  void advise_sequential() const;
  /// Gives up the residence of every whole page inside `range`. REQUIRES: range lies in bytes().
  void drop(std::span<const std::byte> range) const;

 private:
  MappedFile(std::string path, std::span<const std::byte> bytes)
      : path_(std::move(path)), bytes_(bytes) {}
  bool contains(std::span<const std::byte> range) const;
  void advise(std::size_t begin, std::size_t end, int advice) const;
  void unmap() noexcept;

  std::string path_;
  std::span<const std::byte> bytes_;
};

}  // namespace memdecay
