#include "kv/prefix/miss_reason.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace memdecay {
namespace {

struct Row {
  const char* before;
  const char* remembered;
  const char* planned;
  MissKind kind;
  bool in_tools = false;
};

constexpr MissKind kClock = MissKind::kClock;
constexpr MissKind kId = MissKind::kIdentifier;
constexpr MissKind kTools = MissKind::kDifferentTools;
constexpr MissKind kEdited = MissKind::kEditedMessage;

const std::vector<Row> kRows = {
    // Times and dates, cut by tokens at any place.
    {"Current time: 2026-11-30 07:", "04:31\nYou are", "05:02\nYou are", kClock},
    {"Current time: 2026-11-30 07:0", "4:31", "5:02", kClock},
    {"now is 2026-11-", "30T07:04:31Z.", "29T17:04:31Z.", kClock},
    {"at 2026-11-30T07:04:31.", "123+01:00", "456+01:00", kClock},
    {"Today's date is ", "2026-11-30\n", "2026-12-01\n", kClock},
    {"Today is Mon", "day, November 30", "day, December 1", kClock},
    {"Today is ", "Monday, November 30, 2026", "Tuesday, December 1, 2026", kClock},
    {"Today is Monday, ", "November 30", "December 7", kClock},
    {"Date: November ", "30, 2026", "29, 2026", kClock},
    {"Date: November 30, 20", "26", "27", kClock},
    {"Date: ", "30 November 2026", "29 November 2026", kClock},
    {"Cutting Knowledge Date: December 2023\nToday Date: ", "30 Nov 2026", "01 Dec 2026", kClock},
    {"on ", "11/30/2026,", "12/01/2026,", kClock},
    {"on ", "30.11.2026", "1.12.2026", kClock},
    {"(", "7:04 PM)", "11:15 AM)", kClock},
    {"at 7:04 ", "AM", "PM", kClock},
    {"at ", "7:04pm", "7:05pm", kClock},
    {"<timestamp>", "1795935871</timestamp>", "1795935925</timestamp>", kClock},
    {"{\"ts\": ", "1795935871250}", "1795935999001}", kClock},
    {"{\"ts\": 179593", "5871.25}", "6001.5}", kClock},
    {"build ", "20261130T070431Z", "20261201T091500Z", kClock},
    {"elapsed ", "35 seconds", "7 seconds", kClock},
    {"uptime: ", "35", "7", kClock},
    {"Timestamp = ", "88", "91", kClock},
    // Identifiers.
    {"request ", "3f2504e0-4f89-11d3-9a0c-0305e82c3301", "7d444840-9dc0-11d1-b245-5ffdce74fad2",
     kId},
    {"3f2504e0-4f89-11d3-9a0c-", "0305e82c3301 ", "5ffdce74fad2 ", kId},
    {"\"id\": \"chatcmpl-", "9xK2mQ81\"", "7aB3nR55\"", kId},
    {"\"tool_call_id\":\"call_", "a8f3k2m9\"", "b7d1x4q0\"", kId},
    {"commit ", "9fceb02d0ae598e95dc970b74767f19372d61af8",
     "e83c5163316f89bfbde7d9ab23ca2e25604af290", kId},
    {"commit ", "9fceb02 ", "e83c516 ", kId},
    {"/home/run-", "8f3a2c1/out.txt", "77bb10e/out.txt", kId},
    {"request_id: ", "42", "43", kId},
    {"Session ", "7 begins", "8 begins", kId},
    {"x-billing: cc_version=2.1.37; cch=", "a1b2c;", "ffe01;", kId},
    {"user ", "100200300", "100200301", kId},
    // Tools win over identifiers, clocks over tools.
    {"\"name\": \"", "get_weather\"", "get_forecast\"", kTools, true},
    {"\"name\": \"f_", "a8f3k2m9\"", "b7d1x4q0\"", kTools, true},
    {"the date is ", "2026-11-30", "2026-12-01", kClock, true},
    {"]\n", "", "{\"type\": \"function\"", kTools, true},
    // Edits.
    {"You are a ", "helpful", "careful", kEdited},
    {"Please ", "cancel my flight", "book a flight", kEdited},
    {"I have ", "3 apples", "4 apples", kEdited},
    {"costs ", "$120", "$95", kEdited},
    {"version ", "1.2.3", "1.2.4", kEdited},
    {"on ", "2026-11-30", "the next day", kEdited},
    {"id ", "abc", "xyz", kEdited},
    {"we may ", "March on", "see", kEdited},
    {"mode=", "fast", "slow", kEdited},
    {"aspect ", "16:9", "4:3", kEdited},
    {"", "", "", kEdited},
    {"", "\xC3\xA4\xFF", "\xC3\xB6", kEdited},
    {"", "\n", "x", kEdited},
};

TEST(MissReason, TellsWhatDiffers) {
  for (const Row& row : kRows)
    EXPECT_EQ(miss_kind_name(
                  classify_difference({row.before, row.remembered, row.planned, row.in_tools})),
              miss_kind_name(row.kind))
        << row.before << " | " << row.remembered << " | " << row.planned;
}

TEST(MissReason, SaysTheSameWithTheTextsSwapped) {
  for (const Row& row : kRows)
    EXPECT_EQ(classify_difference({row.before, row.planned, row.remembered, row.in_tools}),
              row.kind)
        << row.before << " | " << row.planned << " | " << row.remembered;
}

TEST(MissReason, FindsTheKindWhereverTheTextsAreCut) {
  // The same two prompts, the difference reached after any number of shared bytes.
  const std::string shared = "It is 2026-11-30 07:04:";
  for (std::size_t cut = 0; cut <= shared.size(); ++cut) {
    const std::string tail = shared.substr(cut);
    EXPECT_EQ(classify_difference({shared.substr(0, cut), tail + "31 now", tail + "59 now"}),
              kClock);
  }
}

TEST(MissReason, TimesAndDates) {
  for (const char* word : {"07:04", "7:04", "23:59:60", "07:04:31.123456789", "07:04Z", "7:04am",
                           "07:04+01:00", "07:04-0800", "2026-11-30", "2026/1/2", "30.11.2026",
                           "2026-11-30T07:04", "2026-11-30_07:04:31", "20261130", "1795935871"})
    EXPECT_TRUE(is_time_or_date(word)) << word;
  for (const char* word :
       {"", "7", "25:00", "07:60", "07:4", "7:04x", "2026-13-01", "2026-11-32", "2026-11/30",
        "1.2.3", "10.0.0.12", "20261330", "2795935871", "17959358711", "2026-11-30T",
        "07:04:", "3026-11-30", "123456789012345678901234567890"})
    EXPECT_FALSE(is_time_or_date(word)) << word;
}

TEST(MissReason, Identifiers) {
  for (const char* word : {"3f2504e0-4f89-11d3-9a0c-0305e82c3301", "9fceb02", "call_a8f3k2m9",
                           "123456", "req-8f3a2c1d"})
    EXPECT_TRUE(is_identifier(word)) << word;
  for (const char* word : {"", "-", "hello", "12345", "deadbeef", "gpt4", "helpful_assistant",
                           "3f2504e0-4f89-11d3-9a0c-0305e82c330g!", "section12"})
    EXPECT_FALSE(is_identifier(word)) << word;
}

}  // namespace
}  // namespace memdecay
