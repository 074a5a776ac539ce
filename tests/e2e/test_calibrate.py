"""`calibrate decay`: recorded runs in, a table, a plot and a config out, and the config works."""

import json
import math

import pytest
from program import fails, memdecay, misused, succeeds

REGIONS = ["system", "decision", "tool", "recent", "ordinary"]
INITIAL = {"system": 100, "decision": 10, "tool": 5, "recent": 2, "ordinary": 1}


@pytest.fixture(scope="module")
def calibrated(shop_runs, tmp_path_factory):
    out = tmp_path_factory.mktemp("calibrated") / "new" / "folder"
    ended = memdecay("calibrate", "decay", shop_runs, "-m", "smollm2", "-t", "1", "--out", out, "--min-tokens", "300",
                     "--max-tokens", "3000", "--quiet", "100")
    assert ended.status == 0, ended
    return out, ended


@pytest.mark.model("smollm2")
def test_a_table_a_plot_and_a_config_come_out(calibrated):
    out, ended = calibrated
    rows = {line.split()[0]: line.split() for line in ended.out.splitlines() if line and line.split()[0] in REGIONS}
    assert list(rows) == REGIONS
    assert "100 %" in ended.err and "wrote" in ended.err
    svg = (out / "survival.svg").read_text()
    assert svg.startswith("<svg") and svg.rstrip().endswith("</svg>")
    config = json.loads((out / "decay.json").read_text())
    assert list(config["regions"]) == REGIONS
    for name, region in config["regions"].items():
        steps = region["survival_steps"]
        assert region["initial"] == INITIAL[name]
        assert region["ended"] <= region["items"]
        expected = 0 if steps is None else math.log(region["initial"] / config["threshold"]) / steps
        assert region["decay"] == pytest.approx(expected), "decay and survival say the same"
    assert config["regions"]["system"]["decay"] == 0
    assert config["regions"]["tool"]["items"] > 5


@pytest.mark.model("smollm2")
def test_the_config_is_taken(calibrated):
    out, _ = calibrated
    succeeds("run", "-m", "smollm2", "-t", "1", "-p", "Hello", "-n", "2", "--kv-budget", "64MiB", "--policy-config",
             out / "decay.json")


@pytest.mark.parametrize("text, says", [
    ("", "no JSON object"), ("{}", "names no regions"), ('{"regions": {"tools": {}}}', 'no region "tools"; there are system'),
    ('{"regions": {"tool": {"decay": -1}}}', "regions.tool.decay"), ('{"regions": {"tool": {"dacay": 1}}}', 'no member "dacay"'),
])
@pytest.mark.model("smollm2")
def test_a_bad_config_is_refused_in_words(tmp_path, text, says):
    config = tmp_path / "config.json"
    config.write_text(text)
    said = fails("run", "-m", "smollm2", "-p", "x", "--policy-config", config)
    assert says in said and str(config) in said


@pytest.mark.model("smollm2")
def test_a_config_that_is_not_there(tmp_path):
    assert "cannot be read" in fails("run", "-m", "smollm2", "-p", "x", "--policy-config", tmp_path / "none.json")


@pytest.mark.model("smollm2")
def test_runs_that_make_no_session(shop_runs, tmp_path):
    said = fails("calibrate", "decay", shop_runs, "-m", "smollm2", "--out", tmp_path / "out", "--min-tokens", "90000", "--max-tokens",
                 "90000")
    assert "--min-tokens" in said


@pytest.mark.parametrize("words", [["--wished-share", "0"], ["--threshold", "2"], ["--quiet", "-1"], ["--sessions", "0"],
                                   ["--looks-above", "x"]], ids=" ".join)
def test_wrong_usage(words):
    misused("calibrate", "decay", "runs.json", *words)


def test_help_teaches():
    out = succeeds("calibrate", "decay", "--help")
    assert "ln(initial / threshold)" in out and "memdecay calibrate decay runs/" in out and "--policy-config" in out
