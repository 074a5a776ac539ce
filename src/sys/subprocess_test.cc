#include "sys/subprocess.h"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <thread>

namespace memdecay {
namespace {

CommandResult run(const std::vector<std::string>& arguments) {
  return run_command(arguments).value();
}

TEST(Subprocess, TakesOutputAndExitStatus) {
  const CommandResult result = run({"sh", "-c", "echo one; echo two; exit 7"});
  EXPECT_EQ(result.output, "one\ntwo\n");
  EXPECT_EQ(result.exit_status, 7);
}

TEST(Subprocess, ArgumentsPassNoShell) {
  const std::string odd = "a b'\"$HOME`id`\n*;";
  EXPECT_EQ(run({"printf", "%s|%s", odd, ""}).output, odd + "|");
}

TEST(Subprocess, ASignalIsToldAsAShellTellsIt) {
  EXPECT_EQ(run({"sh", "-c", "kill -9 $$"}).exit_status, 128 + 9);
}

TEST(Subprocess, InheritsTheEnvironment) {
  setenv("MEMDECAY_SUBPROCESS_TEST", "seen", 1);
  EXPECT_EQ(run({"sh", "-c", "printf %s \"$MEMDECAY_SUBPROCESS_TEST\""}).output, "seen");
  unsetenv("MEMDECAY_SUBPROCESS_TEST");
}

TEST(Subprocess, TakesMoreThanAPipeHolds) {
  const CommandResult result = run({"head", "-c", "300000", "/dev/zero"});
  EXPECT_EQ(result.output, std::string(300000, '\0'));
}

TEST(Subprocess, TooMuchOutputEndsTheProgram) {
  const auto result = run_command({"yes"}, 1000);
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.status().code(), StatusCode::kResourceExhausted);
  EXPECT_EQ(result.status().message(), "yes: it printed more than 1000 bytes");
}

TEST(Subprocess, AProgramThatIsNotThereIsASentence) {
  const auto result = run_command({"memdecay-no-such-program"});
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.status().code(), StatusCode::kNotFound);
  EXPECT_EQ(result.status().message(),
            "cannot run memdecay-no-such-program: No such file or directory");
}

TEST(Subprocess, AFileThatIsNoProgramIsASentence) {
  EXPECT_EQ(run_command({"/dev/null"}).status().code(), StatusCode::kIoError);
}

TEST(Subprocess, TwoThreadsDoNotHoldEachOthersPipes) {
  // A pipe end that leaks into the slow program would keep the quick one from ending.
  std::thread slow([] { EXPECT_EQ(run({"sh", "-c", "sleep 0.3; echo slow"}).output, "slow\n"); });
  for (int i = 0; i < 20; ++i) EXPECT_EQ(run({"echo", "quick"}).output, "quick\n");
  slow.join();
}

}  // namespace
}  // namespace memdecay
