"""`eval`: recorded runs in, rows and a report out; what was measured is kept and never measured twice."""

import json
import os
import pty
import re

import pytest
from program import fails, memdecay, misused, start, succeeds

pytestmark = pytest.mark.model("smollm2")

METRICS = ["mean_kl", "p99_kl", "flips_per_1000", "value_match", "value_exact", "tool_name_exact", "argument_value_exact", "kv_bytes"]
RECALL = ["recall", "goal_survival", "instruction_survival", "recall_log_prob", "recall_log_prob_full"]


def evaluate(shop_runs, out, *flags):
    return memdecay("eval", shop_runs, "-m", "smollm2", "-t", "1", "--out", out, "--min-tokens", "200", "--max-tokens", "1500", *flags)


def rows_of(out):
    rows = json.loads((out / "results.json").read_text())["rows"]
    return {(row["policy"], row["kv_format"], row["budget"]): row for row in rows}


@pytest.fixture(scope="module")
def measured(shop_runs, tmp_path_factory):
    out = tmp_path_factory.mktemp("eval") / "new" / "folder"
    ended = evaluate(shop_runs, out, "--policy", "memdecay,window,none", "--kv-format", "fp16", "--budget", "85%", "--sessions", "1",
                     "--recall-sessions", "1")
    assert ended.status == 0, ended.err
    return out, ended


def test_every_cell_has_a_row_with_intervals(measured):
    out, ended = measured
    rows = rows_of(out)
    assert set(rows) == {("memdecay", "fp16", "85%"), ("window", "fp16", "85%"), ("none", "fp16", "")}
    for row in rows.values():
        for name in METRICS + RECALL:
            assert set(row[name]) == {"value", "low", "high", "n"}, name
        assert row["mean_kl"]["n"] > 0 and row["sessions"] == 1
        turns = [turn for turn, ms in row["latency_by_turn_ms"] if ms > 0]
        assert turns == sorted(set(turns)) and 4 <= len(turns) <= 12
        assert 0 < row["latency_ms_p50"] <= row["latency_ms_p95"] <= row["latency_ms_p99"]
    assert rows["window", "fp16", "85%"]["eviction_ms_per_token"] > 0
    assert "memdecay" in ended.out and "left" in ended.err
    assert "<svg" in (out / "report.html").read_text()
    assert sorted(path.name for path in out.iterdir()) == ["report.html", "results.json", "scores.jsonl"], "nothing half written"


def test_how_far_it_is_is_a_line_at_a_time(measured):
    said = [line for line in measured[1].err.splitlines() if ", session " in line]
    assert said and all(re.fullmatch(r"\S+, session 1 of 1: \d+ %(, \d+:\d\d left)?", line) for line in said), said
    assert said[-1].endswith(": 100 %")


def test_a_memory_that_forgets_nothing_knows_what_the_full_cache_knows(measured):
    row = rows_of(measured[0])["none", "fp16", ""]
    assert row["mean_kl"]["value"] < 0.02 and row["evicted_tokens"] == 0
    assert abs(row["recall_log_prob"]["value"] - row["recall_log_prob_full"]["value"]) < 0.2


def test_kept_is_of_every_region_by_its_own_tokens(shop_runs, measured, tmp_path):
    ended = evaluate(shop_runs, tmp_path, "--policy", "none", "--kv-format", "int8", "--sessions", "1", "--recall-sessions", "0",
                     "--label-noise", "0.3")
    assert ended.status == 0, ended.err
    whole, window = rows_of(tmp_path)["none", "int8", ""], rows_of(measured[0])["window", "fp16", "85%"]
    assert len(whole["kept"]) >= 3 and set(whole["kept"].values()) == {1.0}, "nothing was evicted"
    assert all(share == 1 for points in whole["survival"].values() for _, share in points)
    assert min(window["kept"].values()) < 1 and max(window["kept"].values()) <= 1
    for region, points in window["survival"].items():
        assert points[0][0] == 0 and points == sorted(points, key=lambda point: (point[0], -point[1])), region
        shares = [share for _, share in points]
        assert shares == sorted(shares, reverse=True) and 0 <= shares[-1] <= 1
    assert min(points[-1][1] for points in window["survival"].values()) < 1


def test_wrong_labels_do_not_change_what_a_budget_is(shop_runs, tmp_path):
    """A share is of what is not protected, by the true labels: noise must not be given fewer bytes."""
    episodes = json.loads(shop_runs.read_text())[:1]
    messages = episodes[0]["traj"]
    messages[0]["content"] = " ".join(f"Rule {number}: look order {number * 17} up before you speak of it." for number in range(25))
    runs = tmp_path / "rules.json"
    runs.write_text(json.dumps([{**episodes[0], "traj": messages[:9]}]))
    ended = evaluate(runs, tmp_path, "--policy", "window", "--kv-format", "fp16", "--budget", "60%", "--recall-sessions", "0",
                     "--label-noise", "0,1")
    assert ended.status == 0, ended.err
    rows = json.loads((tmp_path / "results.json").read_text())["rows"]
    peaks = {row["variant"]: row["peak_share_of_fp16"] for row in rows}
    assert list(peaks) == ["", "label noise 100 %"]
    assert peaks["label noise 100 %"] == pytest.approx(peaks[""], rel=0.1) and peaks[""] > 0.75, peaks


def test_a_window_forgets_the_facts_that_it_let_go(measured):
    rows = rows_of(measured[0])
    window, whole = rows["window", "fp16", "85%"], rows["none", "fp16", ""]
    assert window["evicted_tokens"] > 0
    assert window["recall_log_prob"]["value"] < whole["recall_log_prob"]["value"] - 0.03
    groups = window["recall_by"]
    assert {group["kind"] for group in groups} == {"fact", "goal", "instruction"}
    assert {group["region"] for group in groups} >= {"system", "decision", "tool", "recent"}
    assert all(0 <= group["right"] <= group["right_full"] <= group["probes"] for group in groups)
    assert sum(group["probes"] for group in groups) == sum(group["probes"] for group in whole["recall_by"])


def test_a_second_run_measures_only_what_is_missing(shop_runs, measured):
    out = measured[0]
    before = (out / "scores.jsonl").read_text()
    rows = rows_of(out)
    again = evaluate(shop_runs, out, "--policy", "window", "--kv-format", "fp16", "--budget", "85%", "--sessions", "1",
                     "--recall-sessions", "1")
    assert again.status == 0, again.err
    assert (out / "scores.jsonl").read_text() == before and rows_of(out) == rows
    more = evaluate(shop_runs, out, "--policy", "window,lru", "--kv-format", "fp16", "--budget", "85%", "--sessions", "1",
                    "--recall-sessions", "1")
    assert more.status == 0, more.err
    after = (out / "scores.jsonl").read_text()
    assert after.startswith(before) and len(after.splitlines()) == len(before.splitlines()) + 1
    assert set(rows_of(out)) == set(rows) | {("lru", "fp16", "85%")}


def test_a_run_that_was_cut_off_goes_on(shop_runs, measured, tmp_path):
    lines = (measured[0] / "scores.jsonl").read_text().splitlines(keepends=True)
    (tmp_path / "scores.jsonl").write_text(lines[0] + lines[1][:len(lines[1]) // 2])
    ended = evaluate(shop_runs, tmp_path, "--policy", "memdecay,window", "--kv-format", "fp16", "--budget", "85%", "--sessions", "1",
                     "--recall-sessions", "1")
    assert ended.status == 0, ended.err
    kept = (tmp_path / "scores.jsonl").read_text().splitlines(keepends=True)
    assert kept[0] == lines[0] and len(kept) == 2, "the whole line stays, the other is measured again"
    again, whole = rows_of(tmp_path), rows_of(measured[0])
    assert set(again) == {("memdecay", "fp16", "85%"), ("window", "fp16", "85%")}
    for key in again:
        before = whole[key]
        for name in ("mean_kl", "value_match", "recall_log_prob"):  # pages are packed as the whole batch leaves time
            assert again[key][name]["value"] == pytest.approx(before[name]["value"], abs=0.02), (key, name)


def test_what_is_asked_for_twice_is_measured_once(shop_runs, tmp_path):
    ended = evaluate(shop_runs, tmp_path, "--policy", "none,window,none", "--budget", "85%,85%", "--kv-format", "fp16,fp16",
                     "--sessions", "1", "--recall-sessions", "0")
    assert ended.status == 0, ended.err
    assert set(rows_of(tmp_path)) == {("none", "fp16", ""), ("window", "fp16", "85%")}
    assert len((tmp_path / "scores.jsonl").read_text().splitlines()) == 2


def test_scores_are_of_one_policy_config(shop_runs, tmp_path):
    config = tmp_path / "decay.json"
    config.write_text('{"regions": {"recent": {"survival_steps": 100}}}')
    flags = ["--policy", "memdecay", "--kv-format", "fp16", "--budget", "85%", "--sessions", "1", "--recall-sessions", "0"]
    for more in ([], ["--policy-config", config], ["--policy-config", config]):
        ended = evaluate(shop_runs, tmp_path / "out", *flags, *more)
        assert ended.status == 0, ended.err
    assert len((tmp_path / "out" / "scores.jsonl").read_text().splitlines()) == 2, "the third run has nothing to measure"


def test_a_cell_that_cannot_hold_its_own_costs_no_other_its_scores(shop_runs, tmp_path):
    flags = ["--policy", "window", "--kv-format", "fp16", "--sessions", "1", "--recall-sessions", "1", "--budget"]
    ended = evaluate(shop_runs, tmp_path, *flags, "100KiB,85%")
    assert ended.status == 0, ended.err
    assert set(rows_of(tmp_path)) == {("window", "fp16", "85%")}
    notes = [line for line in ended.err.splitlines() if line.startswith("note: ")]
    assert len(notes) == 1 and "window in fp16 within 100KiB has no score in session" in notes[0] and "is full" in notes[0], notes
    again = evaluate(shop_runs, tmp_path, *flags, "100KiB")
    assert again.status == 0 and "has no score in session" in again.err, "it is tried again; the rows of others stay"
    alone = evaluate(shop_runs, tmp_path / "alone", *flags, "100KiB")
    assert alone.status == 1 and "no cell could be scored" in alone.err.splitlines()[-1], alone


@pytest.mark.parametrize(("flags", "says"), [
    (["--policy", "frobnicate"], "frobnicate"), (["--policy", "memdecay:beta=x"], "beta"), (["--budget", "0%"], "0%"),
    (["--budget", "101%"], "101%"), (["--kv-format", "fp8"], "fp8"), (["--min-tokens", "900", "--max-tokens", "100"], "100")])
def test_what_cannot_be_measured_is_said(shop_runs, tmp_path, flags, says):
    assert says in fails("eval", shop_runs, "-m", "smollm2", "-t", "1", "--out", tmp_path, *flags)


def test_files_of_something_else_are_left_as_they_are(shop_runs, tmp_path):
    for name in ("results.json", "scores.jsonl"):
        file = tmp_path / name
        file.write_text("mine\n")
        assert name in fails("eval", shop_runs, "-m", "smollm2", "-t", "1", "--out", tmp_path)
        assert file.read_text() == "mine\n"
        file.unlink()


def test_runs_that_are_no_runs_are_said(tmp_path):
    (tmp_path / "empty").mkdir()
    assert "empty" in fails("eval", tmp_path / "empty", "-m", "smollm2", "--out", tmp_path / "out")


def test_notes_are_told_once(shop_runs, tmp_path):
    """What is left out is a note; a question that finds no conversation too."""
    folder = tmp_path / "runs"
    folder.mkdir()
    (folder / "shop.json").write_text(shop_runs.read_text())
    (folder / "LICENSE").write_text("as you like")
    (folder / "answers.json").write_text(json.dumps({"id": "q-1", "ground_truth": ["x"], "source": "nowhere"}))
    for command in (["eval"], ["calibrate", "decay"]):
        ended = memdecay(*command, folder, "-m", "smollm2", "--out", tmp_path / "out", "--min-tokens", "9000", "--max-tokens", "9000")
        notes = [line for line in ended.err.splitlines() if line.startswith("note: ") and "left out" in line]
        assert len(notes) == 2 and "LICENSE" in notes[0] and "q-1" in notes[1], ended
        assert ended.status == 1 and "--min-tokens" in ended.err.splitlines()[-1]


def test_sessions_beyond_the_context_are_none(shop_runs, tmp_path):
    assert "that a context of 199 holds" in evaluate(shop_runs, tmp_path, "-c", 199).err


@pytest.mark.parametrize(("flags", "says"), [
    (["--recall-sessions", "1"], "500 to 1000"), (["--recall-sessions", "0"], "600 to 1200"), (["--eviction", "after"], "600 to 1200")])
def test_sessions_are_cut_to_the_context_unless_lengths_are_given(shop_runs, tmp_path, flags, says):
    """A sixth is left to facts where some are planted."""
    ended = memdecay("eval", shop_runs, "-m", "smollm2", "-t", "1", "-c", "1200", "--out", tmp_path, "--policy", "none", "--kv-format",
                     "fp16", "--sessions", "1", *flags)
    assert ended.status == 0, ended.err
    assert f"note: sessions have {says} tokens, since the model's context is 1200" in ended.err.splitlines()
    assert rows_of(tmp_path)["none", "fp16", ""]["sessions"] == 1


def test_a_shortest_length_that_is_given_holds(shop_runs, tmp_path):
    for command in (["eval"], ["calibrate", "decay"]):
        ended = memdecay(*command, shop_runs, "-m", "smollm2", "-c", "1200", "--out", tmp_path, "--min-tokens", "2000")
        assert "no session of 2000 to 2000 tokens that a context of 1200 holds" in ended.err.splitlines()[-1], ended
    ended = memdecay("eval", shop_runs, "-m", "smollm2", "-t", "1", "-c", "1200", "--out", tmp_path, "--min-tokens", "1100", "--policy",
                     "none", "--kv-format", "fp16", "--sessions", "1")
    assert "sessions have 1100 to 1100 tokens" in ended.err, ended


def test_a_session_without_room_for_facts_is_done_all_the_same(shop_runs, tmp_path):
    ended = evaluate(shop_runs, tmp_path, "-c", "1200", "--min-tokens", "1100", "--policy", "none", "--kv-format", "fp16", "--sessions", "1",
                     "--recall-sessions", "1")
    assert ended.status == 0, ended.err
    assert "recall" not in rows_of(tmp_path)["none", "fp16", ""]
    assert "leaves no room for facts in the context" in ended.err
    assert [line for line in ended.err.splitlines() if ", session " in line][-1].endswith(": 100 %"), ended.err


def test_facts_stand_among_fewer_others_where_the_context_is_short(shop_runs, tmp_path):
    ended = evaluate(shop_runs, tmp_path, "-c", "2300", "--min-tokens", "1100", "--policy", "none", "--kv-format", "int8", "--sessions", "1",
                     "--recall-sessions", "1")
    assert ended.status == 0, ended.err
    assert "leaves no room" not in ended.err
    assert rows_of(tmp_path)["none", "int8", ""]["recall"]["n"] > 0


def test_a_message_of_a_run_may_call_anything_its_region(shop_runs, tmp_path):
    """What a recording says of a cloud is no word to the memory; --min-tokens ends it when all is read and counted."""
    episodes = json.loads(shop_runs.read_text())
    episodes[0]["traj"][1]["region"] = "us-east-1"
    episodes[1]["traj"][2]["region"] = None
    runs = tmp_path / "cloud.json"
    runs.write_text(json.dumps(episodes))
    says = fails("eval", runs, "-m", "smollm2", "--out", tmp_path, "--min-tokens", "9000", "--max-tokens", "9000")
    assert "no session of 9000 to 9000 tokens" in says


def test_a_note_at_a_terminal_takes_the_place_of_the_progress_line(shop_runs, tmp_path):
    ours, its = pty.openpty()
    process = start("eval", shop_runs, "-m", "smollm2", "-t", "1", "--out", tmp_path, "--min-tokens", "200", "--max-tokens", "1500", "--policy",
                    "window", "--kv-format", "fp16", "--budget", "100KiB", "--sessions", "1", "--recall-sessions", "0", stderr=its)
    os.close(its)
    said = b""
    try:
        while part := os.read(ours, 4096):
            said += part
    except OSError:  # Linux says so when the last writer is gone
        pass
    os.close(ours)
    assert process.wait(timeout=60) == 1
    lines = said.decode().splitlines(keepends=False)
    assert b"session 1 of 1: " in said
    for begin in ("note: window in fp16", "memdecay: no cell"):
        before = said.decode().split(begin)[0]
        assert before.endswith(("\n", "\r\x1b[K")), lines


def test_quick_leaves_what_is_given_alone(shop_runs, tmp_path):
    says = fails("eval", shop_runs, "--quick", "-m", "smollm2", "--out", tmp_path, "--min-tokens", "7000", "--max-tokens", "7000")
    assert "no session of 7000 to 7000 tokens" in says
    assert "no session of 2250 to 2250 tokens" in fails("eval", shop_runs, "--quick", "-m", "smollm2", "--out", tmp_path, "--min-tokens", "2250")
    facts = []
    for more in ([], ["--recall-sessions", "2"]):
        out = tmp_path / str(len(more))
        ended = memdecay("eval", shop_runs, "--quick", "-t", "1", "--out", out, "--min-tokens", "300", "--max-tokens", "600", "--policy", "none",
                         "--kv-format", "fp16", *more)
        assert ended.status == 0, ended.err
        facts.append([json.loads(line)["session"].endswith("+facts") for line in (out / "scores.jsonl").read_text().splitlines()])
    assert facts == [[True, False], [True, True]]


def test_all_is_every_policy(tmp_path):
    assert "nowhere" in fails("eval", "-m", "smollm2", "--policy", "all", tmp_path / "nowhere")
    assert "all: every one" in " ".join(succeeds("eval", "--help").split())


def test_a_folder_that_cannot_be_made(shop_runs, tmp_path):
    (tmp_path / "file").touch()
    says = f'the folder "{tmp_path}/file/out" cannot be made: Not a directory'
    for command in (["eval"], ["calibrate", "decay"]):
        assert says in fails(*command, shop_runs, "-m", "smollm2", "--out", tmp_path / "file" / "out", "--min-tokens", "200",
                             "--max-tokens", "1500")


def test_a_list_leaves_the_next_word_alone(tmp_path):
    assert "nowhere" in fails("eval", "-m", "smollm2", "--policy", "lru,window", tmp_path / "nowhere")
    assert "RUNS" in misused("eval", "-m", "smollm2", "--policy", "lru")


@pytest.mark.parametrize("words", [["--sessions", "0"], ["--min-tokens", "0"], ["--max-tokens", "x"], ["--split", "half"],
                                   ["--eviction", "before"], ["--cells-at-once", "65"], ["--label-noise", "2"]], ids=" ".join)
def test_wrong_usage(words):
    misused("eval", "runs.json", *words)
