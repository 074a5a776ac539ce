#include "core/text_hash.h"

#include <gtest/gtest.h>

namespace memdecay {
namespace {

TEST(TextHash, IsFnv1a) {  // published test vectors
  EXPECT_EQ(text_hash(""), 0xCBF29CE484222325U);
  EXPECT_EQ(text_hash("a"), 0xAF63DC4C8601EC8CU);
  EXPECT_EQ(text_hash("foobar"), 0x85944171F73967E8U);
}

TEST(TextHash, GoesOnWhereItEndedAndDependsOnTheSeed) {
  EXPECT_EQ(text_hash_of_more(text_hash("foo"), "bar"), text_hash("foobar"));
  EXPECT_NE(text_hash("foobar", 1), text_hash("foobar"));
}

}  // namespace
}  // namespace memdecay
