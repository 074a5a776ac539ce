#!/usr/bin/env python3
"""The default memory against a fixed sliding window on recorded airline runs, at no lower completion.

    bench/against_window.py MEMDECAY RUNS.json.gz [--model qwen-0.5b] [--data-set airline] [--sessions 3] [--turns 100] [--eval-out DIR]
                            [--out FILE]

1. `memdecay eval` measures the window (fp16 pages) at 75 and 50 % of what is not protected, and the default at 25, 12.5 and 6.25 %.
   With --eval-out it goes on from what that folder of an earlier eval knows.
2. Of the windows the smaller one that keeps at least 95 % of the values; of the default's budgets the smallest whose value match is not lower.
3. Both play one shift of at least --turns turns, episode after episode under one policy text, within these shares of its bytes: peak bytes and
   the mean of ms per decoded token in the last tenth of the turns. Where the model's context ends a session before its budget does, that is said.
"""

import argparse
import json
import pathlib
import statistics
import sys
import tempfile

from recorded import episodes, output_of, play
from result_file import result, write_result

WINDOW_BUDGETS = ["75%", "50%"]
OWN_BUDGETS = ["25%", "12.5%", "6.25%"]
MEASURED = [("window", "fp16", WINDOW_BUDGETS), ("memdecay", "auto", OWN_BUDGETS)]


def rows_of_cells(rows: list[dict], model: str, data_set: str) -> dict[tuple[str, str], dict]:
    """The plain rows of all cells by policy and budget; ends where one is missing, or they stand on other sessions than others."""
    found = {}
    for policy, form, budgets in MEASURED:
        for budget in budgets:
            key = {"model": model, "policy": policy, "kv_format": form, "budget": budget, "data_set": data_set, "variant": ""}
            row = next((row for row in rows if key.items() <= row.items()), None)
            if row is None:
                raise SystemExit(f"eval has no row of {policy} in {form} within {budget} for {model} on {data_set}: its budget may have no room")
            found[policy, budget] = row
    sessions = {f"{policy} {budget}": row["sessions"] for (policy, budget), row in found.items()}
    if len(set(sessions.values())) > 1:
        raise SystemExit(f"the rows stand on unequal numbers of sessions and cannot be compared: {sessions}")
    return found


def measure(arguments, out: pathlib.Path) -> dict[tuple[str, str], dict]:
    for policy, form, budgets in MEASURED:
        output_of([arguments.memdecay, "eval", arguments.runs, "-m", arguments.model, "--policy", policy, "--kv-format", form, "--budget",
                   ",".join(budgets), "--sessions", str(arguments.sessions), "--recall-sessions", "0", "--out", str(out)])
    return rows_of_cells(json.loads((out / "results.json").read_text())["rows"], arguments.model, arguments.data_set)


def shift(path: pathlib.Path, turns: int) -> dict:
    messages: list[dict] = []
    for episode in episodes(path):
        for message in episode["traj"]:
            if messages and message["role"] == "system":
                continue
            messages.append({key: value for key, value in message.items() if value is not None} | {"content": message.get("content") or ""})
        if sum(message["role"] == "assistant" for message in messages) >= turns:
            break
    return {"messages": messages}


def fp16_bytes(arguments, whole: dict, folder: pathlib.Path) -> float:
    """Bytes that the whole shift's pages take in fp16, from what the tokens of its first turns take."""
    turns = play(arguments.memdecay, arguments.model, {"messages": whole["messages"][:24]}, folder, "--kv-format", "fp16")
    held = [turn["reused_tokens"] + turn["new_tokens"] + turn["generated_tokens"] for turn in turns]
    a_token = (turns[-1]["live_bytes"] - turns[0]["live_bytes"]) / (held[-1] - held[0])
    last = play(arguments.memdecay, arguments.model, whole, folder, "--kv-budget", "64MiB", "--policy", "window", "--kv-format", "fp16")[-1]
    return a_token * (last["reused_tokens"] + last["new_tokens"] + last["generated_tokens"])


def summary(turns: list[dict], budget: int) -> dict:
    last = turns[-max(1, len(turns) // 10):]
    return {"turns": len(turns), "budget_bytes": budget, "peak_bytes": max(turn["peak_bytes"] for turn in turns),
            "fills_budget": max(turn["peak_bytes"] for turn in turns) > 0.8 * budget,
            "ms_per_token_at_the_end": round(statistics.mean(turn["ms_per_token"] for turn in last if turn["ms_per_token"] > 0), 3),
            "prompt_ms_at_the_end": round(statistics.mean(turn["prompt_ms"] for turn in last), 1)}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("memdecay")
    parser.add_argument("runs")
    parser.add_argument("--model", default="qwen-0.5b")
    parser.add_argument("--data-set", default="airline", help="as eval names it: the runs may hold several, and DIR those of other runs")
    parser.add_argument("--sessions", type=int, default=3)
    parser.add_argument("--turns", type=int, default=100)
    parser.add_argument("--eval-out", type=pathlib.Path)
    parser.add_argument("--out", type=pathlib.Path)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        rows = measure(arguments, arguments.eval_out or folder / "eval")
        value = {key: row["value_match"]["value"] for key, row in rows.items()}
        window = next((budget for budget in reversed(WINDOW_BUDGETS) if value["window", budget] >= 0.95), None)
        if window is None:
            raise SystemExit(f"no window keeps 95 % of the values: {value}")
        own = next((budget for budget in reversed(OWN_BUDGETS) if value["memdecay", budget] >= value["window", window]), None)
        if own is None:
            raise SystemExit(f"no budget of the default keeps what the window of {window} keeps: {value}")
        whole = shift(pathlib.Path(arguments.runs), arguments.turns)
        whole_bytes = fp16_bytes(arguments, whole, folder)
        budget = {policy: int(share * whole_bytes) for policy, share in
                  [("window", rows["window", window]["peak_share_of_fp16"]), ("memdecay", rows["memdecay", own]["peak_share_of_fp16"])]}
        flags = {"window": ["--policy", "window", "--kv-format", "fp16"], "memdecay": []}
        played = {policy: summary(play(arguments.memdecay, arguments.model, whole, folder, "--kv-budget", str(budget[policy]), *more), budget[policy])
                  for policy, more in flags.items()}
    ratio = {key: round(played["memdecay"][key] / played["window"][key], 3)
             for key in ["peak_bytes", "ms_per_token_at_the_end", "prompt_ms_at_the_end"]}
    report = result("the default memory against a sliding window at no lower completion", command=" ".join(sys.argv),
                    value_match={f"{policy} {budget}": round(number, 4) for (policy, budget), number in value.items()},
                    mean_kl={f"{policy} {budget}": round(row["mean_kl"]["value"], 5) for (policy, budget), row in rows.items()},
                    chosen={"window": window, "memdecay": own}, played=played, memdecay_to_window=ratio)  # fmt: skip
    for policy, row in played.items():
        if not row["fills_budget"]:
            print(f"{policy} never fills its budget: the model's context of tokens ends it first, so the ratios are not of budgets", file=sys.stderr)
    write_result(arguments.out, report)
    print(json.dumps(report, indent=1))
    return 0


if __name__ == "__main__":
    sys.exit(main())
