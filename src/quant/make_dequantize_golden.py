"""Writes dequantize_golden.h: random blocks of each weight type and what the gguf package makes of them.

Usage: python make_dequantize_golden.py > dequantize_golden.h     (needs gguf and numpy; fixed seed)

The truth is independent of this repository. NaN and infinite scales are avoided: their bits are no
part of the formats.
"""

import numpy as np
from gguf import GGML_QUANT_SIZES, GGMLQuantizationType
from gguf.quants import dequantize

TYPES = ["F16", "BF16", "Q4_0", "Q4_1", "Q5_0", "Q5_1", "Q8_0", "Q2_K", "Q3_K", "Q4_K", "Q5_K", "Q6_K", "IQ4_NL"]
# Where a block keeps its fp16 scales.
HALVES = {"F16": [0], "Q4_0": [0], "Q4_1": [0, 2], "Q5_0": [0], "Q5_1": [0, 2], "Q8_0": [0], "Q2_K": [80, 82],
          "Q3_K": [108], "Q4_K": [0, 2], "Q5_K": [0, 2], "Q6_K": [208], "IQ4_NL": [0]}


def array(items, per_line):
    lines = [", ".join(items[i:i + per_line]) for i in range(0, len(items), per_line)]
    return "{\n    " + ",\n    ".join(lines) + "}"


def main():
    random = np.random.default_rng(20261130)
    print("// Made by make_dequantize_golden.py; do not edit.")
    print("// clang-format off")
    print("#pragma once\n\n#include <cstdint>\n#include <vector>\n\n#include \"quant/weight_type.h\"\n")
    print("namespace memdecay {\n")
    print("struct DequantizeGolden {\n  WeightType type;\n  std::vector<std::uint8_t> source;")
    print("  std::vector<std::uint32_t> float_bits;\n};\n")
    print("inline const std::vector<DequantizeGolden> kDequantizeGolden = {")
    for name in TYPES:
        kind = GGMLQuantizationType[name]
        values, size = GGML_QUANT_SIZES[kind]
        blocks = {1: 16, 32: 3, 256: 1}[values]
        source = random.integers(0, 256, (blocks, size), dtype=np.uint8)
        if name == "BF16":
            source[:, 1] &= 0xBF
        for at in HALVES.get(name, []):
            source[:, at + 1] = (source[:, at + 1] & 0x83) | (random.integers(6, 18, blocks, dtype=np.uint8) << 2)
        result = dequantize(source.reshape(1, -1), kind).astype(np.float32).reshape(-1)
        assert np.isfinite(result).all()
        print(f"  {{WeightType::k{name},")
        print("   " + array([f"0x{b:02x}" for b in source.reshape(-1)], 16) + ",")
        print("   " + array([f"0x{b:08x}" for b in result.view(np.uint32)], 8) + "},")
    print("};\n\n}  // namespace memdecay")


main()
