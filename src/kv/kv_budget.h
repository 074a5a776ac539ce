// KvBudget: the one accountant of KV memory. Bytes are reserved here before memory is taken.
//
// Whoever wants memory first gets a BudgetReservation of that many bytes, then takes the memory,
// gives the memory back, and lets the reservation go last. So at every instant
//     bytes of everything <= current_bytes() <= limit_bytes(),
//     current_bytes() = sum of bytes() over all living reservations.
// What counts: committed pages, the pools' reference arrays, page tables, sequence records; later
// staging copies, snapshots and sketches. What does not: the C++ allocator's own headers, and the
// rounding of resident memory to huge pages.
//
// A limit of 0 is refused; kUnlimited still counts. "No room" is an empty optional.
// Threads: one owner (the engine thread). Cost: O(1), no allocation.
#pragma once

#include <cstdint>
#include <limits>
#include <memory>
#include <optional>

#include "core/status.h"

namespace memdecay {

class KvBudget;

/// Owns a number of budgeted bytes; gives them back when it dies. Move-only.
class [[nodiscard]] BudgetReservation {
 public:
  BudgetReservation() = default;  ///< holds nothing, belongs to no budget
  BudgetReservation(BudgetReservation&& other) noexcept;
  BudgetReservation& operator=(BudgetReservation&& other) noexcept;
  ~BudgetReservation() { release(); }

  std::uint64_t bytes() const { return bytes_; }
  /// Takes `bytes` out of this reservation. REQUIRES: bytes <= bytes().
  BudgetReservation split(std::uint64_t bytes);
  /// Takes all of `other`, which is empty afterwards. REQUIRES: both of one budget, or one empty.
  void merge(BudgetReservation&& other);
  /// Gives everything back.
  void release();

 private:
  friend class KvBudget;
  BudgetReservation(KvBudget* budget, std::uint64_t bytes) : budget_(budget), bytes_(bytes) {}
  KvBudget* budget_ = nullptr;
  std::uint64_t bytes_ = 0;
};

class KvBudget {
 public:
  static constexpr std::uint64_t kUnlimited = std::numeric_limits<std::uint64_t>::max();

  /// kInvalidArgument for a limit of 0.
  static Result<std::unique_ptr<KvBudget>> create(std::uint64_t limit_bytes);
  ~KvBudget();  ///< REQUIRES: every reservation is gone
  KvBudget(const KvBudget&) = delete;
  KvBudget& operator=(const KvBudget&) = delete;

  std::optional<BudgetReservation> try_reserve(std::uint64_t bytes);
  /// Bytes by which a reservation of `bytes` would be refused now: 0 means it fits.
  std::uint64_t missing_bytes(std::uint64_t bytes) const;

  std::uint64_t limit_bytes() const { return limit_bytes_; }
  std::uint64_t current_bytes() const { return current_bytes_; }
  std::uint64_t free_bytes() const { return limit_bytes_ - current_bytes_; }
  /// The most that current_bytes() has been since the start or the last reset_peak().
  std::uint64_t peak_bytes() const { return peak_bytes_; }
  void reset_peak() { peak_bytes_ = current_bytes_; }

 private:
  friend class BudgetReservation;
  explicit KvBudget(std::uint64_t limit_bytes) : limit_bytes_(limit_bytes) {}

  std::uint64_t limit_bytes_;
  std::uint64_t current_bytes_ = 0;
  std::uint64_t peak_bytes_ = 0;
};

/// The answer of an operation that needs memory: there was room, or who refused and how much was
/// missing. After a refusal nothing has changed.
struct [[nodiscard]] Room {
  enum class Refusal : std::uint8_t {
    kNone,    ///< there was room
    kBudget,  ///< the budget: free or evict `missing_bytes`
    kPool,    ///< the pool has no page number left (its maximum was set lower than the budget)
    kSystem,  ///< the operating system had no memory, though the budget would have allowed it
  };
  Refusal refusal = Refusal::kNone;
  std::uint64_t missing_bytes = 0;  ///< 0 when there was room

  explicit operator bool() const { return refusal == Refusal::kNone; }
};

}  // namespace memdecay
