#!/usr/bin/env python3
"""A conversation of 200 turns within a quarter of the bytes it needs, against the full cache and a sliding window.

    bench/long_session.py MEMDECAY [--model smollm2] [--turns 200] [--share 0.25] [--policy memdecay] [--runs 1] [--out FILE]

What the agent is told in the first turn is asked for in the last one, whose answer the model writes; every other answer is forced.
Sessions one after another: the full cache, then within the share of its peak bytes the policy with fp16 pages (as many tokens all along, so
steps take about as long), the policy with pages that take fewer bits before anything is dropped (more tokens, longer steps), and the
window. All of them in turn once more for each further run.
Prints, and writes as JSON: peak bytes against the budget, ms per decoded token in turns 20-40 and in the last 20, the last answer, all of the
first run; the ratio of those times, late_to_early, as a list of all runs.
"""

import argparse
import json
import pathlib
import statistics
import sys
import tempfile

from recorded import play
from result_file import result, write_result

NAMES = ["Ada", "Bo", "Cleo", "Dag", "Eva", "Finn", "Gus", "Hana", "Ivo", "Jun"]
GOODS = ["cups", "lamps", "chairs", "books", "plates", "boxes", "pens", "maps"]


def conversation(turns: int) -> dict:
    messages = [{"role": "system", "content": "You are a clerk in a warehouse."},
                {"role": "user", "content": "What is the gate password? It is BLUE-7319."},
                {"role": "assistant", "content": "The gate password is BLUE-7319."}]
    for turn in range(1, turns - 1):
        name, goods, count = NAMES[turn % 10], GOODS[turn % 8], 3 + turn * 7 % 40
        messages.append({"role": "user", "content": f"How many {goods} did {name} bring? {count}."})
        messages.append({"role": "assistant", "content": f"{name} brought {count} {goods}."})
    messages.append({"role": "user", "content": "What is the gate password?"})
    return {"messages": messages}


def summary(turns: list[dict]) -> dict:
    def milliseconds(part):
        return round(statistics.median(turn["ms_per_token"] for turn in part), 3)

    early, late = milliseconds(turns[19:40]), milliseconds(turns[-21:-1])
    return {"peak_bytes": max(turn["peak_bytes"] for turn in turns), "evicted_tokens": sum(turn["evicted_tokens"] for turn in turns),
            "computed_tokens": sum(turn["computed_tokens"] for turn in turns), "tokens": turns[-1]["reused_tokens"] + turns[-1]["new_tokens"],
            "ms_per_token_turns_20_40": early, "ms_per_token_last_20": late, "late_to_early": [round(late / early, 3)],
            "pages": turns[-1]["pages"]["by_state"], "last_answer": turns[-1]["text"]}


def one_run(arguments) -> dict[str, dict]:
    """Every row once, by its name."""
    with tempfile.TemporaryDirectory() as folder:
        def played(*flags: str) -> dict:
            return summary(play(arguments.memdecay, arguments.model, conversation(arguments.turns), pathlib.Path(folder),
                                "--generate", "24", *flags))

        full = played()
        budget = int(full["peak_bytes"] * arguments.share)
        rows = {"full": full}
        for policy, form in [(arguments.policy, "fp16"), (arguments.policy, "auto"), ("window", "fp16")]:
            row = played("--kv-budget", str(budget), "--policy", policy, "--kv-format", form)
            row["budget_bytes"] = budget
            rows[f"{policy}, {form}"] = row
            if row["peak_bytes"] > budget:
                raise SystemExit(f"{policy}, {form}: {row['peak_bytes']} bytes, above the budget of {budget}")
    return rows


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("memdecay")
    parser.add_argument("--model", default="smollm2")
    parser.add_argument("--turns", type=int, default=200)
    parser.add_argument("--share", type=float, default=0.25)
    parser.add_argument("--policy", default="memdecay")
    parser.add_argument("--runs", type=int, default=1)
    parser.add_argument("--out", type=pathlib.Path)
    arguments = parser.parse_args()
    if arguments.runs < 1:
        parser.error("--runs is at least 1")
    rows = one_run(arguments)
    for _ in range(arguments.runs - 1):
        for name, row in one_run(arguments).items():
            rows[name]["late_to_early"] += row["late_to_early"]
    for name, row in rows.items():
        print(name, json.dumps(row))
    write_result(arguments.out, result("a long session within a share of the full cache's bytes", command=" ".join(sys.argv), rows=rows))
    return 0


if __name__ == "__main__":
    sys.exit(main())
