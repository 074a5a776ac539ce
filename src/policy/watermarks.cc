#include "policy/watermarks.h"

#include <limits>

#include "core/check.h"

namespace memdecay {
namespace {

std::uint64_t share_of(std::uint64_t bytes, double share) {
  constexpr std::uint64_t kUnlimited = std::numeric_limits<std::uint64_t>::max();
  if (bytes == kUnlimited) return bytes;
  return static_cast<std::uint64_t>(static_cast<double>(bytes) * share);
}

}  // namespace

Watermarks::Watermarks(const WatermarkOptions& options) : options_(options) {
  MEMDECAY_CHECK(0 < options.gentle && options.gentle <= options.low);
  MEMDECAY_CHECK(options.low <= options.high && options.high <= 1);
}

PlanRequest Watermarks::demand(std::uint64_t live_bytes, std::uint64_t budget_bytes) {
  const std::uint64_t low = share_of(budget_bytes, options_.low);
  if (live_bytes > share_of(budget_bytes, options_.high)) pressed_ = true;
  if (live_bytes <= low) pressed_ = false;
  PlanRequest request;
  request.urgency = pressed_ ? Urgency::kPressed : Urgency::kGentle;
  request.budget_bytes = pressed_ ? low : share_of(budget_bytes, options_.gentle);
  return request;
}

}  // namespace memdecay
