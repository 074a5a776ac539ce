"""Reads and writes the logits file of llama-perplexity (docs/formats/kl_base.md).

Lossy: 16 bits a value. The error floor is in the format's document.
"""

import dataclasses
import os
import struct

import numpy as np

MAGIC = b"_logits_"
LOGIT_RANGE = np.float32(16)  # what lies further below the largest logit is clipped
STEPS = np.float32(65535)


@dataclasses.dataclass
class KlBase:
    n_ctx: int
    n_vocab: int
    tokens: np.ndarray  # int32 [chunks, n_ctx]
    records: np.ndarray  # uint16 [chunks * scored, record width], memory-mapped

    @property
    def first_scored(self) -> int:
        return self.n_ctx // 2

    def log_probs(self, index: int) -> np.ndarray:
        """float32 [n_vocab] of the scored position `index`."""
        record = self.records[index]
        scale, lowest = record[:4].view(np.float32)
        return scale * record[4 : 4 + self.n_vocab].astype(np.float32) + lowest

    def clipped(self, index: int) -> np.ndarray:
        """bool [n_vocab]: where the file holds the lowest value and the truth may be below it."""
        return self.records[index][4 : 4 + self.n_vocab] == 0


def record_width(n_vocab: int) -> int:
    """uint16 units of one position: scale and lowest as float32, then the vocabulary, made even."""
    return 4 + n_vocab + n_vocab % 2


def scored_per_chunk(n_ctx: int) -> int:
    return n_ctx - 1 - n_ctx // 2


def encode(log_probs: np.ndarray) -> np.ndarray:
    """One record from normalised log-probabilities."""
    log_probs = log_probs.astype(np.float32)
    highest = log_probs.max()
    lowest = max(log_probs.min(), highest - LOGIT_RANGE)
    scale = np.float32((highest - lowest) / STEPS)
    record = np.zeros(record_width(log_probs.size), np.uint16)
    record[:4] = np.array([scale, lowest], np.float32).view(np.uint16)
    if scale > 0:
        codes = np.rint((np.maximum(log_probs, lowest) - lowest) / scale)
        record[4 : 4 + log_probs.size] = codes.astype(np.uint16)
    return record


class Writer:
    def __init__(self, path: str, n_ctx: int, n_vocab: int, tokens: np.ndarray) -> None:
        chunks = tokens.size // n_ctx
        self._file = open(path, "wb")
        self._file.write(MAGIC + struct.pack("<iii", n_ctx, n_vocab, chunks))
        self._file.write(tokens.astype("<i4").tobytes())

    def append(self, log_probs: np.ndarray) -> None:
        self._file.write(encode(log_probs).tobytes())

    def close(self) -> None:
        self._file.close()


def read(path: str) -> KlBase:
    with open(path, "rb") as file:
        if file.read(8) != MAGIC:
            raise ValueError(f"{path} is not a logits file")
        n_ctx, n_vocab, chunks = struct.unpack("<iii", file.read(12))
        tokens = np.frombuffer(file.read(4 * n_ctx * chunks), "<i4").reshape(chunks, n_ctx)
        offset = file.tell()
        there = (os.fstat(file.fileno()).st_size - offset) // (2 * record_width(n_vocab))
    # A program that was stopped leaves fewer records than its header says.
    shape = (min(there, chunks * scored_per_chunk(n_ctx)), record_width(n_vocab))
    records = np.memmap(path, "<u2", "r", offset=offset, shape=shape)
    return KlBase(n_ctx, n_vocab, tokens, records)
