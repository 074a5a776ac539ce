#include "sys/thread_team.h"

#include <immintrin.h>

#include "core/check.h"

namespace memdecay {
namespace {

// Spins before a waiting member gives its core away: about 4096 pauses of some 40 cycles, 50 us, is
// longer than any honest imbalance between members and short enough for a team with more members
// than cores.
constexpr int kSpinsBeforeYield = 4096;
// Spins before an idle worker parks: about 200 us, the gap between two tokens of one request.
constexpr int kSpinsBeforePark = 16384;

void pause() {
  _mm_pause();
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
  running_.fetch_sub(1, std::memory_order_acq_rel);
  for (int spins = 0; running_.load(std::memory_order_acquire) != 0; ++spins) {
    spins < kSpinsBeforeYield ? pause() : std::this_thread::yield();
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

bool ThreadTeam::wait_for_run(std::uint32_t seen) {
  for (int spins = 0; run_number_.load(std::memory_order_acquire) == seen; ++spins) {
    if (spins < kSpinsBeforePark) {
      pause();
    } else {
      run_number_.wait(seen, std::memory_order_acquire);
    }
  }
  return !stop_.load(std::memory_order_relaxed);
}

void ThreadTeam::work(int rank) {
  for (std::uint32_t seen = 0; wait_for_run(seen); ++seen) {
    Member self(*this, rank);
    (*function_)(self);
    running_.fetch_sub(1, std::memory_order_acq_rel);
  }
}

void ThreadTeam::barrier_wait() {
  const std::uint32_t phase = phase_.load(std::memory_order_acquire);
  if (arrived_.fetch_add(1, std::memory_order_acq_rel) + 1 == static_cast<std::uint32_t>(size())) {
    arrived_.store(0, std::memory_order_relaxed);
    phase_.store(phase + 1, std::memory_order_release);
    return;
  }
  for (int spins = 0; phase_.load(std::memory_order_acquire) == phase; ++spins) {
    spins < kSpinsBeforeYield ? pause() : std::this_thread::yield();
  }
}

}  // namespace memdecay
