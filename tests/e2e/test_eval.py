"""`eval`: recorded runs in, rows and a report out, kept when it is started again."""

import json
import re

import pytest
from program import fails, memdecay, misused, succeeds

pytestmark = pytest.mark.model("smollm2")
WORDS = ("eval", "-m", "smollm2", "-t", "1", "--min-tokens", "300", "--max-tokens", "3000", "--policy", "lru", "--budget", "50%")


def rows_of(out: str) -> list[list[str]]:
    return [line.split() for line in out.splitlines()[1:]]


@pytest.fixture(scope="module")
def evaluated(runs, tmp_path_factory):
    folder = tmp_path_factory.mktemp("eval") / "new" / "folder"
    ended = memdecay(*WORDS, runs, "--kv-format", "fp16", "--out", folder)
    assert ended.status == 0, ended
    return folder, ended


def test_rows_and_a_report_come_out(evaluated):
    folder, ended = evaluated
    (row,) = rows_of(ended.out)
    assert row[:3] == ["lru", "fp16", "50%"]
    (stored,) = json.loads((folder / "results.json").read_text())["rows"]
    assert stored["policy"] == "lru" and stored["model"] == "smollm2" and stored["sessions"] == 1
    assert float(row[4]) == pytest.approx(stored["mean_kl"]["value"], abs=1e-5) and stored["mean_kl"]["value"] > 0
    assert 0 < stored["peak_share_of_fp16"] < 1 and stored["evicted_tokens"] > 0
    assert "lru" in (folder / "report.html").read_text()
    assert sorted(path.name for path in folder.iterdir()) == ["report.html", "results.json"], "nothing half written is left"


def test_progress_is_a_line_at_a_time(evaluated):
    said = [line for line in evaluated[1].err.splitlines() if " session " in line]
    assert said and all(re.fullmatch(r"\S+, session 1 of 1: \d+ %(, \d+:\d\d left)?", line) for line in said), said
    assert said[-1].endswith(": 100 %")


def test_what_was_measured_is_not_measured_again(evaluated, runs):
    folder, first = evaluated
    again = memdecay(*WORDS, runs, "--kv-format", "fp16,int4", "--out", folder)
    assert again.status == 0
    rows = rows_of(again.out)
    assert rows[0] == rows_of(first.out)[0] and [row[1] for row in rows] == ["fp16", "int4"]
    assert " %" not in memdecay(*WORDS, runs, "--kv-format", "fp16,int4", "--out", folder).err


def test_notes_are_told_once(runs, tmp_path):
    """Runs that are left out are notes, each once; a question without its conversation among them."""
    folder = tmp_path / "runs"
    folder.mkdir()
    (folder / "shop.json").write_text(runs.read_text())
    (folder / "LICENSE").write_text("as you like")
    (folder / "answers.json").write_text(json.dumps({"id": "q-1", "ground_truth": ["x"], "source": "nowhere"}))
    for command in (["eval"], ["calibrate", "decay"]):
        ended = memdecay(*command, folder, "-m", "smollm2", "--out", tmp_path / "out", "--min-tokens", "90000", "--max-tokens", "90000")
        notes = [line for line in ended.err.splitlines() if line.startswith("note: ") and "was left out" in line]
        assert len(notes) == 2 and "LICENSE" in notes[0] and "q-1" in notes[1], ended
        assert ended.status == 1 and "--min-tokens" in ended.err.splitlines()[-1]


def test_sessions_beyond_the_context_are_none(runs, tmp_path):
    assert "a context of 299 holds" in fails(*WORDS, runs, "-c", 299, "--out", tmp_path)


def test_a_folder_that_cannot_be_made(runs, tmp_path):
    (tmp_path / "file").touch()
    for command in (WORDS, ("calibrate", "decay", "-m", "smollm2", "-t", "1", "--min-tokens", "300", "--max-tokens", "3000")):
        assert f'the folder "{tmp_path}/file/out" cannot be made: Not a directory' in fails(*command, runs, "--out", tmp_path / "file" / "out")


@pytest.mark.parametrize("words", [["--sessions", "0"], ["--min-tokens", "0"], ["--max-tokens", "x"], ["--split", "half"],
                                   ["--eviction", "before"], ["--cells-at-once", "65"], ["--label-noise", "2"]], ids=" ".join)
def test_wrong_usage(words):
    misused("eval", "runs.json", *words)
    assert "RUNS" in misused("eval", *WORDS[1:])


def test_help_teaches():
    out = succeeds("eval", "--help")
    assert "memdecay eval runs/" in out and "results.json" in out
