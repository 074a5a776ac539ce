// AlignedBytes: zeroed memory at a 64-byte boundary, as kernels want their scratch. For tests and
// benchmarks only.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <memory>
#include <new>

namespace memdecay {

class AlignedBytes {
 public:
  explicit AlignedBytes(std::size_t count)
      : count_(count),
        bytes_(
            static_cast<std::byte*>(::operator new(std::max<std::size_t>(count, 1), kAlignment))) {
    std::memset(bytes_.get(), 0, count);
  }
  std::byte* data() { return bytes_.get(); }
  const std::byte* data() const { return bytes_.get(); }
  std::size_t size() const { return count_; }

 private:
  static constexpr std::align_val_t kAlignment{64};
  struct Free {
    void operator()(std::byte* bytes) const { ::operator delete(bytes, kAlignment); }
  };
  std::size_t count_;
  std::unique_ptr<std::byte, Free> bytes_;
};

}  // namespace memdecay
