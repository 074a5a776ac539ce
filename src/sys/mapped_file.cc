#include "sys/mapped_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>
#include <utility>

#include "sys/memory.h"

namespace memdecay {
namespace {

class Descriptor {
 public:
  explicit Descriptor(int number) : number_(number) {}
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  ~Descriptor() {
    if (number_ >= 0) ::close(number_);
  }
  int number() const { return number_; }

 private:
  int number_;
};

Status system_failure(const char* doing, const std::string& path, int error) {
  return make_status(StatusCode::kIoError, "cannot {} {}: {}", doing, path,
                     std::generic_category().message(error));
}

}  // namespace

Result<MappedFile> MappedFile::open(const std::string& path) {
  // Without O_NONBLOCK the open of a named pipe would wait for a writer.
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (file.number() < 0) {
    if (errno == ENOENT || errno == ENOTDIR)
      return make_status(StatusCode::kNotFound, "there is no file {}", path);
    return system_failure("open", path, errno);
  }
  struct stat attributes {};
  if (::fstat(file.number(), &attributes) != 0) return system_failure("look at", path, errno);
  if (S_ISDIR(attributes.st_mode))
    return make_status(StatusCode::kInvalidArgument, "{} is a directory, not a file", path);
  if (!S_ISREG(attributes.st_mode))
    return make_status(StatusCode::kInvalidArgument, "{} is not a regular file", path);
  if (attributes.st_size == 0)
    return make_status(StatusCode::kInvalidArgument, "{} is empty", path);
  const auto size = static_cast<std::size_t>(attributes.st_size);
  void* const address = ::mmap(nullptr, size, PROT_READ, MAP_SHARED, file.number(), 0);
  if (address == MAP_FAILED) return system_failure("map", path, errno);
  return MappedFile(path, {static_cast<const std::byte*>(address), size});
}

MappedFile::MappedFile(MappedFile&& other) noexcept
    : path_(std::move(other.path_)), bytes_(std::exchange(other.bytes_, {})) {}

MappedFile& MappedFile::operator=(MappedFile&& other) noexcept {
  if (this != &other) {
    unmap();
    path_ = std::move(other.path_);
    bytes_ = std::exchange(other.bytes_, {});
  }
  return *this;
}

MappedFile::~MappedFile() {
  unmap();
}

void MappedFile::unmap() noexcept {
  if (!bytes_.empty()) ::munmap(const_cast<std::byte*>(bytes_.data()), bytes_.size());
}

bool MappedFile::contains(std::span<const std::byte> range) const {
  return range.data() >= bytes_.data() &&
         range.data() + range.size() <= bytes_.data() + bytes_.size();
}

// Advice is a wish: the bytes are right whatever the system does with it, so its answer is ignored.
void MappedFile::advise(std::size_t begin, std::size_t end, int advice) const {
  if (begin >= end) return;
  ::madvise(const_cast<std::byte*>(bytes_.data() + begin), end - begin, advice);
}

void MappedFile::advise_sequential() const {
  advise(0, bytes_.size(), MADV_SEQUENTIAL);
}

void MappedFile::drop(std::span<const std::byte> range) const {
  if (range.empty()) return;
  MEMDECAY_CHECK(contains(range));
  const std::size_t page = system_page_bytes();
  const auto begin = static_cast<std::size_t>(range.data() - bytes_.data());
  const std::size_t end = begin + range.size();
  // The file's last page belongs to the range that reaches the file's end.
  const std::size_t whole_end = end == bytes_.size() ? end : end / page * page;
  advise((begin + page - 1) / page * page, whole_end, MADV_DONTNEED);
}

}  // namespace memdecay
