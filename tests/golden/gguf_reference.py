"""A transformers model in fp32 whose weights are the dequantized tensors of a GGUF file.

This is the independent engine that the golden numbers come from. It is not transformers' own
`gguf_file=` loader: configuration and tensor names are mapped here, so that one page shows every
assumption (row order of q and k, norm offsets, tied embeddings, window, rope bases and scaling),
and an unknown or missing tensor is an error.

Architectures: llama, qwen2, qwen3, gemma3.
"""

import numpy as np
import torch
import transformers
from gguf import GGUFReader
from gguf.quants import dequantize

# GGUF name of a layer's tensor -> transformers name below "model.layers.N.".
_LAYER_NAMES = {
    "attn_norm": "input_layernorm",
    "attn_q": "self_attn.q_proj",
    "attn_k": "self_attn.k_proj",
    "attn_v": "self_attn.v_proj",
    "attn_output": "self_attn.o_proj",
    "attn_q_norm": "self_attn.q_norm",
    "attn_k_norm": "self_attn.k_norm",
    "ffn_norm": "post_attention_layernorm",
    "ffn_gate": "mlp.gate_proj",
    "ffn_up": "mlp.up_proj",
    "ffn_down": "mlp.down_proj",
}
# gemma3 norms its sublayers on both sides; what others call ffn_norm is the norm before the FFN.
_GEMMA3_NAMES = {
    "post_attention_norm": "post_attention_layernorm",
    "ffn_norm": "pre_feedforward_layernorm",
    "post_ffw_norm": "post_feedforward_layernorm",
}
_TOP_NAMES = {
    "token_embd.weight": "model.embed_tokens.weight",
    "output_norm.weight": "model.norm.weight",
    "output.weight": "lm_head.weight",
}
_GEMMA3_LOCAL_ROPE_BASE = 10000.0
_GEMMA3_GLOBAL_EVERY = 6


class Metadata:
    """The key-value part of a GGUF file; keys of the architecture without their prefix."""

    def __init__(self, reader: GGUFReader) -> None:
        self._fields = reader.fields
        self.architecture = self.get("general.architecture")

    def get(self, key: str, default=None):
        field = self._fields.get(key)
        return default if field is None else field.contents()

    def arch(self, key: str, default=None):
        value = self.get(f"{self.architecture}.{key}", default)
        if value is None:
            raise KeyError(f"the file has no {self.architecture}.{key}")
        return value


def _rope_parameters(meta: Metadata, rope_factors: np.ndarray | None) -> dict:
    base = float(meta.arch("rope.freq_base", 10000.0))
    if rope_factors is not None:
        # The factors divide the inverse frequencies; load_model() puts them in directly.
        return {"rope_type": "default", "rope_theta": base}
    kind = meta.arch("rope.scaling.type", "none")
    if kind == "linear":
        factor = float(meta.arch("rope.scaling.factor"))
        return {"rope_type": "linear", "rope_theta": base, "factor": factor}
    if kind != "none":
        raise ValueError(f"rope scaling {kind!r} is not known to this script")
    return {"rope_type": "default", "rope_theta": base}


def _config(meta: Metadata, n_vocab: int, tied: bool, rope: dict):
    heads = meta.arch("attention.head_count")
    hidden = meta.arch("embedding_length")
    common = dict(
        vocab_size=n_vocab,
        hidden_size=hidden,
        intermediate_size=meta.arch("feed_forward_length"),
        num_hidden_layers=meta.arch("block_count"),
        num_attention_heads=heads,
        num_key_value_heads=meta.arch("attention.head_count_kv", heads),
        head_dim=meta.arch("attention.key_length", hidden // heads),
        rms_norm_eps=float(meta.arch("attention.layer_norm_rms_epsilon")),
        max_position_embeddings=meta.arch("context_length"),
        tie_word_embeddings=tied,
        attn_implementation="eager",
        bos_token_id=None,
        eos_token_id=None,
        pad_token_id=None,
    )
    if meta.architecture == "llama":
        return transformers.LlamaConfig(rope_parameters=rope, **common)
    if meta.architecture == "qwen2":
        return transformers.Qwen2Config(rope_parameters=rope, **common)
    if meta.architecture == "qwen3":
        return transformers.Qwen3Config(rope_parameters=rope, **common)
    if meta.architecture == "gemma3":
        layers = range(common["num_hidden_layers"])
        return transformers.Gemma3TextConfig(
            layer_types=[
                "full_attention" if (i + 1) % _GEMMA3_GLOBAL_EVERY == 0 else "sliding_attention"
                for i in layers
            ],
            sliding_window=meta.arch("attention.sliding_window"),
            query_pre_attn_scalar=common["head_dim"],
            rope_parameters={
                "full_attention": rope,
                "sliding_attention": {
                    "rope_type": "default",
                    "rope_theta": float(meta.arch("rope.freq_base_swa", _GEMMA3_LOCAL_ROPE_BASE)),
                },
            },
            **common,
        )
    raise ValueError(f"architecture {meta.architecture!r} is not known to this script")


def _halves_from_pairs(weight: np.ndarray, heads: int) -> np.ndarray:
    """llama files keep the rows of q and k so that rope turns neighbours (2i, 2i + 1);
    transformers turns (i, i + head_dim / 2)."""
    head_dim = weight.shape[0] // heads
    pairs = weight.reshape(heads, head_dim // 2, 2, *weight.shape[1:])
    return np.ascontiguousarray(pairs.swapaxes(1, 2)).reshape(weight.shape)


def _name_in_transformers(gguf_name: str, architecture: str) -> str:
    if gguf_name in _TOP_NAMES:
        return _TOP_NAMES[gguf_name]
    _, layer, tensor, kind = gguf_name.split(".")
    names = dict(_LAYER_NAMES, **(_GEMMA3_NAMES if architecture == "gemma3" else {}))
    return f"model.layers.{layer}.{names[tensor]}.{kind}"


def _value_in_transformers(gguf_name: str, value: np.ndarray, meta: Metadata) -> np.ndarray:
    if meta.architecture == "llama":
        heads = meta.arch("attention.head_count")
        if ".attn_q." in gguf_name:
            return _halves_from_pairs(value, heads)
        if ".attn_k." in gguf_name:
            return _halves_from_pairs(value, meta.arch("attention.head_count_kv", heads))
    if meta.architecture == "gemma3" and gguf_name.endswith("norm.weight"):
        return value - np.float32(1)  # transformers adds the 1 that the file has already added
    return value


def load_model(path: str, dtype=torch.float32):
    """Returns (model in eval mode, Metadata). Raises when a tensor is unknown or missing."""
    reader = GGUFReader(path)
    meta = Metadata(reader)
    tensors = {t.name: t for t in reader.tensors}
    factors = tensors.pop("rope_freqs.weight", None)
    rope_factors = None if factors is None else dequantize(factors.data, factors.tensor_type)
    tied = "output.weight" not in tensors
    n_vocab = int(tensors["token_embd.weight"].shape[1])

    config = _config(meta, n_vocab, tied, _rope_parameters(meta, rope_factors))
    model = transformers.AutoModelForCausalLM.from_config(config, dtype=dtype).eval()
    state = model.state_dict()
    missing = {name for name in state if not (tied and name == "lm_head.weight")}
    with torch.no_grad():
        for name, tensor in tensors.items():
            value = dequantize(tensor.data, tensor.tensor_type).astype(np.float32)
            value = _value_in_transformers(name, value, meta)
            target = _name_in_transformers(name, meta.architecture)
            if tuple(state[target].shape) != value.shape:
                raise ValueError(f"{name}: {value.shape} does not fit {tuple(state[target].shape)}")
            state[target].copy_(torch.from_numpy(value))
            missing.discard(target)
        if rope_factors is not None:
            model.model.rotary_emb.inv_freq /= torch.tensor(rope_factors.reshape(-1))
    if missing:
        raise ValueError(f"the file has no tensor for {sorted(missing)}")
    return model, meta
