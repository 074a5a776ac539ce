#include "policy/policies/uniform_policy.h"

#include "core/slot_of.h"

namespace memdecay {
namespace {

std::uint32_t mirror_bits(std::uint32_t value) {
  std::uint32_t mirrored = 0;
  for (int bit = 0; bit < 32; ++bit) {
    mirrored = (mirrored << 1) | (value & 1);
    value >>= 1;
  }
  return mirrored;
}

}  // namespace

double UniformPolicy::key(TrackedPageId page, Region /*as*/) const {
  return -static_cast<double>(mirrored_[page.index()]);
}

void UniformPolicy::on_track(const PageMeta& page, bool is_new) {
  if (is_new) slot_of(mirrored_, page.id.index()) = mirror_bits(tracked_++);
}

}  // namespace memdecay
