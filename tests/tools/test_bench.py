"""What the benchmarks of bench/ make of what the program says, which is played here."""

import json
import pathlib
import sys

import pytest

BENCH = pathlib.Path(__file__).resolve().parents[2] / "bench"
sys.path.insert(0, str(BENCH))
import against_window  # noqa: E402
import long_session  # noqa: E402
import recorded  # noqa: E402

PLAYED = """#!/usr/bin/env python3
import json, pathlib, sys
calls = pathlib.Path(__file__).with_name("calls")
calls.write_text((calls.read_text() if calls.exists() else "") + "x")
run = 1 + (len(calls.read_text()) - 1) // 4
for turn in range(1, 61):
    print(json.dumps({"turn": turn, "peak_bytes": 100 if "--kv-budget" not in sys.argv else 20, "evicted_tokens": 1, "computed_tokens": 2,
                      "reused_tokens": 3, "new_tokens": 4, "ms_per_token": 2.0 * run if turn > 41 else 2.0, "pages": {"by_state": {}}, "text": "x"}))
"""


def row(policy, form, budget, **changes) -> dict:
    return {"model": "m", "policy": policy, "kv_format": form, "budget": budget, "data_set": "airline", "variant": "", "sessions": 3, **changes}


def cells() -> list[dict]:
    return [row(policy, form, budget) for policy, form, budgets in against_window.MEASURED for budget in budgets]


def test_only_plain_rows_of_the_model_and_the_data_set_count():
    others = [row("window", "fp16", "75%", **change, sessions=9) for change in
              ({"model": "n"}, {"data_set": "retail"}, {"variant": "seed 7"})]
    rows = against_window.rows_of_cells(cells() + others, "m", "airline")
    assert set(rows) == {(policy, budget) for policy, _, budgets in against_window.MEASURED for budget in budgets}
    assert {row["sessions"] for row in rows.values()} == {3}


def test_a_cell_without_a_row_ends_in_a_sentence():
    with pytest.raises(SystemExit, match=r"no row of memdecay in auto within 6\.25% for m on airline"):
        against_window.rows_of_cells(cells()[:-1], "m", "airline")


def test_rows_on_unequal_sessions_are_not_compared():
    rows = cells()
    rows[0]["sessions"] = 2
    with pytest.raises(SystemExit, match=r"unequal numbers of sessions .*'window 75%': 2, 'window 50%': 3"):
        against_window.rows_of_cells(rows, "m", "airline")


def test_what_a_program_that_fails_says_is_shown():
    with pytest.raises(SystemExit, match="ended with status 3: no room"):
        recorded.output_of([sys.executable, "-c", "import sys; print('no room', file=sys.stderr); sys.exit(3)"])


def test_a_long_session_is_played_as_often_as_asked(tmp_path, monkeypatch, capsys):
    program = tmp_path / "memdecay"
    program.write_text(PLAYED)
    program.chmod(0o755)
    out = tmp_path / "out.json"
    monkeypatch.setattr(sys, "argv", ["long_session.py", str(program), "--turns", "60", "--runs", "3", "--out", str(out)])
    assert long_session.main() == 0
    written = json.loads(out.read_text())
    assert all(row["late_to_early"] == [1.0, 2.0, 3.0] for row in written["rows"].values())
    assert all(row["ms_per_token_last_20"] == 2.0 for row in written["rows"].values()), "of the first run"
    kept = json.loads((BENCH / "results/2026-11-30-long-session.json").read_text())
    assert list(kept) == list(written)
    assert {name: list(row) for name, row in kept["rows"].items()} == {name: list(row) for name, row in written["rows"].items()}
    assert "late_to_early" in capsys.readouterr().out
