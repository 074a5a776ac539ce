#!/usr/bin/env python3
"""How full pages are under a budget, on recorded agent runs through the real engine, with packing and without.

    memory_utilisation.py RUNS... [--model smollm2] [--sessions 1] [--tokens 8000] [--budgets 50%,25%] [--formats fp16,auto]
                          [--program build/bench/bench/memory_utilisation] [--output FILE]

RUNS are files or folders as `memdecay eval` takes them. The C++ program beside this script does the work (cmake --preset bench
builds it); it validates the cache after each pass. Status 1 where a packed row is at most 96 % full in the mean.
"""

import argparse
import json
import pathlib
import subprocess
import sys

from result_file import result, write_result

ROOT = pathlib.Path(__file__).resolve().parents[1]
WANTED = 0.96


def show(rows: list[dict]) -> None:
    print(f"{'data set':16s} {'budget':>7s} {'format':>7s}   {'mean':>7s} {'least':>7s}   packed: {'mean':>7s} {'least':>7s}"
          f"   {'evicted':>8s}")
    for plain, packed in zip(rows[::2], rows[1::2], strict=True):
        print(f"{plain['data_set']:16s} {plain['budget']:>7s} {plain['kv_format']:>7s}   {100 * plain['utilisation_mean']:6.2f}%"
              f" {100 * plain['utilisation_least']:6.2f}%           {100 * packed['utilisation_mean']:6.2f}%"
              f" {100 * packed['utilisation_least']:6.2f}%   {packed['evicted_tokens']:8d}")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("runs", type=pathlib.Path, nargs="+", metavar="RUNS")
    parser.add_argument("--program", type=pathlib.Path, default=ROOT / "build" / "bench" / "bench" / "memory_utilisation")
    parser.add_argument("--model", default="smollm2")
    parser.add_argument("--sessions", type=int, default=1, help="of each data set")
    parser.add_argument("--tokens", type=int, default=8000, help="of a session, at most")
    parser.add_argument("--budgets", default="50%,25%")
    parser.add_argument("--formats", default="fp16,auto")
    parser.add_argument("--output", type=pathlib.Path)
    arguments = parser.parse_args()
    command = [arguments.program, arguments.model, str(arguments.sessions), str(arguments.tokens), arguments.budgets,
               arguments.formats, *arguments.runs]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode:
        return done.returncode
    rows = json.loads(done.stdout)
    show(rows)
    write_result(arguments.output, result(
        "tokens held / (page tokens * pages held) under a budget beside the system text, with packing and without",
        command=f"bench/memory_utilisation.py {' '.join(run.name for run in arguments.runs)} --model {arguments.model}"
                f" --sessions {arguments.sessions} --tokens {arguments.tokens} --budgets {arguments.budgets}"
                f" --formats {arguments.formats}",
        rows=rows))  # fmt: skip
    return 0 if all(row["utilisation_mean"] > WANTED for row in rows if row["packed"]) else 1


if __name__ == "__main__":
    sys.exit(main())
