// ThreadTeam: a fixed team of threads that runs one function together (SPMD), for the forward pass.
//
// The caller of run() is rank 0; size() - 1 workers join it. Inside the function the members meet
// at barrier(), which spins (about 100 ns between running threads) and sleeps after a while, so an
// oversubscribed machine still makes progress. Between runs the workers spin for a short window and
// then park on a futex: an idle team costs no CPU. One run at a time, from one thread at a time.
// The function must not throw.
//
// A run is cut into phases by its barriers. Within a phase members may take() units of work from a
// shared counter, so a core that the host slows down takes fewer; share() cuts a range evenly
// instead.
//
// Barrier invariant: every member of a run passes the same number of barriers.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <thread>
#include <vector>

namespace memdecay {

class ThreadTeam {
 public:
  /// What one member of a run knows of itself.
  class Member {
   public:
    int rank() const { return rank_; }
    int size() const { return team_.size(); }
    /// Waits until every member of the run has come here; memory written before is visible after.
    /// Ends the phase.
    void barrier();
    /// The next unit of this phase that nobody has taken: 0, 1, 2, ... Stop when it reaches your
    /// number of units.
    int take();
    /// This member's share of [0, count): contiguous, at most one item larger than another's.
    struct Range {
      int begin, end;
    };
    Range share(int count) const {
      return {static_cast<int>(static_cast<std::int64_t>(count) * rank_ / size()),
              static_cast<int>(static_cast<std::int64_t>(count) * (rank_ + 1) / size())};
    }

   private:
    friend class ThreadTeam;
    Member(ThreadTeam& team, int rank) : team_(team), rank_(rank) {}
    ThreadTeam& team_;
    int rank_;
    std::uint32_t phase_ = 0;
  };
  using Function = std::function<void(Member&)>;

  /// REQUIRES: threads >= 1. Starts threads - 1 workers.
  explicit ThreadTeam(int threads);
  ~ThreadTeam();
  ThreadTeam(const ThreadTeam&) = delete;
  ThreadTeam& operator=(const ThreadTeam&) = delete;

  int size() const { return static_cast<int>(workers_.size()) + 1; }
  /// Runs `function` once on every member; returns when all are done.
  void run(const Function& function);

 private:
  void work(int rank);
  void barrier_wait();
  void leave_run();

  // Each on a line of its own: the counters are written by all members, the phase is read in their
  // spin loops.
  alignas(64) std::atomic<std::uint32_t> arrived_{0};
  alignas(64) std::atomic<std::uint32_t> phase_{0};
  alignas(64) std::atomic<std::uint32_t> run_number_{0};
  alignas(64) std::atomic<std::uint32_t> running_{0};
  // The counter of phase p is counters_[p % 3]: while phase p runs, nobody can be in phase p - 2 or
  // p + 2 any more.
  struct alignas(64) Counter {
    std::atomic<int> next{0};
  };
  std::array<Counter, 3> counters_;
  std::atomic<bool> stop_{false};
  const Function* function_ = nullptr;
  std::vector<std::thread> workers_;
};

}  // namespace memdecay
