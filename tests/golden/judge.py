#!/usr/bin/env python3
"""Judges a candidate's logits file (llama-perplexity --save-all-logits, or ours) on one text.

    judge.py CANDIDATE.kld --golden MODEL.golden --full MODEL.npy [--chunks N]

Prints one JSON object: `full` against all log-probabilities of the reference (from
make_golden.py --full), `compact` against the committed golden file, each with mean_kld, p99_kld,
max_kld, same_top, ppl and tokens. The candidate must have been run on the same tokens; that is
checked.

A logits file clips what lies 16 below the largest logit, which is some tenths of a percent of the
mass in a large vocabulary. Clipped ids get the reference's own value, so they count neither for nor
against the candidate; taking the clipped value at its word would add up to 2e-3 to every KL.
"""

import argparse
import json

import numpy as np

import golden_file
import kl_base


def summary(klds: np.ndarray, same: np.ndarray, target_log_probs: np.ndarray) -> dict:
    return {
        "mean_kld": float(np.mean(klds)),
        "p99_kld": float(np.quantile(klds, 0.99)),
        "max_kld": float(np.max(klds)),
        "same_top": float(np.mean(same)),
        "ppl": float(np.exp(-np.mean(target_log_probs))),
        "tokens": int(klds.size),
    }


def check_tokens(candidate: kl_base.KlBase, golden: golden_file.Golden) -> None:
    """The first token of a chunk may differ: llama-perplexity puts BOS there, not in the file."""
    same = np.array_equal(candidate.tokens[:, 1:], golden.tokens[:, 1:])
    if candidate.n_ctx != golden.n_ctx or not same:
        raise SystemExit("the candidate ran on other tokens than the golden file holds")
    if candidate.first_scored != golden.first_scored:
        raise SystemExit("the candidate scored other positions than the golden file holds")


def judge(candidate_path: str, golden_path: str, full_path: str, chunks: int | None = None) -> dict:
    """Of the first `chunks` chunks; by default of all that the candidate has."""
    candidate = kl_base.read(candidate_path)
    golden = golden_file.read(golden_path)
    check_tokens(candidate, golden)
    full = np.load(full_path, mmap_mode="r")
    count = min(golden.n_scored, len(candidate.records))
    if chunks is not None:
        count = chunks * kl_base.scored_per_chunk(golden.n_ctx)

    whole, listed, same, targets = [], [], [], []
    for index in range(count):
        log_p = full[index].astype(np.float64)
        log_q = candidate.log_probs(index).astype(np.float64)
        log_q = np.where(candidate.clipped(index), np.minimum(log_p, log_q), log_q)
        log_q -= np.log(np.sum(np.exp(log_q)))  # rounding leaves the sum near 1
        whole.append(np.sum(np.exp(log_p) * (log_p - log_q)))
        kl, top = golden.kl_and_same_top(index, log_q)
        listed.append(kl)
        same.append(top)
        targets.append(log_q[golden.target(index)])
    same, targets = np.array(same), np.array(targets)
    return {
        "full": summary(np.array(whole), same, targets),
        "compact": summary(np.array(listed), same, targets),
        "reference_ppl": float(
            np.exp(-np.mean(golden.target_log_prob[:count], dtype=np.float64))
        ),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("candidate")
    parser.add_argument("--golden", required=True)
    parser.add_argument("--full", required=True)
    parser.add_argument("--chunks", type=int, help="judge the first of them only")
    args = parser.parse_args()
    print(json.dumps(judge(args.candidate, args.golden, args.full, args.chunks), indent=2))


if __name__ == "__main__":
    main()
