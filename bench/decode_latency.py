#!/usr/bin/env python3
"""How even decode steps are while pages are evicted at full rate, against the same steps without eviction.

    bench/decode_latency.py MEMDECAY [--model smollm2] [--turns 30] [--budget 24MiB] [--rounds 3] [--out FILE]

Answers of about 200 tokens are forced, turn after turn, within a budget that is full from the first third on, so every 32 tokens cost
a page. The last third is measured: p50 and p99 of a step, for the policy, for a window, and without a budget (there steps grow with the
history; the ratio p99/p50 is taken turn by turn). Rounds go in turn, the median of the rounds' ratios is reported.
"""

import argparse
import json
import pathlib
import statistics
import sys
import tempfile

from recorded import play
from result_file import result, write_result


def conversation(turns: int) -> dict:
    messages = [{"role": "system", "content": "You write long reports."}]
    for turn in range(turns):
        messages.append({"role": "user", "content": f"Write report {turn}."})
        lines = [f"Item {turn}-{line}: {17 * line + turn} boxes arrived at gate {line % 5} and were counted twice." for line in range(9)]
        messages.append({"role": "assistant", "content": "\n".join(lines)})
    return {"messages": messages}


def summary(turns: list[dict]) -> dict:
    last = [turn["step_ms"] for turn in turns[-(len(turns) // 3):]]
    return {"p50": statistics.median(step["p50"] for step in last), "p99_to_p50": statistics.median(step["p99"] / step["p50"] for step in last),
            "evicted_tokens": sum(turn["evicted_tokens"] for turn in turns), "pages": turns[-1]["pages"]["by_state"]}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("memdecay")
    parser.add_argument("--model", default="smollm2")
    parser.add_argument("--turns", type=int, default=30)
    parser.add_argument("--budget", default="24MiB")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--out", type=pathlib.Path)
    arguments = parser.parse_args()
    cases = {"memdecay": ["--kv-budget", arguments.budget], "window": ["--kv-budget", arguments.budget, "--policy", "window", "--kv-format", "fp16"],
             "no eviction": []}
    rounds: dict[str, list[dict]] = {name: [] for name in cases}
    with tempfile.TemporaryDirectory() as folder:
        for _ in range(arguments.rounds):
            for name, flags in cases.items():
                turns = play(arguments.memdecay, arguments.model, conversation(arguments.turns), pathlib.Path(folder), *flags)
                rounds[name].append(summary(turns))
    rows = {name: {"p50_ms": round(statistics.median(row["p50"] for row in of), 3), "p99_to_p50": round(statistics.median(row["p99_to_p50"] for row in of), 3),
                   "evicted_tokens": of[0]["evicted_tokens"], "pages": of[0]["pages"]} for name, of in rounds.items()}
    report = result("decode steps while pages are evicted at full rate", command=" ".join(sys.argv), rows=rows)
    print(json.dumps(report, indent=1))
    write_result(arguments.out, report)
    return 0


if __name__ == "__main__":
    sys.exit(main())
