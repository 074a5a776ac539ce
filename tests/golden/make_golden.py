#!/usr/bin/env python3
"""Makes a golden file: the reference engine's predictions for a text, from a GGUF file.

    make_golden.py MODEL.gguf --tokens IDS.json --golden OUT.golden
                   [--ctx 512] [--chunks 8] [--first-scored N] [--all-ids]
                   [--full OUT.npy] [--kl-base OUT.kld]

IDS.json is one JSON array of token ids (of text.txt, by llama-tokenize --ids). The text is cut into
chunks of --ctx tokens; the first token of each chunk becomes BOS when the model asks for one; each
chunk is evaluated from an empty cache; the second half of each chunk is scored. These are the rules
of llama-perplexity. --full keeps all log-probabilities as float32, --kl-base writes them in
llama-perplexity's file format.
"""

import argparse
import hashlib
import json

import numpy as np
import torch

import golden_file
import kl_base
from gguf_reference import load_model


def sha256_of(path: str) -> bytes:
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").digest()


def cut_chunks(ids: list[int], ctx: int, chunks: int, bos: int | None) -> np.ndarray:
    if len(ids) < ctx * chunks:
        raise SystemExit(f"{len(ids)} tokens are too few for {chunks} chunks of {ctx}")
    tokens = np.array(ids[: ctx * chunks], np.int32).reshape(chunks, ctx)
    if bos is not None:
        tokens[:, 0] = bos
    return tokens


def predict(model, chunk: np.ndarray, first: int) -> np.ndarray:
    """float32 log-probabilities [len(chunk) - 1 - first, n_vocab]."""
    with torch.no_grad():
        keep = len(chunk) - first
        ids = torch.from_numpy(chunk.astype(np.int64))[None]
        logits = model(ids, use_cache=False, logits_to_keep=keep).logits[0, :-1]
    rows = [torch.log_softmax(row.double(), -1).float().numpy() for row in logits]
    return np.stack(rows)


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("model")
    parser.add_argument("--tokens", required=True, help="a JSON array of token ids")
    parser.add_argument("--golden", help="the compact file to write")
    parser.add_argument("--ctx", type=int, default=512)
    parser.add_argument("--chunks", type=int, default=8)
    parser.add_argument("--first-scored", type=int, help="default: half of --ctx")
    parser.add_argument("--all-ids", action="store_true", help="list the whole vocabulary")
    parser.add_argument("--full", help="all log-probabilities as a .npy of float32")
    parser.add_argument("--kl-base", help="all log-probabilities as llama-perplexity keeps them")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--double", action="store_true", help="in fp64, to know fp32's noise")
    return parser.parse_args()


def wanted_bos(meta) -> int | None:
    by_default = meta.get("tokenizer.ggml.model") == "llama"
    if not meta.get("tokenizer.ggml.add_bos_token", by_default):
        return None
    return meta.get("tokenizer.ggml.bos_token_id")


def make(path: str, ids: list[int], ctx: int, chunks: int, first: int, list_all: bool = False,
         full_path: str | None = None, base_path: str | None = None,
         dtype: torch.dtype = torch.float32) -> golden_file.Golden:  # fmt: skip
    """Evaluates the model; returns what the golden file holds, writes the long forms if asked."""
    model, meta = load_model(path, dtype)
    tokens = cut_chunks(ids, ctx, chunks, wanted_bos(meta))
    n_vocab = model.config.vocab_size
    full = base = None
    if full_path:
        shape = (chunks * (ctx - 1 - first), n_vocab)
        full = np.lib.format.open_memmap(full_path, "w+", np.float32, shape)
    if base_path:
        base = kl_base.Writer(base_path, ctx, n_vocab, tokens)
    golden = golden_file.Golden(sha256_of(path), ctx, n_vocab, first, tokens, [], [], [], [])
    for chunk in tokens:
        for offset, row in enumerate(predict(model, chunk, first)):
            if full is not None:
                full[golden.n_scored] = row
            if base is not None:
                base.append(row)
            listed, log_probs, rest = golden_file.choose(row, list_all)
            golden.target_log_prob.append(row[chunk[first + offset + 1]])
            golden.rest_log_prob.append(rest)
            golden.ids.append(listed)
            golden.log_probs.append(log_probs)
    if base is not None:
        base.close()
    return golden


def main() -> None:
    args = parse_arguments()
    torch.set_num_threads(args.threads)
    with open(args.tokens) as file:
        ids = json.load(file)
    first = args.ctx // 2 if args.first_scored is None else args.first_scored
    dtype = torch.float64 if args.double else torch.float32
    golden = make(args.model, ids, args.ctx, args.chunks, first, args.all_ids,
                  args.full, args.kl_base, dtype)  # fmt: skip
    ppl = np.exp(-np.mean(np.array(golden.target_log_prob, np.float64)))
    print(f"{golden.n_scored} tokens scored, ppl {ppl:.4f}")
    if args.golden:
        golden_file.write(args.golden, golden)


if __name__ == "__main__":
    main()
