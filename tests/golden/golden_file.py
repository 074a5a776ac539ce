"""The compact golden file: what the reference engine predicts at every scored position.

Little-endian, no padding:

    char   magic[8]            "MDGOLD1\\n"
    u8     model_sha256[32]    of the GGUF file
    u32    n_ctx               tokens of a chunk; every chunk starts from an empty cache
    u32    n_vocab
    u32    n_chunks
    u32    first_scored        positions first_scored .. n_ctx - 2 of every chunk are scored
    u32    n_entries           sum of counts
    i32    tokens[n_chunks * n_ctx]      as evaluated: BOS is already in place where wanted
    u16    counts[n_scored]              n_scored = n_chunks * (n_ctx - 1 - first_scored)
    f32    target_log_prob[n_scored]     of tokens[position + 1]
    f32    rest_log_prob[n_scored]       of all ids that are not listed; -inf when all are
    u32    ids[n_entries]                omitted when every count equals n_vocab
    f32    log_probs[n_entries]          natural logarithm

Listed ids go by falling probability (the first is the reference's choice), unless ids are omitted:
then entry i is id i.

The bucketed KL of a candidate q against it, with Q_rest the sum of q over the ids not listed:

    KL = sum_listed p * (log p - log q) + P_rest * (log P_rest - log Q_rest)

It is a lower bound of the whole KL (data-processing inequality), and equal to it when all are
listed.
"""

import dataclasses
import struct

import numpy as np

MAGIC = b"MDGOLD1\n"
MAX_LISTED = 64
LARGEST_REST = 1e-3


@dataclasses.dataclass
class Golden:
    model_sha256: bytes
    n_ctx: int
    n_vocab: int
    first_scored: int
    tokens: np.ndarray  # int32 [chunks, n_ctx]
    target_log_prob: np.ndarray
    rest_log_prob: np.ndarray
    ids: list[np.ndarray]
    log_probs: list[np.ndarray]

    @property
    def n_scored(self) -> int:
        return len(self.log_probs)

    def target(self, index: int) -> int:
        chunk, offset = divmod(index, self.n_ctx - 1 - self.first_scored)
        return int(self.tokens[chunk, self.first_scored + offset + 1])

    def kl_and_same_top(self, index: int, log_q: np.ndarray) -> tuple[float, bool]:
        ids, log_p = self.ids[index], self.log_probs[index].astype(np.float64)
        log_q = log_q.astype(np.float64)
        kl = float(np.sum(np.exp(log_p) * (log_p - log_q[ids])))
        rest = float(self.rest_log_prob[index])
        if np.isfinite(rest):
            others = np.ones(self.n_vocab, bool)
            others[ids] = False
            kl += np.exp(rest) * (rest - np.log(np.sum(np.exp(log_q[others]))))
        return kl, int(ids[np.argmax(log_p)]) == int(np.argmax(log_q))


def choose(log_probs: np.ndarray, list_all: bool) -> tuple[np.ndarray, np.ndarray, float]:
    """(ids, log-probabilities, log of the rest) that stand for one position."""
    if list_all:
        return np.arange(log_probs.size), log_probs, -np.inf
    top = np.argpartition(-log_probs, MAX_LISTED)[:MAX_LISTED]
    top = top[np.argsort(-log_probs[top], kind="stable")]
    covered = np.cumsum(np.exp(log_probs[top].astype(np.float64)))
    count = int(min(MAX_LISTED, np.searchsorted(covered, 1 - LARGEST_REST) + 1))
    others = np.ones(log_probs.size, bool)
    others[top[:count]] = False
    rest = np.log(np.sum(np.exp(log_probs[others].astype(np.float64))))
    return top[:count], log_probs[top[:count]], float(rest)


def write(path: str, golden: Golden) -> None:
    counts = np.array([len(x) for x in golden.log_probs], "<u2")
    chunks = golden.tokens.size // golden.n_ctx
    with open(path, "wb") as file:
        file.write(MAGIC + golden.model_sha256)
        header = (golden.n_ctx, golden.n_vocab, chunks, golden.first_scored, int(counts.sum()))
        file.write(struct.pack("<5I", *header))
        file.write(golden.tokens.astype("<i4").tobytes())
        file.write(counts.tobytes())
        file.write(np.asarray(golden.target_log_prob, "<f4").tobytes())
        file.write(np.asarray(golden.rest_log_prob, "<f4").tobytes())
        if not np.all(counts == golden.n_vocab):
            file.write(np.concatenate(golden.ids).astype("<u4").tobytes())
        file.write(np.concatenate(golden.log_probs).astype("<f4").tobytes())


def read(path: str) -> Golden:
    with open(path, "rb") as file:
        content = file.read()
    if content[:8] != MAGIC:
        raise ValueError(f"{path} is not a golden file")
    sha = content[8:40]
    n_ctx, n_vocab, chunks, first, entries = struct.unpack_from("<5I", content, 40)
    at = 60

    def take(dtype: str, count: int) -> np.ndarray:
        nonlocal at
        values = np.frombuffer(content, dtype, count, at)
        at += values.nbytes
        return values

    tokens = take("<i4", chunks * n_ctx).reshape(chunks, n_ctx)
    scored = chunks * (n_ctx - 1 - first)
    counts = take("<u2", scored).astype(np.int64)
    target, rest = take("<f4", scored), take("<f4", scored)
    if np.all(counts == n_vocab):
        ids = np.tile(np.arange(n_vocab, dtype=np.uint32), scored)
    else:
        ids = take("<u4", entries)
    log_probs = take("<f4", entries)
    if at != len(content):
        raise ValueError(f"{path} has {len(content)} bytes where {at} were expected")
    cuts = np.cumsum(counts)[:-1]
    return Golden(
        sha, n_ctx, n_vocab, first, tokens, target, rest,
        np.split(ids, cuts), np.split(log_probs, cuts),
    )
