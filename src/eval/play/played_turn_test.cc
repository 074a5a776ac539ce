#include "eval/play/played_turn.h"

#include <gtest/gtest.h>

namespace memdecay {
namespace {

TEST(PlayedTurn, StepsAreToldAsQuantilesAsInResults) {
  PlayedTurn turn;
  EXPECT_EQ(turn.step_ms(0.5), 0);
  turn.step_ns = {9'000'000, 1'000'000, 4'000'000, 2'000'000};
  EXPECT_DOUBLE_EQ(turn.step_ms(0.5), 3);
  EXPECT_DOUBLE_EQ(turn.step_ms(0), 1);
  EXPECT_DOUBLE_EQ(turn.step_ms(1), 9);
  EXPECT_DOUBLE_EQ(turn.ms_per_token(), 4);
}

TEST(PlayedTurn, WhatAnAnswerEvictedIsItsResults) {
  GenerationResult result;
  result.evicted_tokens = 64;
  EXPECT_EQ(turn_of(result, {}).evicted_tokens, 64);
}

}  // namespace
}  // namespace memdecay
