// StrongId: an index that cannot be mistaken for another kind of index or for a count.
//
// Invariant: an id is made on purpose (explicit constructor) and compared only with its own kind.
// It converts to a container index by index(). Costs nothing over its representation.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>

namespace memdecay {

template <typename Tag, typename Rep = std::int32_t>
class StrongId {
 public:
  using rep = Rep;
  constexpr StrongId() = default;
  constexpr explicit StrongId(Rep value) : value_(value) {}

  constexpr Rep value() const { return value_; }
  constexpr std::size_t index() const { return static_cast<std::size_t>(value_); }
  friend constexpr auto operator<=>(StrongId, StrongId) = default;

 private:
  Rep value_ = 0;
};

using PageId =
    StrongId<struct PageTag, std::int32_t>;  ///< a physical page within its layer group's pool
using LayerGroupId =
    StrongId<struct LayerGroupTag, std::int32_t>;  ///< layers that share a page geometry and window
using SequenceId =
    StrongId<struct SequenceTag, std::int64_t>;  ///< a sequence, never reused within a process

/// A token's number in its model's vocabulary. Plain, because tokenizers, kernels and JSON pass
/// arrays of it.
using TokenId = std::int32_t;
/// A token's place in its sequence, from 0.
using Position = std::int32_t;

}  // namespace memdecay

template <typename Tag, typename Rep>
struct std::hash<memdecay::StrongId<Tag, Rep>> {
  std::size_t operator()(memdecay::StrongId<Tag, Rep> id) const noexcept {
    return std::hash<Rep>{}(id.value());
  }
};
