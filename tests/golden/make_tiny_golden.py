#!/usr/bin/env python3
"""Makes the golden files of the tiny models: make_tiny_golden.py WORK_FOLDER [NAME...]

Writes the models to WORK_FOLDER, and tiny/NAME.golden beside this
script, with the whole vocabulary listed.
"""

import argparse
import pathlib

import torch

import golden_file
import make_tiny_models
from make_golden import make

HERE = pathlib.Path(__file__).resolve().parent
# A type's model only has to show the type; an architecture's has to pass its window and its waves.
TYPE_CHUNK, TYPE_FIRST = 48, 32
ARCHITECTURE_CHUNK, ARCHITECTURE_FIRST = 128, 88
CHUNKS = 1


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("work", type=pathlib.Path)
    parser.add_argument("names", nargs="*")
    args = parser.parse_args()
    torch.set_num_threads(1)
    args.work.mkdir(parents=True, exist_ok=True)
    (HERE / "tiny").mkdir(exist_ok=True)
    for name in args.names or make_tiny_models.MODELS:
        path = str(make_tiny_models.write_model(args.work, name))
        of_type = name.startswith("tiny-llama-")
        ctx = TYPE_CHUNK if of_type else ARCHITECTURE_CHUNK
        first = TYPE_FIRST if of_type else ARCHITECTURE_FIRST
        ids = make_tiny_models.tokens_for(name, CHUNKS * ctx)
        golden = make(path, ids, ctx, CHUNKS, first, list_all=True)
        golden_file.write(str(HERE / "tiny" / f"{name}.golden"), golden)
        top = sum(max(x) for x in golden.log_probs) / golden.n_scored
        print(f"{name}: {golden.n_scored} positions, mean log-probability of the top {top:.2f}")


if __name__ == "__main__":
    main()
