#include "kv/kv_budget.h"

#include <algorithm>
#include <utility>

#include "core/check.h"

namespace memdecay {

BudgetReservation::BudgetReservation(BudgetReservation&& other) noexcept
    : budget_(std::exchange(other.budget_, nullptr)), bytes_(std::exchange(other.bytes_, 0)) {}

BudgetReservation& BudgetReservation::operator=(BudgetReservation&& other) noexcept {
  if (this != &other) {
    release();
    budget_ = std::exchange(other.budget_, nullptr);
    bytes_ = std::exchange(other.bytes_, 0);
  }
  return *this;
}

BudgetReservation BudgetReservation::split(std::uint64_t bytes) {
  MEMDECAY_CHECK(bytes <= bytes_);
  bytes_ -= bytes;
  return BudgetReservation(budget_, bytes);
}

void BudgetReservation::merge(BudgetReservation&& other) {
  if (other.budget_ == nullptr) return;
  MEMDECAY_CHECK(budget_ == nullptr || budget_ == other.budget_);
  budget_ = std::exchange(other.budget_, nullptr);
  bytes_ += std::exchange(other.bytes_, 0);
}

void BudgetReservation::release() {
  if (budget_ == nullptr) return;
  MEMDECAY_CHECK(bytes_ <= budget_->current_bytes_);
  budget_->current_bytes_ -= std::exchange(bytes_, 0);
  budget_ = nullptr;
}

Result<std::unique_ptr<KvBudget>> KvBudget::create(std::uint64_t limit_bytes) {
  if (limit_bytes == 0)
    return Status(StatusCode::kInvalidArgument,
                  "a KV budget of 0 bytes holds nothing; give a size such as 512MiB");
  return std::unique_ptr<KvBudget>(new KvBudget(limit_bytes));
}

KvBudget::~KvBudget() {
  MEMDECAY_CHECK(current_bytes_ == 0);
}

std::uint64_t KvBudget::missing_bytes(std::uint64_t bytes) const {
  return bytes > free_bytes() ? bytes - free_bytes() : 0;
}

std::optional<BudgetReservation> KvBudget::try_reserve(std::uint64_t bytes) {
  if (missing_bytes(bytes) > 0) return std::nullopt;
  current_bytes_ += bytes;
  peak_bytes_ = std::max(peak_bytes_, current_bytes_);
  return BudgetReservation(this, bytes);
}

}  // namespace memdecay
