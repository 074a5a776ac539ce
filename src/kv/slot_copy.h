// Copies token slots from one page to another of the same layout: every layer, head, K and V.
//
// Only for forms without scales: a quantized page's K scales belong to all its slots together.
// Pure. Cost: the bytes of the slots, in runs of `slots` elements for K and whole rows for V.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/paged_kv.h"

namespace memdecay {

/// Slots [source_slot, source_slot + slots) of `source` become those from target_slot on of
/// `target`. REQUIRES: not is_quantized(layout.format), both ranges lie within the page, the pages
/// are different ones.
void copy_slots(const KvPageLayout& layout, const std::byte* source, std::int32_t source_slot,
                std::int32_t slots, std::byte* target, std::int32_t target_slot);

}  // namespace memdecay
