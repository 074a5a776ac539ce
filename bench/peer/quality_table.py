#!/usr/bin/env python3
"""Lays our quality beside llama.cpp's: quality_table.py PEER.json OUT.json OURS_FOLDER

PEER.json is what quality_peer.py wrote. OURS_FOLDER holds NAME-PRECISION.json, one for each name and
precision (fast, exact), as printed by

    memdecay perplexity MODEL --kl-divergence-base WORK/NAME.kld --precision PRECISION --json

with the .kld of make_golden.py. Prints a table as well. The .kld has 16 bits a value, so a KL below
1e-6 is its noise (it can be negative); llama.cpp is judged against all of fp32.
"""

import json
import pathlib
import sys

KEYS = ("mean_kld", "p99_kld", "max_kld", "same_top", "ppl", "tokens")


def main() -> None:
    peer_path, out, ours = (pathlib.Path(path) for path in sys.argv[1:])
    peer = json.loads(peer_path.read_text())
    results = {}
    for name, theirs in peer["results"].items():
        row = {key: theirs[key] for key in ("model", "n_ctx", "chunks")}
        row["reference_ppl"] = theirs["judged_here"]["reference_ppl"]
        row["llama_cpp"] = theirs["judged_here"]["full"]
        for precision in ("fast", "exact"):
            file = ours / f"{name}-{precision}.json"
            if file.exists():
                printed = json.loads(file.read_text())
                row[precision] = {key: printed[key] for key in KEYS}
        results[name] = row
        for who in ("llama_cpp", "fast", "exact"):
            if who in row:
                numbers = (row[who][key] for key in KEYS)
                print(f"{name:17} {who:10}", *(f"{number:11.5g}" for number in numbers))
    report = {
        "what": "KL of the reference (transformers, fp32) to us and to llama.cpp on the same tokens",
        "date": peer["date"],
        "machine": peer["machine"],
        "peer": peer["peer"],
        "commands": [
            "memdecay perplexity MODEL -t 1 --kl-divergence-base NAME.kld --precision fast|exact --json",
            "llama-perplexity -m MODEL -c N --chunks N -t 1 -fa auto -f text.txt --save-all-logits FILE",
        ],
        "results": results,
    }
    out.write_text(json.dumps(report, indent=2) + "\n")


if __name__ == "__main__":
    main()
