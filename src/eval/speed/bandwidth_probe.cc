#include "eval/speed/bandwidth_probe.h"

#include <algorithm>
#include <atomic>

#include "core/steady_clock.h"

namespace memdecay {
namespace {

constexpr std::size_t kUnitFloats = 64;  // what KernelTable::read_streams takes whole

}  // namespace

Result<BandwidthProbe> BandwidthProbe::create(std::uint64_t bytes, const KernelTable& kernels) {
  MEMDECAY_ASSIGN_OR_RETURN(AnonymousMemory memory, AnonymousMemory::allocate(bytes));
  const std::span<float> floats(reinterpret_cast<float*>(memory.data()), bytes / sizeof(float));
  std::fill(floats.begin(), floats.end(), 1.0F);
  return BandwidthProbe(std::move(memory), kernels);
}

double BandwidthProbe::measure(ThreadTeam& team, int passes) const {
  const auto* floats = reinterpret_cast<const float*>(memory_.data());
  const std::size_t part = memory_.size() / sizeof(float) / static_cast<std::size_t>(team.size()) /
                           kUnitFloats * kUnitFloats;
  double best = 0;
  std::atomic<float> sink{0};  // keeps the reads
  for (int pass = 0; pass < passes; ++pass) {
    const std::int64_t start = steady_now_ns();
    team.run([&](ThreadTeam::Member& member) {
      sink = kernels_->read_streams(floats + part * static_cast<std::size_t>(member.rank()), part);
    });
    const double seconds = static_cast<double>(steady_now_ns() - start) / 1e9;
    const auto bytes = static_cast<double>(part * sizeof(float)) * team.size();
    best = std::max(best, bytes / seconds);
  }
  return best;
}

}  // namespace memdecay
