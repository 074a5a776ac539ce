// store_kv: new keys and values into a page of floats.
//
// Included inside a target region.
#pragma once

namespace memdecay {
namespace {

/// Eight rows of eight floats, rows and columns exchanged.
MEMDECAY_INLINE void transpose_eight(__m256 (&row)[8]) {
  __m256 pair[8];
  MEMDECAY_UNROLL
  for (int i = 0; i < 4; ++i) {
    pair[2 * i] = _mm256_unpacklo_ps(row[2 * i], row[2 * i + 1]);
    pair[2 * i + 1] = _mm256_unpackhi_ps(row[2 * i], row[2 * i + 1]);
  }
  __m256 four[8];
  MEMDECAY_UNROLL
  for (int i = 0; i < 8; i += 4) {
    four[i] = _mm256_shuffle_ps(pair[i], pair[i + 2], 0x44);
    four[i + 1] = _mm256_shuffle_ps(pair[i], pair[i + 2], 0xee);
    four[i + 2] = _mm256_shuffle_ps(pair[i + 1], pair[i + 3], 0x44);
    four[i + 3] = _mm256_shuffle_ps(pair[i + 1], pair[i + 3], 0xee);
  }
  MEMDECAY_UNROLL
  for (int i = 0; i < 4; ++i) {
    row[i] = _mm256_permute2f128_ps(four[i], four[i + 4], 0x20);
    row[i + 4] = _mm256_permute2f128_ps(four[i], four[i + 4], 0x31);
  }
}

/// Element writers of the two formats.
struct HalfElements {
  using Element = std::uint16_t;
  static Element narrow(float x) {
    return static_cast<Element>(
        _mm_extract_epi16(_mm_cvtps_ph(_mm_set_ss(x), _MM_FROUND_TO_NEAREST_INT), 0));
  }
  static void store_eight(Element* to, __m256 x) {
    _mm_storeu_si128(reinterpret_cast<__m128i*>(to), _mm256_cvtps_ph(x, _MM_FROUND_TO_NEAREST_INT));
  }
};

struct FloatElements {
  using Element = float;
  static Element narrow(float x) { return x; }
  static void store_eight(Element* to, __m256 x) { _mm256_storeu_ps(to, x); }
};

/// K: rows of tokens become columns; blocks of 8 x 8 where there are that many.
template <typename Format>
void store_keys(const StoreKvArgs& args, typename Format::Element* keys) {
  const int head_dim = args.layout->head_dim;
  const int slots = args.layout->page_tokens;
  keys += args.first_slot;
  int token = 0;
  for (; token + 8 <= args.tokens; token += 8) {
    int d = 0;
    for (; d + 8 <= head_dim; d += 8) {
      __m256 row[8];
      MEMDECAY_UNROLL
      for (int i = 0; i < 8; ++i)
        row[i] = _mm256_loadu_ps(args.k + (token + i) * args.k_stride + d);
      transpose_eight(row);
      MEMDECAY_UNROLL
      for (int i = 0; i < 8; ++i) Format::store_eight(keys + (d + i) * slots + token, row[i]);
    }
    for (; d < head_dim; ++d) {
      for (int i = 0; i < 8; ++i) {
        keys[d * slots + token + i] = Format::narrow(args.k[(token + i) * args.k_stride + d]);
      }
    }
  }
  for (; token < args.tokens; ++token) {
    const float* k = args.k + token * args.k_stride;
    for (int d = 0; d < head_dim; ++d) keys[d * slots + token] = Format::narrow(k[d]);
  }
}

template <typename Format>
void store_values_of_tokens(const StoreKvArgs& args, typename Format::Element* values) {
  const int head_dim = args.layout->head_dim;
  for (int token = 0; token < args.tokens; ++token) {
    const float* v = args.v + token * args.v_stride;
    typename Format::Element* to = values + (args.first_slot + token) * head_dim;
    int d = 0;
    for (; d + 8 <= head_dim; d += 8) Format::store_eight(to + d, _mm256_loadu_ps(v + d));
    for (; d < head_dim; ++d) to[d] = Format::narrow(v[d]);
  }
}

template <typename Format>
void store_kv_as(const StoreKvArgs& args) {
  using Element = typename Format::Element;
  store_keys<Format>(args, reinterpret_cast<Element*>(args.head));
  store_values_of_tokens<Format>(args,
                                 reinterpret_cast<Element*>(args.head + args.layout->key_bytes()));
}

inline void store_kv(const StoreKvArgs& args) {
  MEMDECAY_CHECK(!is_quantized(args.layout->format));
  if (args.layout->format == KvFormat::kF16) {
    store_kv_as<HalfElements>(args);
  } else {
    store_kv_as<FloatElements>(args);
  }
}

}  // namespace
}  // namespace memdecay
