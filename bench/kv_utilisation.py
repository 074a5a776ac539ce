#!/usr/bin/env python3
"""How full KV pages are on real agent conversations, for 16, 32 and 64-token pages.

    kv_utilisation.py DATA_FOLDER [--program build/bench/bench/kv_utilisation] [--conversations 20]
                      [--models qwen-0.5b,smollm2] [--output FILE]

DATA_FOLDER holds tau-bench trajectories, *.json.gz, each a list of {"trial", "task_id", "traj": [messages]}; the first trial
of each task is played. The C++ program beside this script does the work (cmake --preset bench builds it).
"""

import argparse
import json
import pathlib
import subprocess
import sys

from recorded import first_trials
from result_file import result, write_result

ROOT = pathlib.Path(__file__).resolve().parents[1]

def conversations(folder: pathlib.Path, count: int) -> list[dict]:
    runs = first_trials(folder)
    if len(runs) < count:
        sys.exit(f"kv_utilisation: {folder} holds {len(runs)} conversations, {count} are wanted")
    return [{"messages": [clean(message) for message in run["traj"]]} for run in runs[:count]]


def clean(message: dict) -> dict:
    """Content null as an empty text, no null fields, arguments as objects: as agents send messages."""
    message = {key: value for key, value in message.items() if value is not None}
    message.setdefault("content", "")
    for call in message.get("tool_calls", []):
        if isinstance(call["function"].get("arguments"), str):
            call["function"]["arguments"] = json.loads(call["function"]["arguments"])
    return message


def show(measured: dict) -> None:
    print(f"{measured['model']}: {measured['conversations']} conversations, {measured['tokens']} tokens; one slab a sequence, as long"
          f" as the longest: {100 * measured['contiguous_utilisation_end']:.1f} % filled")
    print("  page tokens   filled, end   filled, mean   bytes/sequence, end   mean")
    for row in measured["pages"]:
        print(f"  {row['page_tokens']:11d}   {100 * row['utilisation_end']:9.2f} %   {100 * row['utilisation_mean']:10.2f} %"
              f"   {row['bytes_per_sequence_end']:19,.0f}   {row['bytes_per_sequence_mean']:,.0f}")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("data", type=pathlib.Path, metavar="DATA_FOLDER")
    parser.add_argument("--program", type=pathlib.Path, default=ROOT / "build" / "bench" / "bench" / "kv_utilisation")
    parser.add_argument("--conversations", type=int, default=20)
    parser.add_argument("--models", default="qwen-0.5b,smollm2")
    parser.add_argument("--output", type=pathlib.Path)
    arguments = parser.parse_args()
    lines = "".join(json.dumps(item) + "\n" for item in conversations(arguments.data, arguments.conversations))
    results = []
    for model in arguments.models.split(","):
        done = subprocess.run([arguments.program, model], input=lines, stdout=subprocess.PIPE, text=True, check=False)
        if done.returncode:
            return done.returncode
        results.append(json.loads(done.stdout))
        show(results[-1])
    write_result(arguments.output, result(
        "KV utilisation (slots filled / slots allocated) and bytes per sequence, by page size",
        command=f"bench/kv_utilisation.py {arguments.data.name} --conversations {arguments.conversations} --models {arguments.models}",
        data="tau-bench airline, gpt-4o, first trial of tasks 0-19, without tool descriptions; all side by side",
        results=results))  # fmt: skip
    return 0


if __name__ == "__main__":
    sys.exit(main())
