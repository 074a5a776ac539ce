// libFuzzer over sequences of cache operations: the bytes choose configuration and operations,
// ReferenceCache judges. Any disagreement ends the process.
#include <cstddef>
#include <cstdint>

#include "kv/reference_cache.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t count) {
  using memdecay::KvCacheConfig;
  memdecay::ByteChooser choose(bytes, count);
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
  memdecay::walk_or_die(model, choose);
  return 0;
}
