#include "policy/watermarks.h"

#include <gtest/gtest.h>

namespace memdecay {
namespace {

TEST(Watermarks, GentleBelowPressedAboveWithHysteresis) {
  Watermarks marks;
  EXPECT_EQ(marks.demand(500, 1000).budget_bytes, 600U);
  EXPECT_EQ(marks.demand(500, 1000).urgency, Urgency::kGentle);
  EXPECT_EQ(marks.demand(800, 1000).urgency, Urgency::kGentle) << "at the mark is not above it";
  EXPECT_EQ(marks.demand(801, 1000).urgency, Urgency::kPressed);
  EXPECT_EQ(marks.demand(801, 1000).budget_bytes, 700U);
  EXPECT_EQ(marks.demand(750, 1000).urgency, Urgency::kPressed) << "on until the low mark";
  EXPECT_EQ(marks.demand(701, 1000).urgency, Urgency::kPressed);
  EXPECT_EQ(marks.demand(700, 1000).urgency, Urgency::kGentle);
  EXPECT_EQ(marks.demand(750, 1000).urgency, Urgency::kGentle);
}

TEST(Watermarks, ABudgetOfNothingIsPressedByAnything) {
  Watermarks marks;
  EXPECT_FALSE((static_cast<void>(marks.demand(0, 0)), marks.pressed()));
  EXPECT_TRUE((static_cast<void>(marks.demand(1, 0)), marks.pressed()));
}

}  // namespace
}  // namespace memdecay
