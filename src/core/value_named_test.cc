#include "core/value_named.h"

#include <gtest/gtest.h>

namespace memdecay {
namespace {

TEST(ValueNamed, KnowsItsNamesAndSaysThemWhereItKnowsNone) {
  constexpr NamedValues<int, 2> kNames = {{{"one", 1}, {"two", 2}}};
  EXPECT_EQ(value_named("number", "two", kNames).value(), 2);
  const Status unknown = value_named("number", "three", kNames).status();
  EXPECT_EQ(unknown.code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(unknown.message(), "there is no number \"three\"; there are one, two");
  EXPECT_FALSE(value_named("number", "", kNames).ok());
}

}  // namespace
}  // namespace memdecay
