"""Help that teaches, and wrong usage: status 2 before anything is loaded."""

import re

import pytest
from program import memdecay, misused, succeeds

COMMANDS = ["chat", "run", "demo", "play", "eval", "bench", "perplexity", "tokenize", "template", "inspect", "calibrate"]


def test_the_program_names_its_commands_and_says_what_its_status_means():
    out = succeeds("--help")
    for command in COMMANDS:
        assert re.search(rf"^  {command}\s", out, re.MULTILINE), command
    assert "2 wrong usage" in out and "Examples:" in out
    assert re.fullmatch(r"memdecay \d+\.\d+\.\d+\n", succeeds("--version"))


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_teaches_by_example(command):
    out = succeeds(command, "--help")
    assert "Example" in out and f"memdecay {command}" in out
    assert max(map(len, out.splitlines())) < 200


@pytest.mark.parametrize("words", [
    [], ["frobnicate"], ["run"], ["run", "-p"], ["run", "-p", "x", "--frobnicate"],
    ["run", "-p", "x", "--kv-budget", "12apples"], ["run", "-p", "x", "--kv-budget", "0"], ["run", "-p", "x", "--kv-budget", "-1"],
    ["run", "-p", "x", "--kv-budget", ""], ["run", "-p", "x", "--kv-budget", "99999999999GiB"],
    ["run", "-p", "x", "-c", "-1"], ["run", "-p", "x", "-c", "0x"], ["run", "-p", "x", "-c", "99999999999"],
    ["run", "-p", "x", "-n", "-1"], ["run", "-p", "x", "-n", "many"], ["run", "-p", "x", "-t", "-1"], ["run", "-p", "x", "-t", "9999"],
    ["run", "-p", "x", "--seed", "-1"], ["run", "-p", "x", "--seed", "x"], ["run", "-p", "x", "--temp", "nan"],
    ["run", "-p", "x", "--temp", "inf"], ["run", "-p", "x", "--top-p", "0"], ["run", "-p", "x", "--top-p", "nan"],
    ["run", "-p", "x", "--min-p", "1.5"], ["run", "-p", "x", "--top-k", "-1"], ["run", "-p", "x", "--page-tokens", "17"],
    ["run", "-p", "x", "--precision", "half"], ["chat", "-n", "0"], ["demo", "-n", "0"],
    ["bench", "-p", "0", "-n", "0"], ["bench", "-d", "-1"], ["bench", "-p", "-5"], ["bench", "-r", "0"], ["bench", "-t", "0"],
    ["bench", "-o", "xml"], ["bench", "-p", "512,x"], ["bench", "--probe-mib", "0"],
    ["perplexity"], ["perplexity", "smollm2"], ["perplexity", "smollm2", "-f", "x", "-c", "3"],
    ["perplexity", "smollm2", "-f", "x", "--chunks", "0"], ["perplexity", "smollm2", "-f", "x", "--chunks", "-2"],
    ["tokenize"], ["template"], ["inspect"], ["inspect", "smollm2", "more"],
], ids=" ".join)
def test_wrong_usage(words):
    said = misused(*words)
    assert len(said) < 300


@pytest.mark.parametrize("words, says", [
    (["frobnicate"], '"frobnicate" is no command; there are chat, run, demo, play, '),
    (["Run"], '"Run" is no command; did you mean run?'),
    (["inspekt", "smollm2"], '"inspekt" is no command; did you mean inspect?'),
    (["perp"], '"perp" is no command; did you mean perplexity?'),
    (["--frob"], "--frob is no flag of memdecay\n"), (["--frob", "run", "-p", "x"], "--frob is no flag of memdecay"),
    (["run", "--frob"], "--frob is no flag of memdecay run\n"),
    (["run", "--promt", "x"], "--promt is no flag of memdecay run; did you mean --prompt?"),
    (["run", "-p", "x", "--kv-buget=3MiB"], "--kv-buget is no flag of memdecay run; did you mean --kv-budget?"),
    (["inspect", "smollm2", "more"], 'memdecay inspect takes no further word "more"'),
    ([], "a command is missing: chat, run, "),
    (["run"], "a text (--prompt TEXT, or --file FILE) is required"),
    (["run", "-p", "x", "-f", "y"], "excludes"),
    *[([command, *more], "a model (MODEL, or -m MODEL) is required") for command, *more in
      [["inspect"], ["tokenize"], ["template"], ["perplexity", "-f", "x"]]],
    (["run", "-p", "x", "-n", "abc"], '"abc" is no whole number'), (["run", "-p", "x", "-n", "1.5"], '"1.5" is no whole number'),
    (["run", "-p", "x", "-n", "-1"], "-1 is not between 0 and "), (["run", "-p", "x", "--top-p", "x"], '"x" is no finite number'),
    (["run", "-p", "x", "--top-p", "1.5"], "1.5 is not between "), (["bench", "-p", "512,x"], '"x" is no whole number'),
    (["run", "-p", "x", "--kv-budget", "12apples"], "12apples"), (["run", "-p", "x", "--kv-budget", "12apples"], "--kv-budget"),
], ids=str)
def test_wrong_usage_names_what_is_wrong(words, says):
    assert says in misused(*words)


def test_help_is_for_people():
    for command in COMMANDS:
        out = succeeds(command, "--help")
        assert "Usage: memdecay " + command in out and " INT" not in out and " in [" not in out
    assert "Usage: memdecay " in succeeds("--help")


def test_help_goes_to_stdout_and_errors_do_not():
    assert memdecay("--help").err == ""
    assert memdecay("run").out == ""
