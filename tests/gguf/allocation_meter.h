// AllocationMeter: what this program's operator new gave out while a meter was alive.
//
// Linking allocation_meter.cc replaces the global operator new and delete of the whole program. One
// meter at a time; counts the thread that made it.
#pragma once

#include <cstddef>

namespace memdecay {

class AllocationMeter {
 public:
  AllocationMeter();
  ~AllocationMeter();
  AllocationMeter(const AllocationMeter&) = delete;
  AllocationMeter& operator=(const AllocationMeter&) = delete;

  /// The most bytes that one call asked for.
  std::size_t largest_bytes() const;
  /// The most bytes that were out at once, of those given out since the meter began.
  std::size_t peak_bytes() const;
};

}  // namespace memdecay
