#include "sys/cpu.h"

#include <gtest/gtest.h>

#include <thread>

namespace memdecay {
namespace {

TEST(Cpu, UsableCoresAreAtLeastOneAndNoMoreThanTheMachineHas) {
  EXPECT_GE(usable_cores(), 1);
  EXPECT_LE(usable_cores(), static_cast<int>(std::max(1U, std::thread::hardware_concurrency())));
}

}  // namespace
}  // namespace memdecay
