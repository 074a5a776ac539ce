// LineageKey: what a page's content depends on, as 32 bytes: model, KV format, geometry, tenant,
// adapter, and every token up to the page's end. LineageHasher makes them, a SHA-256 chain:
//
//     root  = SHA-256("memdecay root 1", fingerprint, groups, salt, adapter)
//     child = SHA-256("memdecay page 1", parent key, token ids)
//
// Every field is preceded by its length (8 bytes), numbers are little-endian, so no two different
// inputs are hashed as the same bytes. It names pages outside the process; whoever serves a page by
// its key compares the tokens too. Only exact pages have one: no eviction before them, own form.
// Threads: a hasher belongs to one thread; keys are plain values. Cost: about 1 us a page.
#pragma once

#include <array>
#include <compare>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/id.h"
#include "core/paged_kv.h"

namespace memdecay {

struct LineageKey {
  std::array<std::uint8_t, 32> bytes{};
  friend auto operator<=>(const LineageKey&, const LineageKey&) = default;

  /// The first 8 bytes as a number: for orders and sketches, never for identity.
  std::uint64_t leading_bits() const;
  std::string hex() const;
};

/// Whose pages: two scopes never share. An empty salt is a tenant of its own.
struct PrefixScope {
  std::string_view salt;     ///< of the tenant, given by the server
  std::string_view adapter;  ///< of the model, empty for none
  friend auto operator<=>(const PrefixScope&, const PrefixScope&) = default;
};

/// One layer group as far as it changes keys and values.
struct LineageGroup {
  KvPageLayout layout;
  std::int32_t window = 0;
};

/// What all pages of one model share.
struct LineageModel {
  std::string fingerprint;  ///< of the weights and everything that changes the forward pass
  std::vector<LineageGroup> groups;
};

class LineageHasher {
 public:
  explicit LineageHasher(LineageModel model);
  virtual ~LineageHasher();
  LineageHasher(const LineageHasher&) = delete;
  LineageHasher& operator=(const LineageHasher&) = delete;

  const LineageModel& model() const { return model_; }
  // Virtual so that a test can forge equal keys.
  virtual LineageKey root(const PrefixScope& scope) const;
  virtual LineageKey child(const LineageKey& parent, std::span<const TokenId> tokens) const;

 private:
  class Digest;
  LineageModel model_;
  std::unique_ptr<Digest> digest_;
};

}  // namespace memdecay
