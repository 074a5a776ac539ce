"""Makes the golden files of golden_test.cc; see README.md.

    make_golden.py MODELS_FOLDER OUTPUT_FOLDER [MODEL=http://127.0.0.1:PORT ...]

Every line goes through the reference tokenizers. With a llama-server named for a model, its /tokenize is asked, too,
and the lines where it disagrees are listed.
"""

import http.client
import json
import pathlib
import sys
import urllib.parse

import corpus
import reference

GOLDEN = {"smollm2": ["smollm2"], "qwen": ["qwen-0.5b", "qwen-1.5b"], "gemma3": ["gemma3-270m"]}
FULL_EVERY = 42  # every 42nd line is kept with all its ids


def hash24(ids):
    value = 0x811C9DC5
    for token in ids:
        for byte in token.to_bytes(4, "little"):
            value = (value ^ byte) * 0x01000193 & 0xFFFFFFFF
    return value & 0xFFFFFF


def ask_server(url, lines, control):
    connection = http.client.HTTPConnection(urllib.parse.urlsplit(url).netloc)
    answers = []
    for line in lines:
        body = json.dumps({"content": line, "add_special": False, "parse_special": control})
        connection.request("POST", "/tokenize", body, {"Content-Type": "application/json"})
        answers.append(json.loads(connection.getresponse().read())["tokens"])
    return answers


def compare(name, lines, ids, others):
    different = [i for i in range(len(lines)) if ids[i] != others[i]]
    print(f"{name}: {len(lines) - len(different)} of {len(lines)} lines equal")
    for i in different[:5]:
        print(f"  {lines[i]!r}: {ids[i][:12]} {others[i][:12]}")


def main():
    models, output = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])
    servers = dict(argument.split("=", 1) for argument in sys.argv[3:])
    vocabularies = {name: reference.read(models / f"{names[0]}.gguf") for name, names in GOLDEN.items()}
    lines = corpus.make(reference.text_pieces(vocabularies["qwen"]) + reference.text_pieces(vocabularies["gemma3"]))
    with open(output / "lines.jsonl", "w", encoding="utf-8") as file:
        file.writelines(json.dumps(line, ensure_ascii=False) + "\n" for line in lines)
    for name, vocabulary in vocabularies.items():
        with open(output / f"{name}.jsonl", "w", encoding="utf-8") as file:
            for control in (False, True):
                ids = reference.hugging_face(vocabulary, control)(lines)
                if vocabulary["kind"] == "sentencepiece" and not control:
                    compare(f"{name}, tokenizers and sentencepiece", lines, ids, reference.sentence_piece(vocabulary)(lines))
                if GOLDEN[name][0] in servers:
                    others = ask_server(servers[GOLDEN[name][0]], lines, control)
                    compare(f"{name}, control={control}, tokenizers and llama-server", lines, ids, others)
                full = {str(i): ids[i] for i in range(0, len(lines), FULL_EVERY)}
                hashes = "".join(f"{hash24(line):06x}" for line in ids)
                record = {"models": GOLDEN[name], "control": control, "full": full, "hashes": hashes}
                file.write(json.dumps(record, separators=(",", ":")) + "\n")


main()
