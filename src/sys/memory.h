// AnonymousMemory: a range of zeroed memory straight from the kernel, aligned for huge pages.
//
// The range starts on a 2 MiB border and asks for huge pages (madvise; the kernel may say no, and
// nothing depends on it). Reserving takes address space only: memory is *committed* when it is
// first touched, reads as zero until it is written, and goes back with decommit(). Two ways in:
//   allocate(n)   every byte may be touched at once;
//   reserve(n)    nothing may be touched until make_accessible() says so, so a machine that
//                 accounts strictly (vm.overcommit_memory=2, RLIMIT_DATA) refuses with a Status
//                 there instead of killing the process later.
//
// Invariants: data() % kHugePageBytes == 0; size() is what was asked for; offsets given to
// make_accessible() and decommit() lie inside [0, size()].
// Threads: one owner calls the members; the bytes follow the usual rules of memory.
// Cost: a system call each (about 1 us); a first touch costs a page fault per 4 KiB or 2 MiB.
// Huge pages round what is resident up to 2 MiB around each touched byte.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/status.h"

namespace memdecay {

enum class HugePages : std::uint8_t { kAsk, kNever };

class AnonymousMemory {
 public:
  static constexpr std::size_t kHugePageBytes = std::size_t{2} << 20;

  /// kInvalidArgument for 0 bytes, kResourceExhausted where the system has no such range left.
  static Result<AnonymousMemory> allocate(std::size_t bytes, HugePages huge = HugePages::kAsk);
  static Result<AnonymousMemory> reserve(std::size_t bytes, HugePages huge = HugePages::kAsk);

  AnonymousMemory() = default;  ///< empty: data() is null
  AnonymousMemory(AnonymousMemory&& other) noexcept;
  AnonymousMemory& operator=(AnonymousMemory&& other) noexcept;
  ~AnonymousMemory();

  std::byte* data() const { return data_; }
  std::size_t size() const { return size_; }

  /// Lets [offset, offset + bytes) be touched, rounded outwards to system pages. On failure
  /// (kResourceExhausted) nothing changed.
  Status make_accessible(std::size_t offset, std::size_t bytes);

  /// Gives the memory behind [offset, offset + bytes) back; the range reads as zero afterwards and
  /// may be touched again. Bytes that share a system page with others are zeroed in place.
  /// REQUIRES: the range is accessible.
  void decommit(std::size_t offset, std::size_t bytes);

 private:
  AnonymousMemory(std::byte* data, std::size_t size) : data_(data), size_(size) {}
  static Result<AnonymousMemory> map(std::size_t bytes, HugePages huge, int protection);

  std::byte* data_ = nullptr;
  std::size_t size_ = 0;
};

/// Bytes of one system page, the unit in which memory is committed without huge pages.
std::size_t system_page_bytes();
/// Bytes of memory in this machine.
std::uint64_t physical_memory_bytes();

}  // namespace memdecay
