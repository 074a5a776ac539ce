#include "core/units.h"

#include <gtest/gtest.h>

namespace memdecay {
namespace {

TEST(FormatBytes, UsesBinaryPrefixes) {
  EXPECT_EQ(format_bytes(0), "0 B");
  EXPECT_EQ(format_bytes(1023), "1023 B");
  EXPECT_EQ(format_bytes(1536), "1.50 KiB");
  EXPECT_EQ(format_bytes(32 * kMiB), "32.0 MiB");
}

TEST(ParseBytes, AcceptsSuffixesOfPowersOf1024) {
  EXPECT_EQ(parse_bytes("0").value(), 0u);
  EXPECT_EQ(parse_bytes("4096").value(), 4096u);
  EXPECT_EQ(parse_bytes("32MiB").value(), 32 * kMiB);
  EXPECT_EQ(parse_bytes("32 mib").value(), 32 * kMiB);
  EXPECT_EQ(parse_bytes("2g").value(), 2 * kGiB);
  EXPECT_EQ(parse_bytes("7KB").value(), 7 * kKiB);
}

TEST(ParseBytes, RefusesEverythingElse) {
  for (const char* text :
       {"", "MiB", "-1", "1.5G", "12 apples", "9223372036854775808", "9999999T", "1  M"}) {
    EXPECT_FALSE(parse_bytes(text).ok()) << text;
  }
}

}  // namespace
}  // namespace memdecay
