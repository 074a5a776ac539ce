#include "kv/slot_copy.h"

#include <cstring>

#include "core/check.h"

namespace memdecay {

void copy_slots(const KvPageLayout& layout, const std::byte* source, std::int32_t source_slot,
                std::int32_t slots, std::byte* target, std::int32_t target_slot) {
  MEMDECAY_CHECK(!is_quantized(layout.format) && slots >= 0);
  MEMDECAY_CHECK(source_slot >= 0 && source_slot + slots <= layout.page_tokens);
  MEMDECAY_CHECK(target_slot >= 0 && target_slot + slots <= layout.page_tokens);
  const auto channels = static_cast<std::size_t>(layout.head_dim);
  const std::size_t element = kv_element_bytes(layout.format);
  const std::size_t channel_bytes = static_cast<std::size_t>(layout.page_tokens) * element;
  const auto from = static_cast<std::size_t>(source_slot) * element;
  const auto to = static_cast<std::size_t>(target_slot) * element;
  const auto run = static_cast<std::size_t>(slots) * element;
  for (int layer = 0; layer < layout.layers; ++layer) {
    for (int head = 0; head < layout.kv_heads; ++head) {
      const std::size_t keys = layout.head_offset(layer, head);
      for (std::size_t channel = 0; channel < channels; ++channel) {
        const std::size_t row = keys + channel * channel_bytes;
        std::memcpy(target + row + to, source + row + from, run);
      }
      const std::size_t values = keys + layout.key_bytes();
      std::memcpy(target + values + to * channels, source + values + from * channels,
                  run * channels);
    }
  }
}

}  // namespace memdecay
