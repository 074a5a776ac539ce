#include "policy/policies/random_policy.h"

#include "policy/page_accesses.h"

namespace memdecay {
namespace {

/// SplitMix64's output function (Steele, Lea, Flood, 2014).
std::uint64_t mixed(std::uint64_t value) {
  value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9ULL;
  value = (value ^ (value >> 27)) * 0x94d049bb133111ebULL;
  return value ^ (value >> 31);
}

}  // namespace

void RandomPolicy::on_track(const PageMeta& page, bool is_new) {
  if (!is_new) return;
  const std::uint64_t number = mixed(seed_ + 0x9e3779b97f4a7c15ULL * ++tracked_);
  page_slot(drawn_, page.id) = static_cast<double>(number >> 11) * 0x1.0p-53;
}

}  // namespace memdecay
