// Pages of keys and values from one form to another: fp16, fp32, int8, k8v4, int4.
//
// The scalar truth of what the codes of core/paged_kv.h mean: kernels that read a form are tested
// against decode_kv_head. Converting decodes to fp32 and encodes again, so every pair of forms
// works, int8 to int4 and back to fp16 too (what was lost stays lost).
//
// Encoding a row (a channel of K over the filled slots; a run of V): the minimum is rounded down to
// fp16, the scale (max - minimum) / (2^bits - 1) to the nearest fp16 (up where subnormal), codes
// are (x - minimum) / scale to the nearest, ties to even, at most 2^bits - 1. Rounding the scale
// moves the largest value by less than an eighth of a step, so
//     |x - (code * scale + minimum)| <= scale / 2      (plus the float's own rounding).
// A constant row of fp16 numbers is exact (scale 0); the row's minimum survives every further
// encoding bit for bit. Slots that are not filled get code 0, or 0 in fp16 and
// fp32: finite and always the same.
//
// Not here: which form a page should have (policy), reading pages while computing (kernels).
// Pure functions, any thread. Cost: about 1 ns per number on SSE2; one buffer of one head in fp32.
#pragma once

#include <cstddef>
#include <optional>

#include "core/paged_kv.h"

namespace memdecay {

/// Rewrites the first `filled` slots of a page in another form; the rest of `target` is as an
/// unfilled slot should be. Returns the relative rounding error, none where a filled slot holds
/// what fp16 cannot (a NaN, an infinity, more than 65504): `target` is then of no use.
///
/// The error is the root of the mean, over the K and the V of every head, of
/// |x - x'|^2 / |x|^2, so neither a loud head nor loud keys hide the rest.
/// REQUIRES: layouts that differ in the format only; 0 <= filled <= page_tokens; no overlap.
std::optional<float> convert_kv_page(const KvPageLayout& from, const std::byte* source,
                                     const KvPageLayout& to, std::byte* target, int filled);

/// One head as floats: keys [head_dim][page_tokens], values [page_tokens][head_dim]; 0 in slots
/// that are not filled. An fp16 infinity or NaN comes out as some number above 65504 in magnitude.
void decode_kv_head(const KvPageLayout& layout, const std::byte* head, int filled, float* keys,
                    float* values);

/// |x - x'|^2 and |x|^2 of the K and of the V of one head.
struct KvHeadError {
  double keys_error = 0, keys_power = 0;
  double values_error = 0, values_power = 0;
};

/// The way back. REQUIRES: finite numbers, none below -65504; above 65504 fp16 saturates.
KvHeadError encode_kv_head(const KvPageLayout& layout, const float* keys, const float* values,
                           int filled, std::byte* head);

}  // namespace memdecay
