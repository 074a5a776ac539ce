"""Reference tokenizers over the vocabulary of a GGUF file, from other people's packages only."""

import re

from gguf import GGUFReader
from tokenizers import AddedToken, Regex, Tokenizer, models, normalizers, pre_tokenizers

NORMAL, UNKNOWN, CONTROL, USER_DEFINED, UNUSED, BYTE = 1, 2, 3, 4, 5, 6
GPT2 = r"""'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"""
QWEN2 = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|"
         r"\s*[\r\n]+|\s+(?!\S)|\s+")
LLAMA3 = QWEN2.replace(r"|\p{N}|", r"|\p{N}{1,3}|")
UPPER, LOWER = r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]", r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]"
TAIL = r" ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+"
TEKKEN = rf"[^\r\n\p{{L}}\p{{N}}]?{UPPER}*{LOWER}+|[^\r\n\p{{L}}\p{{N}}]?{UPPER}+{LOWER}*|\p{{N}}|" + TAIL
S = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
GPT4O = rf"[^\r\n\p{{L}}\p{{N}}]?{UPPER}*{LOWER}+{S}|[^\r\n\p{{L}}\p{{N}}]?{UPPER}+{LOWER}*{S}|\p{{N}}{{1,3}}|" + TAIL
QWEN35 = QWEN2.replace(r"?\p{L}+", r"?[\p{L}\p{M}]+").replace(r"[^\s\p{L}\p{N}]", r"[^\s\p{L}\p{M}\p{N}]")


def read(path):
    """The vocabulary as plain values, with the names of src/model/tokenizer/vocabulary.h."""
    fields = GGUFReader(path).fields
    get = lambda key, default: fields["tokenizer.ggml." + key].contents() if "tokenizer.ggml." + key in fields else default
    tokens = get("tokens", [])
    return {
        "kind": {"gpt2": "bpe", "llama": "sentencepiece"}[get("model", "")],
        "pre": get("pre", ""), "pieces": tokens, "scores": get("scores", []), "types": get("token_type", []),
        "merges": get("merges", []), "bos": get("bos_token_id", -1), "eos": get("eos_token_id", -1),
        "eot": get("eot_token_id", -1), "unknown": get("unknown_token_id", -1),
        "add_bos": bool(get("add_bos_token", get("model", "") == "llama")), "add_eos": bool(get("add_eos_token", False)),
        "add_space_prefix": bool(get("add_space_prefix", get("model", "") == "llama")),
    }


def pre_tokenizer(name):
    plain = lambda pattern: [pre_tokenizers.Split(Regex(pattern), "isolated")]
    stages = {
        "smollm": [pre_tokenizers.Digits(individual_digits=True)] + plain(GPT2),
        "gpt-2": plain(GPT2), "qwen2": plain(QWEN2), "llama-bpe": plain(LLAMA3), "tekken": plain(TEKKEN),
        "gpt-4o": plain(GPT4O), "qwen35": plain(QWEN35),
    }[name]
    return pre_tokenizers.Sequence(stages + [pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])


def merges_of_scores(vocabulary):
    usable = {p for p, t in zip(vocabulary["pieces"], vocabulary["types"]) if t == NORMAL}
    ranked = sorted((-s, i) for i, (s, t) in enumerate(zip(vocabulary["scores"], vocabulary["types"])) if t == NORMAL)
    merges = []
    for _, i in ranked:
        piece = vocabulary["pieces"][i]
        merges += [(piece[:k], piece[k:]) for k in range(1, len(piece)) if piece[:k] in usable and piece[k:] in usable]
    return merges


def hugging_face(vocabulary, control, pre=None, nfc=False):
    """tokenizers.Tokenizer; `control` makes it recognize control tokens in the text."""
    types, pieces = vocabulary["types"], vocabulary["pieces"]
    escaped = vocabulary["kind"] == "sentencepiece"
    if escaped:  # the original model spells the blanks of user-defined pieces as U+2581
        pieces = [p.replace(" ", "▁") if t == USER_DEFINED else p for p, t in zip(pieces, types)]
    vocab = {p: i for i, p in enumerate(pieces)}
    if vocabulary["kind"] == "bpe":
        merges = [tuple(m.split(" ")) for m in vocabulary["merges"]]
        tokenizer = Tokenizer(models.BPE(vocab=vocab, merges=merges, ignore_merges=(pre or vocabulary["pre"]) in ("llama-bpe", "tekken")))
        tokenizer.pre_tokenizer = pre_tokenizer(pre or vocabulary["pre"])
        if nfc:
            tokenizer.normalizer = normalizers.NFC()
    else:
        tokenizer = Tokenizer(models.BPE(vocab=vocab, merges=merges_of_scores(vocabulary), byte_fallback=True, fuse_unk=True,
                                         unk_token=pieces[vocabulary["unknown"]]))
        tokenizer.normalizer = normalizers.Replace(" ", "▁")
    wanted = [i for i, t in enumerate(types) if t == USER_DEFINED or (control and t in (CONTROL, UNKNOWN))]
    tokenizer.add_tokens([AddedToken(pieces[i], normalized=escaped, special=types[i] != USER_DEFINED) for i in wanted])
    return lambda lines: [e.ids for e in tokenizer.encode_batch(lines, add_special_tokens=False)]


def sentence_piece(vocabulary):
    """The program that the "llama" kind comes from, on a model made of the same pieces and scores."""
    import sentencepiece
    from sentencepiece import sentencepiece_model_pb2 as pb
    model = pb.ModelProto()
    for piece, score, kind in zip(vocabulary["pieces"], vocabulary["scores"], vocabulary["types"]):
        text = piece.replace(" ", "▁") if kind == USER_DEFINED else piece
        model.pieces.add(piece=text, score=score, type=kind)
    spec, normalizer = model.trainer_spec, model.normalizer_spec
    spec.model_type, spec.byte_fallback, spec.vocab_size = pb.TrainerSpec.BPE, True, len(vocabulary["pieces"])
    spec.unk_id, spec.bos_id, spec.eos_id, spec.pad_id = vocabulary["unknown"], vocabulary["bos"], vocabulary["eos"], 0
    spec.unk_piece, spec.bos_piece = vocabulary["pieces"][vocabulary["unknown"]], vocabulary["pieces"][vocabulary["bos"]]
    spec.eos_piece, spec.pad_piece = vocabulary["pieces"][vocabulary["eos"]], vocabulary["pieces"][0]
    normalizer.name, normalizer.add_dummy_prefix = "identity", vocabulary["add_space_prefix"]
    normalizer.remove_extra_whitespaces, normalizer.escape_whitespaces = False, True
    processor = sentencepiece.SentencePieceProcessor(model_proto=model.SerializeToString())
    return lambda lines: processor.encode(lines)


def text_pieces(vocabulary):
    """Texts of ordinary pieces, for making lines."""
    table = {}
    if vocabulary["kind"] == "bpe":
        own = list(range(33, 127)) + list(range(161, 173)) + list(range(174, 256))
        table = {chr(b): b for b in own}
        table.update({chr(256 + k): b for k, b in enumerate(b for b in range(256) if b not in own)})
    out = []
    for piece, kind in zip(vocabulary["pieces"], vocabulary["types"]):
        if kind != NORMAL or re.match(r"\[PAD\d+\]", piece):
            continue
        try:
            out.append(bytes(table[c] for c in piece).decode("utf-8") if table else piece.replace("▁", " "))
        except (KeyError, UnicodeDecodeError):
            pass
    return out
