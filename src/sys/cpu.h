// cpu: how many processor cores this process may use.
#pragma once

namespace memdecay {

/// Cores by the affinity mask and the cgroup's CPU quota (v2 cpu.max, rounded up), at least 1.
/// Reads the system each time.
int usable_cores();

}  // namespace memdecay
