#!/usr/bin/env python3
"""Writes tiny random models as GGUF files: every architecture, every tensor type.

    make_tiny_models.py FOLDER [NAME...]        writes FOLDER/NAME.gguf; all of them by default
    make_tiny_models.py --list                  prints the names

Needs the standard library only, so that tests can make the files at build time. The bytes depend on
nothing but this script: all randomness is SHAKE-256 of the model's and the tensor's name. Quantized
tensors are random blocks (every code, every scale pattern) whose fp16 scales are chosen so that the
weights have the spread of a trained model; no quantizer is involved.
"""

import argparse
import array
import hashlib
import math
import pathlib
import struct

VOCAB = 317  # a prime: no panel width divides it
F32 = 0
PLAIN_TYPES = {"F32": F32, "F16": 1, "BF16": 30}


class BlockType:
    """A quantized type: where its fp16 scales are, and the spread of its values at scale 1."""

    def __init__(self, number, values, size, scale_at, min_at=None, min_ratio=0.0, spread=1.0):
        self.number, self.values, self.size = number, values, size
        self.scale_at, self.min_at = scale_at, min_at
        self.min_ratio = min_ratio  # of the min's scale to the scale, so that the mean is near 0
        self.spread = spread  # standard deviation of a value when the scale is 1


BLOCK_TYPES = {
    "Q4_0": BlockType(2, 32, 18, 0, spread=4.61),
    "Q4_1": BlockType(3, 32, 20, 0, 2, -7.5, 4.61),
    "Q5_0": BlockType(6, 32, 22, 0, spread=9.23),
    "Q5_1": BlockType(7, 32, 24, 0, 2, -15.5, 9.23),
    "Q8_0": BlockType(8, 32, 34, 0, spread=73.9),
    "Q2_K": BlockType(10, 256, 84, 80, 82, 1.5, 12.7),
    "Q3_K": BlockType(11, 256, 110, 108, spread=42.7),
    "Q4_K": BlockType(12, 256, 144, 0, 2, 7.5, 248.0),
    "Q5_K": BlockType(13, 256, 176, 0, 2, 15.5, 504.0),
    "Q6_K": BlockType(14, 256, 210, 208, spread=1370.0),
    "IQ4_NL": BlockType(20, 32, 18, 0, spread=68.7),
}
TYPES = [*PLAIN_TYPES, *BLOCK_TYPES]


def random_bytes(seed: str, count: int) -> bytes:
    return hashlib.shake_256(seed.encode()).digest(count)


def uniform(seed: str, count: int, spread: float, centre: float = 0.0) -> list[float]:
    """`count` numbers around `centre` with the standard deviation `spread`."""
    raw = array.array("H", random_bytes(seed, 2 * count))
    step = spread * math.sqrt(12) / 65536
    return [centre + step * (value - 32767.5) for value in raw]


def tensor_bytes(seed: str, kind: str, count: int, spread: float) -> bytes:
    if kind == "F32":
        return struct.pack(f"<{count}f", *uniform(seed, count, spread))
    if kind == "F16":
        return struct.pack(f"<{count}e", *uniform(seed, count, spread))
    if kind == "BF16":
        words = array.array("H", struct.pack(f"<{count}f", *uniform(seed, count, spread)))
        return words[1::2].tobytes()
    block = BLOCK_TYPES[kind]
    blocks = count // block.values
    content = bytearray(random_bytes(seed, blocks * block.size))
    scales = uniform(seed + "/scale", blocks, 0.2, 1.0)
    for index, factor in enumerate(scales):
        at = index * block.size
        scale = factor * spread / block.spread
        # Files have scales of either sign where nothing but the scale carries one.
        if block.min_at is None and index % 3 == 1:
            scale = -scale
        struct.pack_into("<e", content, at + block.scale_at, scale)
        if block.min_at is not None:
            struct.pack_into("<e", content, at + block.min_at, scale * block.min_ratio)
    return bytes(content)


class GgufFile:
    """Collects metadata and tensors, then writes GGUF version 3."""

    ALIGNMENT = 32
    U32, I32, F32_VALUE, BOOL, STRING, ARRAY = 4, 5, 6, 7, 8, 9

    def __init__(self) -> None:
        self._metadata: list[bytes] = []
        self._tensors: list[tuple[str, tuple[int, ...], int, bytes]] = []

    @staticmethod
    def _text(value: str) -> bytes:
        raw = value.encode()
        return struct.pack("<Q", len(raw)) + raw

    def _value(self, kind: int, value) -> bytes:
        if kind == self.STRING:
            return self._text(value)
        return struct.pack({4: "<I", 5: "<i", 6: "<f", 7: "<?"}[kind], value)

    def put(self, key: str, kind: int, value) -> None:
        self._metadata.append(self._text(key) + struct.pack("<I", kind) + self._value(kind, value))

    def put_array(self, key: str, kind: int, values: list) -> None:
        head = struct.pack("<IIQ", self.ARRAY, kind, len(values))
        content = b"".join(self._value(kind, value) for value in values)
        self._metadata.append(self._text(key) + head + content)

    def add(self, name: str, shape: tuple[int, ...], number: int, content: bytes) -> None:
        """`shape` in GGUF's order: the row length first."""
        self._tensors.append((name, shape, number, content))

    def write(self, path: pathlib.Path) -> None:
        infos, offset = [], 0
        for name, shape, number, content in self._tensors:
            infos.append(self._text(name) + struct.pack("<I", len(shape)))
            infos.append(struct.pack(f"<{len(shape)}Q", *shape))
            infos.append(struct.pack("<IQ", number, offset))
            offset += -(-len(content) // self.ALIGNMENT) * self.ALIGNMENT
        counts = struct.pack("<IQQ", 3, len(self._tensors), len(self._metadata))
        head = b"GGUF" + counts + b"".join(self._metadata) + b"".join(infos)
        with open(path, "wb") as file:
            file.write(head + bytes(-len(head) % self.ALIGNMENT))
            for *_, content in self._tensors:
                file.write(content + bytes(-len(content) % self.ALIGNMENT))


def byte_letters() -> list[str]:
    """The printable stand-ins that GPT-2 vocabularies use for the 256 bytes, by byte."""
    plain = [*range(33, 127), *range(161, 173), *range(174, 256)]
    others = [byte for byte in range(256) if byte not in plain]
    letters = {byte: chr(byte) for byte in plain}
    letters.update({byte: chr(256 + index) for index, byte in enumerate(others)})
    return [letters[byte] for byte in range(256)]


def put_bpe(file: GgufFile, pattern: str) -> None:
    pairs = [(first, second) for first in "Ġthaein" for second in "theanors"] + [("th", "e")]
    specials = ["<|endoftext|>", "<|im_start|>", "<|im_end|>", "<|pad|>"]
    tokens = byte_letters() + [first + second for first, second in pairs] + specials
    file.put("tokenizer.ggml.model", file.STRING, "gpt2")
    file.put("tokenizer.ggml.pre", file.STRING, pattern)
    file.put_array("tokenizer.ggml.tokens", file.STRING, tokens)
    file.put_array("tokenizer.ggml.token_type", file.I32, [1] * (len(tokens) - 4) + [3] * 4)
    file.put_array("tokenizer.ggml.merges", file.STRING, [f"{a} {b}" for a, b in pairs])
    file.put("tokenizer.ggml.bos_token_id", file.U32, len(tokens) - 4)
    file.put("tokenizer.ggml.eos_token_id", file.U32, len(tokens) - 2)
    file.put("tokenizer.ggml.add_bos_token", file.BOOL, False)


def put_sentencepiece(file: GgufFile) -> None:
    letters = [chr(code) for code in range(ord("a"), ord("z") + 1)]
    pairs = [first + second for first in "▁thaei" for second in "thean"]
    tokens = ["<pad>", "<eos>", "<bos>", "<unk>"] + [f"<0x{byte:02X}>" for byte in range(256)]
    kinds = [3, 3, 3, 2] + [6] * 256
    pieces = pairs + ["▁"] + letters
    tokens += pieces
    kinds += [1] * len(pieces)
    scores = [-1000.0] * 260 + [float(-index) for index in range(len(pieces))]
    file.put("tokenizer.ggml.model", file.STRING, "llama")
    file.put("tokenizer.ggml.pre", file.STRING, "default")
    file.put_array("tokenizer.ggml.tokens", file.STRING, tokens)
    file.put_array("tokenizer.ggml.scores", file.F32_VALUE, scores)
    file.put_array("tokenizer.ggml.token_type", file.I32, kinds)
    for name, index in (("padding", 0), ("eos", 1), ("bos", 2), ("unknown", 3)):
        file.put(f"tokenizer.ggml.{name}_token_id", file.U32, index)
    file.put("tokenizer.ggml.add_bos_token", file.BOOL, True)
    file.put("tokenizer.ggml.add_space_prefix", file.BOOL, False)


class Shape:
    """The numbers of one tiny model."""

    def __init__(self, architecture, types, *, layers=2, heads=4, kv_heads=2, head_dim=64,
                 tied=False, window=0, rope_base=10000.0, llama3_scaling=False):  # fmt: skip
        self.architecture, self.types, self.layers = architecture, types, layers
        self.heads, self.kv_heads, self.head_dim = heads, kv_heads, head_dim
        self.tied, self.window, self.rope_base = tied, window, rope_base
        self.llama3_scaling = llama3_scaling
        self.hidden, self.ffn = 256, 512


MODELS = {f"tiny-llama-{kind.lower()}": Shape("llama", [kind]) for kind in TYPES}
MODELS["tiny-llama3"] = Shape("llama", TYPES, tied=True, rope_base=500000.0, llama3_scaling=True)
MODELS["tiny-qwen2"] = Shape("qwen2", TYPES[3:], kv_heads=1, rope_base=1000000.0)
MODELS["tiny-qwen3"] = Shape("qwen3", TYPES[5:], heads=8, kv_heads=2, head_dim=128, tied=True)
MODELS["tiny-gemma3"] = Shape("gemma3", TYPES[4:], layers=8, kv_heads=1, head_dim=256,
                              tied=True, window=16, rope_base=1000000.0)  # fmt: skip


def llama3_factors(shape: Shape) -> list[float]:
    """What divides the inverse frequencies: factor 8 for waves longer than the original context of
    64 tokens, 1 for waves shorter than a quarter of it, smooth between them."""
    factor, low, high, context = 8.0, 1.0, 4.0, 64
    factors = []
    for index in range(shape.head_dim // 2):
        wave = 2 * math.pi * shape.rope_base ** (2 * index / shape.head_dim)
        smooth = min(1.0, max(0.0, (context / wave - low) / (high - low)))
        factors.append(1 / ((1 - smooth) / factor + smooth))
    return factors


def put_metadata(file: GgufFile, name: str, shape: Shape) -> None:
    arch = shape.architecture
    file.put("general.architecture", file.STRING, arch)
    file.put("general.name", file.STRING, name)
    numbers = {
        "context_length": 2048,
        "embedding_length": shape.hidden,
        "block_count": shape.layers,
        "feed_forward_length": shape.ffn,
        "attention.head_count": shape.heads,
        "attention.head_count_kv": shape.kv_heads,
        "attention.key_length": shape.head_dim,
        "attention.value_length": shape.head_dim,
        "rope.dimension_count": shape.head_dim,
        "vocab_size": VOCAB,
    }
    if shape.window:
        numbers["attention.sliding_window"] = shape.window
    for key, value in numbers.items():
        file.put(f"{arch}.{key}", file.U32, value)
    file.put(f"{arch}.rope.freq_base", file.F32_VALUE, shape.rope_base)
    file.put(f"{arch}.attention.layer_norm_rms_epsilon", file.F32_VALUE, 1e-5)
    if arch == "gemma3":
        put_sentencepiece(file)
    else:
        put_bpe(file, "llama-bpe" if arch == "llama" else "qwen2")


class TensorMaker:
    """Adds tensors to a file; matrices take the shape's types in turn."""

    def __init__(self, file: GgufFile, name: str, shape: Shape) -> None:
        self._file, self._name, self._types = file, name, shape.types
        self._matrices = 0

    def matrix(self, tensor: str, row: int, rows: int, spread: float | None = None) -> None:
        kind = self._types[self._matrices % len(self._types)]
        self._matrices += 1
        number = PLAIN_TYPES[kind] if kind in PLAIN_TYPES else BLOCK_TYPES[kind].number
        spread = spread or 1 / math.sqrt(row)
        content = tensor_bytes(f"{self._name}/{tensor}", kind, row * rows, spread)
        self._file.add(tensor, (row, rows), number, content)

    def vector(self, tensor: str, values: list[float]) -> None:
        self._file.add(tensor, (len(values),), F32, struct.pack(f"<{len(values)}f", *values))

    def norm(self, tensor: str, size: int, centre: float = 1.0) -> None:
        self.vector(tensor, uniform(f"{self._name}/{tensor}", size, 0.2 * centre, centre))

    def bias(self, tensor: str, size: int) -> None:
        self.vector(tensor, uniform(f"{self._name}/{tensor}", size, 0.3))


def put_layer(make: TensorMaker, shape: Shape, layer: int) -> None:
    block = f"blk.{layer}."
    queries, keys = shape.heads * shape.head_dim, shape.kv_heads * shape.head_dim
    make.norm(block + "attn_norm.weight", shape.hidden)
    for letter, rows in (("q", queries), ("k", keys), ("v", keys)):
        make.matrix(f"{block}attn_{letter}.weight", shape.hidden, rows)
        if shape.architecture == "qwen2":
            make.bias(f"{block}attn_{letter}.bias", rows)
    if shape.architecture in ("qwen3", "gemma3"):
        make.norm(block + "attn_q_norm.weight", shape.head_dim)
        make.norm(block + "attn_k_norm.weight", shape.head_dim)
    make.matrix(block + "attn_output.weight", queries, shape.hidden)
    if shape.architecture == "gemma3":
        make.norm(block + "post_attention_norm.weight", shape.hidden)
    make.norm(block + "ffn_norm.weight", shape.hidden)
    make.matrix(block + "ffn_gate.weight", shape.hidden, shape.ffn)
    make.matrix(block + "ffn_up.weight", shape.hidden, shape.ffn)
    make.matrix(block + "ffn_down.weight", shape.ffn, shape.hidden)
    if shape.architecture == "gemma3":
        make.norm(block + "post_ffw_norm.weight", shape.hidden)


def write_model(folder: pathlib.Path, name: str) -> pathlib.Path:
    shape = MODELS[name]
    file = GgufFile()
    put_metadata(file, name, shape)
    make = TensorMaker(file, name, shape)
    make.matrix("token_embd.weight", shape.hidden, VOCAB, 1 / math.sqrt(shape.hidden))
    for layer in range(shape.layers):
        put_layer(make, shape, layer)
    # Three times the usual size: logits spread like a trained model's, so that errors show.
    make.norm("output_norm.weight", shape.hidden, 3.0)
    if not shape.tied:
        make.matrix("output.weight", shape.hidden, VOCAB)
    if shape.llama3_scaling:
        make.vector("rope_freqs.weight", llama3_factors(shape))
    path = folder / f"{name}.gguf"
    file.write(path)
    return path


def tokens_for(name: str, count: int) -> list[int]:
    """The ids that the golden file of this model is made from; control tokens are left out."""
    return [4 + value % (VOCAB - 8) for value in
            array.array("H", random_bytes(f"{name}/tokens", 2 * count))]  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", nargs="?", type=pathlib.Path)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--list", action="store_true", help="print the names and write nothing")
    args = parser.parse_args()
    if args.list:
        print("\n".join(MODELS))
        return
    if args.folder is None:
        parser.error("name the folder to write to")
    args.folder.mkdir(parents=True, exist_ok=True)
    for name in args.names or MODELS:
        write_model(args.folder, name)


if __name__ == "__main__":
    main()
