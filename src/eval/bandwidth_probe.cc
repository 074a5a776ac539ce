#include "eval/bandwidth_probe.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstring>

namespace memdecay {
namespace {

constexpr std::size_t kStreams = 4;

/// Reads [begin, end) as four streams; the sum keeps the compiler from dropping the loads.
std::uint64_t read_streams(const std::byte* begin, std::size_t bytes) {
  const std::size_t words = bytes / kStreams / sizeof(std::uint64_t) / 8 * 8;
  std::array<std::array<std::uint64_t, 8>, kStreams> sums{};
  for (std::size_t at = 0; at < words; at += 8) {
    for (std::size_t stream = 0; stream < kStreams; ++stream) {
      std::array<std::uint64_t, 8> line;
      std::memcpy(line.data(), begin + (stream * words + at) * sizeof(std::uint64_t), sizeof line);
      for (std::size_t i = 0; i < 8; ++i) sums[stream][i] += line[i];
    }
  }
  std::uint64_t total = 0;
  for (const auto& stream : sums) {
    for (const std::uint64_t sum : stream) total += sum;
  }
  return total;
}

}  // namespace

Result<BandwidthProbe> BandwidthProbe::create(std::uint64_t bytes) {
  MEMDECAY_ASSIGN_OR_RETURN(AnonymousMemory memory, AnonymousMemory::allocate(bytes));
  std::memset(memory.data(), 1, bytes);
  return BandwidthProbe(std::move(memory));
}

double BandwidthProbe::measure(ThreadTeam& team, int passes) const {
  double best = 0;
  std::atomic<std::uint64_t> sink{0};
  for (int pass = 0; pass < passes; ++pass) {
    const auto start = std::chrono::steady_clock::now();
    team.run([&](ThreadTeam::Member& member) {
      const std::size_t part = memory_.size() / static_cast<std::size_t>(member.size());
      sink += read_streams(memory_.data() + part * static_cast<std::size_t>(member.rank()), part);
    });
    const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
    best = std::max(best, static_cast<double>(memory_.size()) / seconds.count());
  }
  return best;
}

}  // namespace memdecay
