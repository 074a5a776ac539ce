"""The stages of ./test: what they count, and that a failure stays one."""

import sys

import pytest
import run_stages
from run_stages import Outcome, Running, Stage


@pytest.fixture(autouse=True)
def folders(tmp_path, monkeypatch):
    monkeypatch.setattr(run_stages, "LOGS", tmp_path)
    monkeypatch.setattr(run_stages, "ROOT", tmp_path)
    monkeypatch.setattr(run_stages, "REPORTS", tmp_path / "reports")


def python(code: str) -> list[str]:
    return [sys.executable, "-c", code]


def outcome_of(*commands, limit=30, **fields) -> Outcome:
    return Running(Stage("x", "says", list(commands), limit, **fields)).finish()


def test_a_command_that_succeeds_counts_one():
    outcome = outcome_of(python("print(1)"), lambda: python("print(2)"))
    assert (outcome.ok, outcome.passed, outcome.failed) == (True, 1, 0)


def test_a_command_that_fails_ends_the_stage(tmp_path):
    outcome = outcome_of(python("import sys; sys.exit(3)"), python("open('later', 'w')"))
    assert (outcome.ok, outcome.failed, outcome.why) == (False, 1, "exit status 3")
    assert not (tmp_path / "later").exists()


def test_a_command_that_is_not_there_and_one_that_hangs():
    assert outcome_of(["no-such-program"]).why.startswith("cannot run no-such-program")
    assert outcome_of(python("import time; time.sleep(60)"), limit=1).why == "not done after 1 s"


def test_cases_are_counted_from_the_reports(tmp_path):
    report = ('<testsuites><testsuite><testcase status="run" result="completed"/><testcase status="run"><failure/></testcase>'
              '<testcase status="run" result="skipped"><skipped/></testcase><testcase status="notrun"/>'
              "</testsuite></testsuites>")
    code = f"open({str(tmp_path / 'reports/x/a.xml')!r}, 'w').write({report!r}); import sys; sys.exit(1)"
    outcome = outcome_of(python(code), reports=True)
    assert (outcome.ok, outcome.passed, outcome.failed, outcome.skipped) == (False, 1, 1, 1)


def test_stages_go_on_after_a_failure_and_wait_for_what_they_need(capsys):
    stages = [Stage("aside", "", [python("import time; time.sleep(0.5); open('made', 'w')")], 30, aside=True),
              Stage("bad", "", [python("import sys; sys.exit('words')")], 30),
              Stage("user", "", [python("open('made')")], 30, needs=("aside", "bad"))]
    outcomes = run_stages.run(stages)
    assert [(outcome.stage.name, outcome.ok) for outcome in outcomes] == [("bad", False), ("aside", True), ("user", True)]
    assert "| words" in capsys.readouterr().out


def test_what_failed_early_is_shown_before_the_end():
    log = ["[1/99] g++ -Werror -c a.cc", "FAILED: a.o", "a.cc:1:2: error: no", "[2/99] error_test.cc.o"] + [str(i) for i in range(60)]
    shown = run_stages.telling_lines(log)
    assert shown[:3] == ["FAILED: a.o", "a.cc:1:2: error: no", "..."] and shown[3:] == log[-60:]
    assert run_stages.telling_lines(log[:4]) == log[:4]


def test_choosing_takes_what_is_needed(monkeypatch):
    monkeypatch.setattr(run_stages, "formatted_sources", lambda: [])
    names = [stage.name for stage in run_stages.choose(run_stages.stages(), ["unit-asan"])]
    assert names == ["models", "asan", "unit-asan"]
