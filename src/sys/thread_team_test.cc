#include "sys/thread_team.h"

#include <gtest/gtest.h>

#include <chrono>
#include <numeric>

namespace memdecay {
namespace {

TEST(ThreadTeam, EveryMemberRunsOnceAndSharesCoverTheRange) {
  for (const int threads : {1, 2, 5}) {
    ThreadTeam team(threads);
    for (int round = 0; round < 50; ++round) {
      std::vector<int> hits(103, 0);
      team.run([&](ThreadTeam::Member& member) {
        const auto share = member.share(static_cast<int>(hits.size()));
        for (int i = share.begin; i < share.end; ++i) ++hits[static_cast<std::size_t>(i)];
      });
      EXPECT_EQ(std::accumulate(hits.begin(), hits.end(), 0), 103);
    }
  }
}

TEST(ThreadTeam, BarrierOrdersPhases) {
  ThreadTeam team(3);
  std::vector<int> value(3, 0);
  std::atomic<bool> torn{false};
  team.run([&](ThreadTeam::Member& member) {
    const auto self = static_cast<std::size_t>(member.rank());
    for (int phase = 1; phase <= 500; ++phase) {
      value[self] = phase;
      member.barrier();
      for (const int other : value)
        if (other != phase) torn = true;
      member.barrier();
    }
  });
  EXPECT_FALSE(torn);
}

TEST(ThreadTeam, EveryUnitOfEveryPhaseIsTakenOnce) {
  for (const int threads : {1, 3}) {
    ThreadTeam team(threads);
    std::vector<std::atomic<int>> taken(7 * 40);
    team.run([&](ThreadTeam::Member& member) {
      for (std::size_t phase = 0; phase < 40; ++phase) {
        for (int unit = member.take(); unit < 7; unit = member.take()) {
          ++taken[phase * 7 + static_cast<std::size_t>(unit)];
        }
        member.barrier();
      }
    });
    for (const auto& count : taken) EXPECT_EQ(count, 1);
  }
}

TEST(ThreadTeam, WakesParkedWorkers) {
  ThreadTeam team(2);
  std::atomic<int> ran{0};
  for (int round = 0; round < 3; ++round) {
    std::this_thread::sleep_for(std::chrono::milliseconds(30));  // long past the spin window
    team.run([&](ThreadTeam::Member&) { ++ran; });
  }
  EXPECT_EQ(ran, 6);
}

}  // namespace
}  // namespace memdecay
