// How fast this machine's threads read memory now: the ruler that decode speed is held against.
//
// Every thread reads its part of one buffer in four streams, as the matrix-vector kernels do; the
// best pass of several counts. On a shared host the figure moves from minute to minute: probe
// beside the measurement that it judges.
#pragma once

#include <cstdint>

#include "core/status.h"
#include "engine/engine.h"
#include "sys/memory.h"
#include "sys/thread_team.h"

namespace memdecay {

class BandwidthProbe {
 public:
  /// A buffer of `bytes`, written once so that every page is there. Larger than the last-level
  /// cache, it measures DRAM; of a model's size, it measures what that model can get.
  static Result<BandwidthProbe> create(std::uint64_t bytes, const KernelTable& kernels);

  /// Bytes a second, the best of `passes` over the buffer by all members of the team.
  double measure(ThreadTeam& team, int passes) const;

 private:
  BandwidthProbe(AnonymousMemory memory, const KernelTable& kernels)
      : memory_(std::move(memory)), kernels_(&kernels) {}
  AnonymousMemory memory_;
  const KernelTable* kernels_;
};

}  // namespace memdecay
