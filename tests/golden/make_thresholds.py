#!/usr/bin/env python3
"""Writes thresholds.json from what quality_peer.py measured: make_thresholds.py RESULT.json...

`exact` is what the project asks of --precision exact. `fast` is what llama.cpp reached on the first
`chunks` chunks: `full` against all log-probabilities, `compact` against the golden file. Several
results (a run each of some models) are taken together.
"""

import json
import pathlib
import sys

HERE = pathlib.Path(__file__).resolve().parent
EXACT = {"mean_kld": 1e-5, "same_top": 0.998}
# How much of the text the tests evaluate in fp32; they must stay quick.
EXACT_CHUNKS = {"smollm2": 4, "qwen-0.5b": 2, "gemma3-270m": 2}
# Whole vocabulary, few positions; llama.cpp's own mean is 0.001 to 0.006 for quantized types.
TINY = {"exact": {"mean_kld": 1e-6, "same_top": 1.0}, "fast": {"mean_kld": 0.01}}
KEPT = ("mean_kld", "p99_kld", "same_top")


def main() -> None:
    models = {}
    for path in sys.argv[1:]:
        results = json.loads(pathlib.Path(path).read_text())["results"]
        for name, result in results.items():
            judged = result["judged_here"]
            models[name] = {
                "model": result["model"],
                "golden": f"{name}.golden",
                "exact": EXACT | {"chunks": EXACT_CHUNKS.get(name, 1)},
                "fast": {"chunks": result["chunks"]} | {
                    form: {key: judged[form][key] for key in KEPT} for form in ("full", "compact")
                },
            }  # fmt: skip
    text = json.dumps({"models": models, "tiny": TINY}, indent=2)
    (HERE / "thresholds.json").write_text(text + "\n")


if __name__ == "__main__":
    main()
