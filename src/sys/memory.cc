#include "sys/memory.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <limits>
#include <utility>

#include "core/check.h"
#include "core/units.h"

namespace memdecay {
namespace {

std::uintptr_t address_of(const void* pointer) {
  return reinterpret_cast<std::uintptr_t>(pointer);
}

std::size_t round_up(std::size_t value, std::size_t unit) {
  return (value + unit - 1) / unit * unit;
}

}  // namespace

std::size_t system_page_bytes() {
  static const auto bytes = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  return bytes;
}

std::uint64_t physical_memory_bytes() {
  const long pages = sysconf(_SC_PHYS_PAGES);
  return pages > 0 ? static_cast<std::uint64_t>(pages) * system_page_bytes() : kGiB;
}

Result<AnonymousMemory> AnonymousMemory::map(std::size_t bytes, HugePages huge, int protection) {
  if (bytes == 0)
    return Status(StatusCode::kInvalidArgument, "a memory range needs at least one byte");
  if (bytes > std::numeric_limits<std::size_t>::max() / 2)
    return make_status(StatusCode::kResourceExhausted, "there is no memory range of {}",
                       format_bytes(bytes));
  // Ask for one huge page more, then cut both ends off at the borders.
  const std::size_t wanted = round_up(bytes, system_page_bytes());
  const std::size_t mapped = wanted + kHugePageBytes;
  void* raw = mmap(nullptr, mapped, protection, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (raw == MAP_FAILED)
    return make_status(StatusCode::kResourceExhausted,
                       "the system has no room for {} of memory: {}", format_bytes(bytes),
                       std::strerror(errno));
  auto* const start = static_cast<std::byte*>(raw);
  const std::size_t lead = (kHugePageBytes - address_of(raw) % kHugePageBytes) % kHugePageBytes;
  const std::size_t tail = mapped - lead - wanted;
  if (lead > 0) munmap(start, lead);
  if (tail > 0) munmap(start + lead + wanted, tail);
  std::byte* const data = start + lead;
  // A kernel without huge pages refuses; the range works without them.
  madvise(data, wanted, huge == HugePages::kAsk ? MADV_HUGEPAGE : MADV_NOHUGEPAGE);
  return AnonymousMemory(data, bytes);
}

Result<AnonymousMemory> AnonymousMemory::allocate(std::size_t bytes, HugePages huge) {
  return map(bytes, huge, PROT_READ | PROT_WRITE);
}

Result<AnonymousMemory> AnonymousMemory::reserve(std::size_t bytes, HugePages huge) {
  return map(bytes, huge, PROT_NONE);
}

AnonymousMemory::AnonymousMemory(AnonymousMemory&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)) {}

AnonymousMemory& AnonymousMemory::operator=(AnonymousMemory&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(size_, other.size_);
  return *this;
}

AnonymousMemory::~AnonymousMemory() {
  if (data_ != nullptr) munmap(data_, round_up(size_, system_page_bytes()));
}

Status AnonymousMemory::make_accessible(std::size_t offset, std::size_t bytes) {
  MEMDECAY_CHECK(offset <= size_ && bytes <= size_ - offset);
  if (bytes == 0) return {};
  const std::size_t begin = offset / system_page_bytes() * system_page_bytes();
  const std::size_t end = round_up(offset + bytes, system_page_bytes());
  if (mprotect(data_ + begin, end - begin, PROT_READ | PROT_WRITE) != 0)
    return make_status(StatusCode::kResourceExhausted,
                       "the system has no room for {} of memory: {}", format_bytes(bytes),
                       std::strerror(errno));
  return {};
}

void AnonymousMemory::decommit(std::size_t offset, std::size_t bytes) {
  MEMDECAY_CHECK(offset <= size_ && bytes <= size_ - offset);
  const std::size_t end = offset + bytes;
  // The last system page of the range is wholly ours even where size() ends inside it.
  const std::size_t inner_begin = round_up(offset, system_page_bytes());
  const std::size_t inner_end = end == size_ ? round_up(end, system_page_bytes())
                                             : end / system_page_bytes() * system_page_bytes();
  if (inner_begin >= inner_end) {
    std::memset(data_ + offset, 0, bytes);
    return;
  }
  std::memset(data_ + offset, 0, inner_begin - offset);
  if (inner_end < end) std::memset(data_ + inner_end, 0, end - inner_end);
  // Locked memory (mlockall) cannot be given back, but the promise of zeros holds.
  if (madvise(data_ + inner_begin, inner_end - inner_begin, MADV_DONTNEED) != 0)
    std::memset(data_ + inner_begin, 0, inner_end - inner_begin);
}

}  // namespace memdecay
