#!/usr/bin/env python3
"""Quality of requantized files, one tensor type each: reference, llama.cpp, us on the same tokens.

    quality_types.py --peer BIN_FOLDER --memdecay PROGRAM --tokens IDS.json --work FOLDER
                     [--chunks 8] [--threads 1] MODEL.gguf...

The files come from `llama-quantize --allow-requantize --pure IN.gguf OUT.gguf TYPE`; IDS.json is
what make_golden.py takes. Writes WORK/NAME.json for each file and skips those that are there;
needs the packages of tests/golden/requirements.txt.
"""

import argparse
import json
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
GOLDEN = ROOT / "tests" / "golden"
sys.path.insert(0, str(GOLDEN))

import golden_file  # noqa: E402  (these need the path above)
import torch  # noqa: E402
from judge import judge  # noqa: E402
from make_golden import make  # noqa: E402

CONTEXT = 512


def run(command: list[str]) -> None:
    result = subprocess.run(command, capture_output=True, text=True)
    if result.returncode != 0:
        raise SystemExit(f"{' '.join(command)} failed:\n{result.stderr[-2000:]}")


def measure(path: pathlib.Path, ids: list[int], args: argparse.Namespace) -> dict:
    full, golden, base, saved = (
        str(args.work / f"{path.stem}.{kind}") for kind in ("npy", "golden", "kld", "saved.kld")
    )
    first = CONTEXT // 2
    made = make(str(path), ids, CONTEXT, args.chunks, first, False, full, base)
    golden_file.write(golden, made)
    threads = ["-t", str(args.threads)]
    peer = [str(args.peer / "llama-perplexity"), "-m", str(path), "-c", str(CONTEXT),
            "--chunks", str(args.chunks), "-fa", "auto",
            "-f", str(GOLDEN / "text.txt"), *threads]  # fmt: skip
    ours = [str(args.memdecay), "perplexity", str(path), "--kl-divergence-base", base, *threads]
    commands = {
        "llama_cpp": peer,
        "fast": [*ours, "--precision", "fast"],
        "exact": [*ours, "--precision", "exact"],
    }
    result = {}
    for who, command in commands.items():
        run([*command, "--save-all-logits", saved])
        judged = judge(saved, golden, full)
        result[who] = judged["full"]
        result["reference_ppl"] = judged["reference_ppl"]
    for left in (full, golden, base, saved):
        pathlib.Path(left).unlink()
    return result


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("models", nargs="+", type=pathlib.Path)
    parser.add_argument("--peer", required=True, type=pathlib.Path)
    parser.add_argument("--memdecay", required=True, type=pathlib.Path)
    parser.add_argument("--tokens", required=True, type=pathlib.Path)
    parser.add_argument("--work", required=True, type=pathlib.Path)
    parser.add_argument("--chunks", type=int, default=8)
    parser.add_argument("--threads", type=int, default=1)
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    ids = json.loads(args.tokens.read_text())
    for path in args.models:
        out = args.work / f"{path.stem}.json"
        if not out.exists():
            out.write_text(json.dumps(measure(path, ids, args), indent=2) + "\n")
        print(path.stem, out.read_text(), flush=True)


if __name__ == "__main__":
    main()
