#include "policy/regions/exact_values.h"

#include <gtest/gtest.h>

#include <random>
#include <string>

namespace memdecay {
namespace {

using Found = std::vector<std::pair<std::string, ExactKind>>;

Found found(std::string_view text) {
  Found result;
  for (const ExactValue& value : find_exact_values(text)) {
    result.emplace_back(text.substr(value.begin, value.end - value.begin), value.kind);
  }
  return result;
}

TEST(ExactValues, PlainProseHasNone) {
  EXPECT_EQ(found("The agent's answer: yes, and/or no. Don't go - I won't! (really)"), Found{});
  EXPECT_EQ(found(""), Found{});
  EXPECT_EQ(found("   \n\t"), Found{});
  EXPECT_EQ(found("e.g. this, i.e. that"), Found{});
}

TEST(ExactValues, NumbersDatesAndMoney) {
  EXPECT_EQ(found("pay $1,234.50 on 2024-05-15, at 11:30; 50% of -3."),
            (Found{{"$1,234.50", ExactKind::kNumber},
                   {"2024-05-15", ExactKind::kNumber},
                   {"11:30", ExactKind::kNumber},
                   {"50%", ExactKind::kNumber},
                   {"-3", ExactKind::kNumber}}));
}

TEST(ExactValues, Identifiers) {
  EXPECT_EQ(found("flight HAT170 from JFK for mia_li_3668, write to a.b@x.org; useState gpt-4o."),
            (Found{{"HAT170", ExactKind::kIdentifier},
                   {"JFK", ExactKind::kIdentifier},
                   {"mia_li_3668", ExactKind::kIdentifier},
                   {"a.b@x.org", ExactKind::kIdentifier},
                   {"useState", ExactKind::kIdentifier},
                   {"gpt-4o", ExactKind::kIdentifier}}));
}

TEST(ExactValues, PathsAndAddresses) {
  EXPECT_EQ(found("open /etc/hosts and src/policy/a.cc or https://x.org/q?a=1&b=2, ./run C:\\a\\b"),
            (Found{{"/etc/hosts", ExactKind::kPath},
                   {"src/policy/a.cc", ExactKind::kPath},
                   {"https://x.org/q?a=1&b=2", ExactKind::kPath},
                   {"./run", ExactKind::kPath},
                   {"C:\\a\\b", ExactKind::kPath}}));
  EXPECT_EQ(found("see missing_colon.py"), (Found{{"missing_colon.py", ExactKind::kIdentifier}}));
}

TEST(ExactValues, Hashes) {
  EXPECT_EQ(found("commit 3ea751c and 123e4567-e89b-12d3-a456-426614174000"),
            (Found{{"3ea751c", ExactKind::kHash},
                   {"123e4567-e89b-12d3-a456-426614174000", ExactKind::kHash}}));
  EXPECT_EQ(found("defaced facade"), Found{}) << "words of hex letters are words";
}

TEST(ExactValues, QuotedStringsButNotApostrophes) {
  EXPECT_EQ(found(R"(say "hello there" and 'x y', it's `make all`)"),
            (Found{{"\"hello there\"", ExactKind::kQuoted},
                   {"'x y'", ExactKind::kQuoted},
                   {"`make all`", ExactKind::kQuoted}}));
  EXPECT_EQ(found("an \"open quote\nends here"), Found{});
  EXPECT_EQ(found(R"("a \" b")"), (Found{{R"("a \" b")", ExactKind::kQuoted}}));
}

TEST(ExactValues, JsonLeavesNotKeys) {
  EXPECT_EQ(found(R"({"name": "Mia Li", "age":41, "ok": true, "tags": ["a b"], "none" : null})"),
            (Found{{"\"Mia Li\"", ExactKind::kJsonLeaf},
                   {"41", ExactKind::kJsonLeaf},
                   {"true", ExactKind::kJsonLeaf},
                   {"\"a b\"", ExactKind::kQuoted},
                   {"null", ExactKind::kJsonLeaf}}));
}

TEST(ExactValues, TokensThatShareAByteAreMarked) {
  //                           0123456789012345
  const std::string text = "to HAT170, ok 12";
  const auto values = find_exact_values(text);
  const std::vector<std::uint32_t> ends = {2, 4, 6, 9, 10, 13, 16};
  EXPECT_EQ(mark_exact_tokens(values, ends), (std::vector<std::uint8_t>{0, 1, 1, 1, 0, 0, 1}));
  EXPECT_FLOAT_EQ(exact_share(mark_exact_tokens(values, ends)), 4.0F / 7.0F);
  EXPECT_EQ(exact_share({}), 0.0F);
  EXPECT_TRUE(mark_exact_tokens(values, {}).empty());
}

TEST(ExactValues, AnyBytesGiveOrderedDisjointValues) {
  std::mt19937 random(7);
  const std::string alphabet = "aZ09_/\\.:\"'`-,{} \n\xc3\xa9@~$#";
  for (int round = 0; round < 3000; ++round) {
    std::string text;
    const auto length = random() % 60;
    for (std::size_t i = 0; i < length; ++i) text += alphabet[random() % alphabet.size()];
    std::uint32_t end = 0;
    for (const ExactValue& value : find_exact_values(text)) {
      ASSERT_LE(end, value.begin) << text;
      ASSERT_LT(value.begin, value.end) << text;
      ASSERT_LE(value.end, text.size()) << text;
      end = value.end;
    }
  }
}

}  // namespace
}  // namespace memdecay
