#!/usr/bin/env python3
"""Perplexity of one session far beyond the model's trained context, with and without virtual positions.

    virtual_positions.py TEXT... [--model smollm2] [--times 3] [--budget 90MiB] [--policies sinks,memdecay]
                         [--program build/bench/bench/virtual_positions] [--output FILE]

Each TEXT needs `times` * the trained context of tokens. The last trained context's worth of them is compared: in the long
session, whose budget holds about half a context, and in fresh sessions that have read a quarter to half a context before the
scored token. Wanted: within 10 % with virtual positions. The C++ program beside this script does the work (cmake --preset
bench builds it).
"""

import argparse
import json
import math
import pathlib
import subprocess
import sys

from result_file import result, write_result

ROOT = pathlib.Path(__file__).resolve().parents[1]

def measure(arguments, text: pathlib.Path, policy: str, mode: str, tokens: int) -> dict:
    command = [arguments.program, arguments.model, text, str(tokens), arguments.budget, policy, mode]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    return json.loads(done.stdout)


def perplexity(measured: dict, first: int) -> float:
    bins = [part for part in measured["bins"] if part["first_token"] >= first]
    return math.exp(sum(part["nll"] for part in bins) / sum(part["tokens"] for part in bins))


def curve(measured: dict) -> list[float]:
    return [round(math.exp(part["nll"] / part["tokens"]), 3) for part in measured["bins"]]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("texts", type=pathlib.Path, nargs="+", metavar="TEXT")
    parser.add_argument("--model", default="smollm2")
    parser.add_argument("--context", type=int, default=8192, help="the trained context")
    parser.add_argument("--times", type=int, default=3)
    parser.add_argument("--budget", default="90MiB")
    parser.add_argument("--policies", default="sinks,memdecay")
    parser.add_argument("--program", type=pathlib.Path, default=ROOT / "build" / "bench" / "bench" / "virtual_positions")
    parser.add_argument("--output", type=pathlib.Path)
    arguments = parser.parse_args()
    tokens = arguments.times * arguments.context
    last = tokens - arguments.context
    rows = []
    for text in arguments.texts:
        fresh = measure(arguments, text, "none", "fresh", tokens)
        wanted = perplexity(fresh, last)
        print(f"{text.name}: tokens {last}-{tokens}: fresh sessions of half the context {wanted:.3f}", flush=True)
        for policy in arguments.policies.split(","):
            for mode in ("moved", "still"):
                measured = measure(arguments, text, policy, mode, tokens)
                found = perplexity(measured, last)
                print(f"  {policy:9s} {mode:6s} {found:12.3f}   x {found / wanted:.4f}   at position {measured['positions']},"
                      f" {measured['seconds']:.0f} s", flush=True)
                rows.append({"text": text.name, "policy": policy, "mode": mode, "perplexity": found, "fresh": wanted,
                             "ratio": found / wanted, "position": measured["positions"], "pages": measured["pages"],
                             "evicted_tokens": measured["evicted_tokens"], "seconds": measured["seconds"],
                             "curve": curve(measured), "fresh_curve": curve(fresh)})  # fmt: skip
        write_result(arguments.output, result(
            "perplexity of the last trained context's worth of one long session, with its gaps closed (moved) and without (still),"
            " against fresh sessions of half the context over the same tokens",
            model=arguments.model, tokens=tokens, trained_context=arguments.context, budget=arguments.budget,
            command=f"bench/virtual_positions.py {' '.join(text.name for text in arguments.texts)} --model {arguments.model}"
                    f" --times {arguments.times} --budget {arguments.budget}",
            curve_tokens=1024, rows=rows))  # fmt: skip
    return 0 if all(row["ratio"] <= 1.1 for row in rows if row["mode"] == "moved") else 1


if __name__ == "__main__":
    sys.exit(main())
