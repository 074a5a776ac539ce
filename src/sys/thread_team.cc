#include "sys/thread_team.h"

#include <immintrin.h>

#include "core/check.h"

namespace memdecay {
namespace {

// Spins before a waiting member sleeps within a run. A pause takes 40 cycles on Zen and 140 on
// recent Intel cores, so this is 30 to 100 us: longer than an honest imbalance between members. Who
// waits longer shares its core with others, and a sleeper is woken sooner than a spinner is
// scheduled again.
constexpr int kSpinsInRun = 2048;
// Spins before an idle worker sleeps between runs: some 200 us, the gap between two tokens of one
// request.
constexpr int kSpinsBetweenRuns = 4096;

/// Waits until `value` is no longer `old`: spins first, then sleeps.
void wait_for_change(const std::atomic<std::uint32_t>& value, std::uint32_t old, int spins) {
  for (int spin = 0; value.load(std::memory_order_acquire) == old; ++spin) {
    if (spin < spins) {
      _mm_pause();
    } else {
      value.wait(old, std::memory_order_acquire);
    }
  }
}

}  // namespace

ThreadTeam::ThreadTeam(int threads) {
  MEMDECAY_CHECK(threads >= 1);
  for (int rank = 1; rank < threads; ++rank) workers_.emplace_back([this, rank] { work(rank); });
}

ThreadTeam::~ThreadTeam() {
  stop_.store(true, std::memory_order_relaxed);
  run_number_.fetch_add(1, std::memory_order_release);
  run_number_.notify_all();
  for (std::thread& worker : workers_) worker.join();
}

void ThreadTeam::run(const Function& function) {
  function_ = &function;
  for (Counter& counter : counters_) counter.next.store(0, std::memory_order_relaxed);
  running_.store(static_cast<std::uint32_t>(size()), std::memory_order_relaxed);
  run_number_.fetch_add(1, std::memory_order_release);
  run_number_.notify_all();
  Member self(*this, 0);
  function(self);
  leave_run();
  for (std::uint32_t running; (running = running_.load(std::memory_order_acquire)) != 0;) {
    wait_for_change(running_, running, kSpinsInRun);
  }
}

int ThreadTeam::Member::take() {
  return team_.counters_[phase_ % 3].next.fetch_add(1, std::memory_order_relaxed);
}

void ThreadTeam::Member::barrier() {
  ++phase_;
  if (rank_ == 0) team_.counters_[phase_ % 3].next.store(0, std::memory_order_relaxed);
  if (size() > 1) team_.barrier_wait();
}

void ThreadTeam::leave_run() {
  running_.fetch_sub(1, std::memory_order_acq_rel);
  running_.notify_one();  // rank 0 may sleep on it
}

void ThreadTeam::work(int rank) {
  for (std::uint32_t seen = 0;; ++seen) {
    wait_for_change(run_number_, seen, kSpinsBetweenRuns);
    if (stop_.load(std::memory_order_relaxed)) return;
    Member self(*this, rank);
    (*function_)(self);
    leave_run();
  }
}

void ThreadTeam::barrier_wait() {
  const std::uint32_t phase = phase_.load(std::memory_order_acquire);
  if (arrived_.fetch_add(1, std::memory_order_acq_rel) + 1 == static_cast<std::uint32_t>(size())) {
    arrived_.store(0, std::memory_order_relaxed);
    phase_.store(phase + 1, std::memory_order_release);
    phase_.notify_all();  // no system call while all members spin
    return;
  }
  wait_for_change(phase_, phase, kSpinsInRun);
}

}  // namespace memdecay
