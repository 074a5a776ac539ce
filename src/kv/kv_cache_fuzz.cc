// libFuzzer over sequences of cache operations: the bytes choose configuration and operations,
// ReferenceCache judges. Any disagreement ends the process.
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <string>

#include "core/check.h"
#include "kv/reference_cache.h"

namespace {

/// Hands out bytes as numbers, zeros at the end.
class ByteChooser {
 public:
  ByteChooser(const std::uint8_t* bytes, std::size_t count) : next_(bytes), end_(bytes + count) {}
  bool empty() const { return next_ == end_; }
  std::uint32_t operator()(std::uint32_t bound) {
    std::uint32_t value = 0;
    for (std::uint32_t reach = 1; reach < bound && !empty(); reach <<= 8) {
      value = value << 8 | *next_++;
      if (reach > (1U << 23)) break;
    }
    return value % bound;
  }

 private:
  const std::uint8_t* next_;
  const std::uint8_t* end_;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t count) {
  using memdecay::KvCacheConfig;
  ByteChooser choose(bytes, count);
  KvCacheConfig config;
  const std::uint32_t groups = 1 + choose(2);
  const int page_tokens = 16 << choose(3);
  for (std::uint32_t g = 0; g < groups; ++g) {
    const auto window = static_cast<std::int32_t>(choose(2) == 0 ? 0 : choose(80));
    config.groups.push_back(
        {{.layers = 1, .kv_heads = 1, .head_dim = 2, .page_tokens = page_tokens}, window});
  }
  config.forms = {memdecay::KvFormat::kInt8, memdecay::KvFormat::kInt4};
  config.cut_back_tokens = static_cast<std::int32_t>(choose(40));
  config.budget_bytes = (64 + choose(400)) * std::uint64_t{1024};
  memdecay::ReferenceCache model(config);
  std::string trouble;
  for (int step = 0; step < 300 && !choose.empty() && trouble.empty(); ++step)
    trouble = model.step([&](std::uint32_t bound) { return choose(bound); });
  if (trouble.empty()) trouble = model.finish();
  if (!trouble.empty()) std::fprintf(stderr, "%s\n", trouble.c_str());
  MEMDECAY_CHECK(trouble.empty());
  return 0;
}
