#include "allocation_meter.h"

#include <malloc.h>

#include <algorithm>
#include <cstdlib>
#include <new>

#include "core/check.h"

namespace memdecay {
namespace {

struct Counts {
  bool on = false;
  std::size_t largest = 0;
  std::size_t live = 0;
  std::size_t peak = 0;
};

thread_local Counts counts;

void* counted_allocate(std::size_t bytes) {
  void* const block = std::malloc(std::max<std::size_t>(bytes, 1));
  if (block != nullptr && counts.on) {
    counts.largest = std::max(counts.largest, bytes);
    counts.live += ::malloc_usable_size(block);
    counts.peak = std::max(counts.peak, counts.live);
  }
  return block;
}

void counted_release(void* block) {
  // Blocks from before the meter began do not lower what came after.
  if (block != nullptr && counts.on)
    counts.live -= std::min(counts.live, ::malloc_usable_size(block));
  std::free(block);
}

}  // namespace

AllocationMeter::AllocationMeter() {
  MEMDECAY_CHECK(!counts.on);
  counts = {true, 0, 0, 0};
}
AllocationMeter::~AllocationMeter() {
  counts.on = false;
}
std::size_t AllocationMeter::largest_bytes() const {
  return counts.largest;
}
std::size_t AllocationMeter::peak_bytes() const {
  return counts.peak;
}

}  // namespace memdecay

void* operator new(std::size_t bytes) {
  if (void* const block = memdecay::counted_allocate(bytes)) return block;
  throw std::bad_alloc();
}
void* operator new[](std::size_t bytes) {
  return operator new(bytes);
}
void* operator new(std::size_t bytes, const std::nothrow_t&) noexcept {
  return memdecay::counted_allocate(bytes);
}
void* operator new[](std::size_t bytes, const std::nothrow_t&) noexcept {
  return memdecay::counted_allocate(bytes);
}
void operator delete(void* block) noexcept {
  memdecay::counted_release(block);
}
void operator delete[](void* block) noexcept {
  memdecay::counted_release(block);
}
void operator delete(void* block, std::size_t) noexcept {
  memdecay::counted_release(block);
}
void operator delete[](void* block, std::size_t) noexcept {
  memdecay::counted_release(block);
}
void operator delete(void* block, const std::nothrow_t&) noexcept {
  memdecay::counted_release(block);
}
void operator delete[](void* block, const std::nothrow_t&) noexcept {
  memdecay::counted_release(block);
}
