#!/usr/bin/env python3
"""The stages of ./test: runs them one after another, goes on after a failure, and sums up.

    run_stages.py [--quick | --list | STAGE...]

Each stage writes its log to build/test-logs/STAGE.log, and shows its errors and its end when the stage fails. Test programs report through
GoogleTest's XML and pytest's, so the closing line counts test cases; every stage that is no test program counts
as one. Exit status 0 when nothing failed.
"""

import argparse
import collections.abc
import dataclasses
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
import xml.etree.ElementTree as xml

ROOT = pathlib.Path(__file__).resolve().parents[1]
BUILD = ROOT / "build"
LOGS = BUILD / "test-logs"
REPORTS = BUILD / "test-reports"
CORES = os.cpu_count() or 1
SHOWN_LINES = 60
SHOWN_ERRORS = 20
# How compilers, ninja, GoogleTest and pytest begin what they say of an error; -Werror=... in a command line is none.
ERROR = re.compile(r"^FAILED: |^FAILED |\berror: |\[  FAILED  \]")
# The modules whose code runs on several threads: ThreadSanitizer builds take long, so it looks at these.
THREADED = ["sys_test", "kernels_test", "transformer_test", "engine_test"]
# The limits catch a stage that hangs; together the usual times stay below half an hour.
LONG, SHORT = 1800, 300

Command = list[str]

@dataclasses.dataclass
class Stage:
    name: str
    says: str
    # A function gives a command whose arguments are known only when its turn has come.
    commands: list[Command | collections.abc.Callable[[], Command]]
    limit_seconds: int
    # Stages that come before it; it runs even when they failed, to show all there is to see.
    needs: tuple[str, ...] = ()
    # Runs beside the stages after it; who needs it waits for it.
    aside: bool = False
    environment: dict[str, str] = dataclasses.field(default_factory=dict)
    # Whether the commands report test cases to REPORTS/<name>.
    reports: bool = False


@dataclasses.dataclass
class Outcome:
    stage: Stage
    ok: bool
    seconds: float
    passed: int = 0
    failed: int = 0
    skipped: int = 0
    why: str = ""


def python(script: str, *arguments: str) -> Command:
    return [sys.executable, str(ROOT / "tools" / script), *arguments]


def configure(preset: str) -> Command:
    command = ["cmake", "--preset", preset, "--log-level=WARNING"]
    if shutil.which("clang++-19") is None and preset != "gcc":
        older = next((version for version in (16, 14) if shutil.which(f"clang++-{version}")), 19)
        command += [f"-DCMAKE_C_COMPILER=clang-{older}", f"-DCMAKE_CXX_COMPILER=clang++-{older}"]
    return command


def build(preset: str, *targets: str) -> Command:
    return ["cmake", "--build", str(BUILD / preset), "--", "-k", "0", *targets]


def existing(preset: str, targets: list[str]) -> list[str]:
    """Those of the targets that this tree has."""
    known = subprocess.run(["ninja", "-C", str(BUILD / preset), "-t", "targets", "all"], capture_output=True,
                           text=True, check=False).stdout
    names = {line.split(":")[0] for line in known.splitlines()}
    return [target for target in targets if target in names]


def threaded_build() -> Command:
    return build("tsan", *existing("tsan", THREADED))


def threaded_tests() -> Command:
    names = "|".join(target.removesuffix("_test") for target in existing("tsan", THREADED))
    return [*unit_tests("tsan"), "-R", f"^({names})$"]


def unit_tests(preset: str) -> Command:
    return ["ctest", "--test-dir", str(BUILD / preset), "--output-on-failure", "--no-tests=error", "-j", str(CORES),
            "--timeout", "900"]


def formatted_sources() -> list[str]:
    listed = subprocess.run(["git", "-C", str(ROOT), "ls-files", "-z", "*.h", "*.cc", "*.c"], capture_output=True,
                            check=True).stdout.decode()
    return [name for name in listed.split("\0") if name and (ROOT / name).is_file()]


def stages() -> list[Stage]:
    return [
        Stage("models", "fetch the models that tests read",
              [python("fetch_model.py", "smollm2", "qwen-0.5b", "qwen-1.5b", "gemma3-270m")], LONG, aside=True),
        Stage("layers", "no module includes what its floor may not", [python("check_layers.py")], SHORT),
        Stage("style", "sizes, names and paths", [python("check_style.py")], SHORT),
        Stage("format", "clang-format changes nothing",
              [["clang-format-14", "--dry-run", "-Werror", *formatted_sources()]], SHORT),
        Stage("tools", "the tests of the tools",
              [[sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "tests/tools",
                f"--junitxml={REPORTS / 'tools' / 'pytest.xml'}"]], SHORT, reports=True),
        Stage("dev", "build with clang, warnings are errors", [configure("dev"), build("dev")], LONG),
        Stage("unit", "the unit tests", [unit_tests("dev")], LONG, needs=("dev", "models"), reports=True),
        Stage("e2e", "the program on real models, as its users run it",
              [[sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "tests/e2e",
                f"--junitxml={REPORTS / 'e2e' / 'pytest.xml'}"]], LONG, needs=("dev", "models"),
              environment={"MEMDECAY_BINARY": str(BUILD / "dev" / "src" / "cli" / "memdecay")}, reports=True),
        Stage("headers", "every header compiles alone", [build("dev", "check_headers")], LONG, needs=("dev",)),
        Stage("tidy", "clang-tidy finds nothing", [python("run_tidy.py", str(BUILD / "dev"))], LONG, needs=("dev",)),
        Stage("gcc", "build with g++, warnings are errors", [configure("gcc"), build("gcc")], LONG),
        Stage("asan", "build for AddressSanitizer and UBSan", [configure("asan"), build("asan")], LONG),
        Stage("unit-asan", "the unit tests under them", [unit_tests("asan")], LONG, needs=("asan", "models"),
              environment={"UBSAN_OPTIONS": "print_stacktrace=1", "MEMDECAY_SANITIZED": "1"}, reports=True),
        Stage("tsan", "build the threaded modules for ThreadSanitizer", [configure("tsan"), threaded_build], LONG),
        Stage("unit-tsan", "their unit tests under it", [threaded_tests], LONG, needs=("tsan", "models"),
              environment={"TSAN_OPTIONS": "halt_on_error=1", "MEMDECAY_SANITIZED": "1"}, reports=True),
    ]


def count_cases(folder: pathlib.Path, outcome: Outcome) -> None:
    for report in folder.glob("*.xml"):
        try:
            cases = list(xml.parse(report).getroot().iter("testcase"))
        except xml.ParseError:  # a program that crashed while it wrote
            outcome.failed += 1
            continue
        for case in cases:
            if case.find("failure") is not None or case.find("error") is not None:
                outcome.failed += 1
            elif case.find("skipped") is not None or case.get("result") == "skipped":
                outcome.skipped += 1
            elif case.get("status") != "notrun":
                outcome.passed += 1


class Running:
    """A stage that has begun."""

    def __init__(self, stage: Stage):
        self.stage = stage
        self.log = LOGS / f"{stage.name}.log"
        self._began = time.monotonic()
        self._reports = REPORTS / stage.name
        shutil.rmtree(self._reports, ignore_errors=True)
        self._reports.mkdir(parents=True)
        self._environment = {**os.environ, **stage.environment, "NINJA_STATUS": "[%f/%t] "}
        if stage.reports:
            self._environment["GTEST_OUTPUT"] = f"xml:{self._reports}/"
        self.log.write_text("", encoding="utf-8")
        self._ended: float | None = None
        self._first = self._start(stage.commands[0]) if stage.aside else None
        if self._first:  # its seconds are its own, not those until somebody needs it
            threading.Thread(target=self._note_end, args=(self._first,), daemon=True).start()

    def finish(self) -> Outcome:
        why = self._finish_commands()
        outcome = Outcome(self.stage, not why, (self._ended or time.monotonic()) - self._began, why=why)
        if self.stage.reports:
            count_cases(self._reports, outcome)
        if not outcome.ok and outcome.failed == 0:
            outcome.failed = 1
        if outcome.ok and outcome.passed + outcome.failed + outcome.skipped == 0:
            outcome.passed = 1
        return outcome

    def stop(self) -> None:
        if self._first:
            self._kill(self._first)

    def _note_end(self, process: subprocess.Popen) -> None:
        process.wait()
        self._ended = time.monotonic()

    def _finish_commands(self) -> str:
        """Why the stage fails, or nothing."""
        for command in self.stage.commands:
            words = command() if callable(command) else command
            try:
                process, self._first = self._first or self._start(words), None
            except OSError as error:
                return f"cannot run {words[0]}: {error.strerror}"
            left = self.stage.limit_seconds - (time.monotonic() - self._began)
            try:
                status = process.wait(timeout=max(1.0, left))
            except subprocess.TimeoutExpired:
                self._kill(process)
                return f"not done after {self.stage.limit_seconds} s"
            except KeyboardInterrupt:
                self._kill(process)
                raise
            if status:
                return f"exit status {status}"
        return ""

    def _start(self, words: Command) -> subprocess.Popen:
        # In a session of its own, so that it ends with all that it started.
        with open(self.log, "a", encoding="utf-8") as log:
            return subprocess.Popen(words, cwd=ROOT, env=self._environment, stdout=log, stderr=subprocess.STDOUT,
                                    stdin=subprocess.DEVNULL, start_new_session=True)

    @staticmethod
    def _kill(process: subprocess.Popen) -> None:
        try:
            os.killpg(process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        process.wait()


def telling_lines(log: list[str]) -> list[str]:
    """The end of a log, after the first errors of what stands before it: a build goes on behind them."""
    errors = [line for line in log[:-SHOWN_LINES] if ERROR.search(line)]
    return errors[:SHOWN_ERRORS] + ["..."] * bool(errors) + log[-SHOWN_LINES:]


def report(running: Running, outcome: Outcome) -> None:
    counts = f"{outcome.passed} passed" + f", {outcome.failed} failed" * bool(outcome.failed)
    counts += f", {outcome.skipped} skipped" * bool(outcome.skipped)
    verdict = "ok  " if outcome.ok else "FAIL"
    print(f"{verdict} {outcome.stage.name:<10} {outcome.seconds:7.1f} s  {outcome.stage.says}: {counts}", flush=True)
    if not outcome.ok:
        for line in telling_lines(running.log.read_text(encoding="utf-8", errors="replace").splitlines()):
            print(f"     | {line}")
        print(f"     {outcome.why}; the whole log: {running.log.relative_to(ROOT)}", flush=True)


def run(chosen: list[Stage]) -> list[Outcome]:
    outcomes: list[Outcome] = []
    aside: dict[str, Running] = {}

    def close(running: Running) -> None:
        outcomes.append(running.finish())
        report(running, outcomes[-1])

    try:
        for stage in chosen:
            for name in stage.needs:
                if name in aside:
                    close(aside.pop(name))
            running = Running(stage)
            if stage.aside:
                aside[stage.name] = running
            else:
                close(running)
        while aside:
            close(aside.popitem()[1])
    finally:
        for running in aside.values():
            running.stop()
    return outcomes


def choose(known: list[Stage], wanted: list[str]) -> list[Stage]:
    names = set(wanted)
    for stage in reversed(known):
        if stage.name in names:
            names.update(stage.needs)
    return [stage for stage in known if stage.name in names]


def main() -> int:
    known = stages()
    parser = argparse.ArgumentParser(prog="./test", description="Runs every check, or the named stages.")
    parser.add_argument("--quick", action="store_true", help="the dev build and its unit tests")
    parser.add_argument("--list", action="store_true", help="name the stages")
    parser.add_argument("stages", nargs="*", metavar="STAGE")
    arguments = parser.parse_args()
    if arguments.list:
        for stage in known:
            print(f"{stage.name:<10} {stage.says}")
        return 0
    unknown = [name for name in arguments.stages if name not in {stage.name for stage in known}]
    if unknown:
        parser.error(f"no stage {', '.join(unknown)}; ./test --list names them")
    LOGS.mkdir(parents=True, exist_ok=True)
    wanted = ["unit"] if arguments.quick else arguments.stages
    began = time.monotonic()
    try:
        outcomes = run(choose(known, wanted) if wanted else known)
    except KeyboardInterrupt:
        print("interrupted")
        return 130
    bad = [outcome.stage.name for outcome in outcomes if not outcome.ok]
    passed, failed, skipped = (sum(getattr(outcome, kind) for outcome in outcomes)
                               for kind in ("passed", "failed", "skipped"))
    if bad:
        print(f"failing stages: {', '.join(bad)}")
    print(f"{passed} passed, {failed} failed" + f", {skipped} skipped" * bool(skipped)
          + f" in {time.monotonic() - began:.0f} s")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
