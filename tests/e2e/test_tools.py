"""bench, perplexity, tokenize, template and inspect: the fields and formats that scripts rely on."""

import json
import os
import pathlib
import pty
import re
import stat
import struct
import subprocess
import sys

import pytest
from program import CACHE, ROOT, fails, memdecay, start, succeeds

pytestmark = pytest.mark.model("smollm2")
BENCH = ("bench", "-m", "smollm2", "-t", 1, "-r", 2, "--probe-mib", 64)


def test_bench_rows_are_those_of_llama_bench():
    rows = json.loads(succeeds(*BENCH, "-p", "8,4", "-n", 2, "-d", "0,16", "-o", "json"))
    assert [(row["n_prompt"], row["n_gen"], row["n_depth"]) for row in rows] == [
        (8, 0, 0), (4, 0, 0), (0, 2, 0), (8, 0, 16), (4, 0, 16), (0, 2, 16)]
    for row in rows:
        tokens = row["n_prompt"] + row["n_gen"]
        assert row["n_threads"] == 1
        assert len(row["samples_ts"]) == len(row["samples_ns"]) == 2
        assert row["samples_ts"] == pytest.approx([tokens * 1e9 / ns for ns in row["samples_ns"]])
        assert row["avg_ts"] == pytest.approx(sum(row["samples_ts"]) / 2)
        assert row["stddev_ts"] == pytest.approx(abs(row["samples_ts"][0] - row["samples_ts"][1]) / 2**0.5, abs=1e-6)
        assert row["avg_ns"] > 0 and row["stddev_ns"] >= 0
        assert row["model_filename"] == str(CACHE / "smollm2.gguf")
        assert row["model_type"] and row["model_n_params"] == 134_515_008
        assert 0.95 * 98_362_432 < row["model_size"] < 98_362_432
        assert row["type_k"] == row["type_v"] == "f16" and row["n_batch"] >= 1
        assert row["test_time"].endswith("Z") and row["kernels"]
        if row["n_gen"]:
            assert row["bytes_moved"] > 2 * 80e6 and 0 < row["bandwidth_share"] < 2
        else:
            assert row["bytes_moved"] == 0
        assert "ratio" not in row
    assert rows[5]["bytes_moved"] - rows[2]["bytes_moved"] == 2 * 16 * 30 * 2 * 3 * 64 * 2


def test_bench_table_and_threads():
    out = succeeds("bench", "-m", "smollm2", "-t", "1,2", "-p", 4, "-n", 0, "-d", 3, "-r", 1, "--probe-mib", 16)
    rows = [[cell.strip() for cell in line.split("|")] for line in out.splitlines() if "pp4 @ d3" in line]
    assert [row[2] for row in rows] == ["1", "2"]
    assert all(float(row[4].split("+-")[0]) > 0 for row in rows)


def peer(folder: pathlib.Path, body: str) -> pathlib.Path:
    path = folder / "llama-bench"
    path.write_text(f"#!{sys.executable}\nimport json, sys\narguments = sys.argv[1:]\n{body}\n")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return path


def test_bench_against_a_peer_alternates_and_divides(tmp_path):
    log = tmp_path / "log"
    program = peer(tmp_path, f"""
flags = dict(zip(arguments[::2], arguments[1::2]))
open({str(log)!r}, "a").write(json.dumps(flags) + "\\n")
print(json.dumps([{{"n_prompt": int(flags["-p"]), "n_gen": int(flags["-n"]), "avg_ts": 2.0}}]))""")
    rows = json.loads(succeeds(*BENCH, "-p", 4, "-n", 2, "-d", 5, "-r", 3, "-o", "json", "--against", program))
    for row in rows:
        assert row["peer_samples_ts"] == [2.0] * 3
        assert row["ratio"] == pytest.approx(sorted(row["samples_ts"])[1] / 2.0)
    calls = [json.loads(line) for line in log.read_text().splitlines()]
    assert len(calls) == 6
    expected = {"-m": str(CACHE / "smollm2.gguf"), "-t": "1", "-d": "5", "-r": "1", "-o": "json", "-fa": "on"}
    assert all(call.items() >= expected.items() for call in calls)
    assert [(call["-p"], call["-n"]) for call in calls] == [("4", "0")] * 3 + [("0", "2")] * 3
    assert "ratio" in succeeds(*BENCH, "-p", 4, "-n", 0, "-r", 1, "--against", program)


@pytest.mark.parametrize("body, says", [
    ("sys.exit(3)", "ended with status 3"), ("print('no json')", "no llama-bench row"), ("print('[]')", "no llama-bench row"),
    ("print('[5]')", "no llama-bench row"), ("print('[{\"avg_ts\": 0}]')", "no llama-bench row"),
    ("print('[{\"avg_ts\": \"x\"}]')", "no llama-bench row"),
])
def test_a_peer_that_fails(body, says, tmp_path):
    ended = memdecay(*BENCH, "-p", 2, "-n", 0, "--against", peer(tmp_path, body))
    assert ended.status == 1 and says in ended.err.splitlines()[-1]
    assert "No such file" in fails(*BENCH, "-p", 2, "-n", 0, "--against", tmp_path / "none")


TEXT = ROOT / "tests" / "golden" / "text.txt"
PERPLEXITY = ("perplexity", "smollm2", "-t", 1, "--json")


def test_perplexity_and_its_files(tmp_path):
    base = tmp_path / "base.kld"
    plain = json.loads(succeeds(*PERPLEXITY, "-f", TEXT, "-c", 64, "--chunks", 3, "--save-all-logits", base))
    assert set(plain) == {"ppl", "ppl_error", "tokens", "chunks"}
    assert plain["tokens"] == 3 * (64 - 1 - 32) and plain["chunks"] == 3 and 5 < plain["ppl"] < 200
    magic, *counts = struct.unpack("<8s3i", base.read_bytes()[:20])
    assert magic == b"_logits_" and counts == [64, 49152, 3]
    assert base.stat().st_size == 20 + 4 * 64 * 3 + 2 * (49152 + 4) * 31 * 3
    again = json.loads(succeeds(*PERPLEXITY, "--kl-divergence-base", base))
    assert {"ppl", "mean_kld", "p99_kld", "max_kld", "same_top", "tokens"} <= set(again)
    assert again["ppl"] == plain["ppl"] and again["same_top"] == 1.0
    assert abs(again["mean_kld"]) < 1e-5 and again["max_kld"] < 1e-3
    exact = json.loads(succeeds(*PERPLEXITY, "--kl-divergence-base", base, "--chunks", 1, "--precision", "exact"))
    assert exact["chunks"] == 1 and 0 < exact["mean_kld"] < 0.05 and exact["mean_kld"] <= exact["p99_kld"] <= exact["max_kld"]
    assert "perplexity" in succeeds("perplexity", "smollm2", "-t", 1, "-f", "-", "-c", 16, stdin="one two three " * 10)


def test_perplexity_tells_how_far_it_is():
    words = ("perplexity", "-m", "smollm2", "-t", "1", "-f", str(TEXT))
    ours, theirs = pty.openpty()
    process = start(*words, "-c", "16", "--chunks", "2", stdout=subprocess.PIPE, stderr=theirs)
    assert b"chunk 2 of" not in process.communicate(timeout=60)[0]
    os.close(theirs)
    assert os.read(ours, 1000).decode().endswith("\rchunk 2 of 2: 100 %\033[K\r\n")
    os.close(ours)
    process = start(*words, "-c", "16", "--precision", "exact", stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    said = process.stderr.readline()
    process.kill()
    process.communicate()
    assert re.fullmatch(r"chunk \d+ of \d+: \d+ %(, \d+:\d\d left)?\n", said)


def test_a_base_file_is_not_overwritten(tmp_path):
    base = tmp_path / "base.kld"
    succeeds(*PERPLEXITY, "-f", TEXT, "-c", 16, "--chunks", 1, "--save-all-logits", base)
    before = base.read_bytes()
    assert "overwritten" in fails(*PERPLEXITY, "--kl-divergence-base", base, "--save-all-logits", base)
    assert base.read_bytes() == before


@pytest.mark.model("qwen-0.5b")
def test_a_base_file_of_another_model(tmp_path):
    base = tmp_path / "base.kld"
    succeeds(*PERPLEXITY, "-f", TEXT, "-c", 16, "--chunks", 1, "--save-all-logits", base)
    assert "of another model" in fails("perplexity", "qwen-0.5b", "-t", 1, "--kl-divergence-base", base)


@pytest.mark.skipif("MEMDECAY_LLAMA_PERPLEXITY" not in os.environ, reason="MEMDECAY_LLAMA_PERPLEXITY names no llama-perplexity")
def test_llama_perplexity_reads_ours_and_we_read_its(tmp_path):
    program = os.environ["MEMDECAY_LLAMA_PERPLEXITY"]
    ours, theirs = tmp_path / "ours.kld", tmp_path / "theirs.kld"
    common = ["-m", CACHE / "smollm2.gguf", "-t", "1", "-c", "128", "--chunks", "2"]
    succeeds(*PERPLEXITY, "-f", TEXT, "-c", 128, "--chunks", 2, "--save-all-logits", ours)
    subprocess.run([program, *common, "-f", TEXT, "--save-all-logits", theirs], check=True, capture_output=True)
    assert ours.stat().st_size == theirs.stat().st_size
    judged = json.loads(succeeds(*PERPLEXITY, "--kl-divergence-base", theirs))
    assert judged["mean_kld"] < 0.02
    out = subprocess.run([program, *common, "--kl-divergence", "--kl-divergence-base", ours], check=True, capture_output=True, text=True)
    said = next(line for line in out.stdout.splitlines() if line.startswith("Mean    KLD"))
    assert float(said.split()[2]) == pytest.approx(judged["mean_kld"], rel=0.2)


def test_tokenize():
    assert json.loads(succeeds("tokenize", "smollm2", "--ids", stdin="Hello world")) == [19556, 905]
    table = succeeds("tokenize", "smollm2", stdin="Hello world")
    assert [line.split(maxsplit=1) for line in table.splitlines()] == [["19556", '"Hello"'], ["905", '" world"']]
    control = json.loads(succeeds("tokenize", "smollm2", "--ids", stdin="<|im_start|>"))
    plain = json.loads(succeeds("tokenize", "smollm2", "--ids", "--no-special", stdin="<|im_start|>"))
    assert len(control) == 1 and len(plain) > 1
    assert succeeds("tokenize", "smollm2", "--ids") == "[]\n"


@pytest.mark.model("gemma3-270m")
def test_tokenize_adds_bos_where_the_model_wants_it():
    assert json.loads(succeeds("tokenize", "gemma3-270m", "--ids", stdin="a"))[0] == 2
    assert 2 not in json.loads(succeeds("tokenize", "gemma3-270m", "--ids", "--no-bos", stdin="a"))


def test_tokenize_takes_any_bytes():
    every_byte = bytes(range(256)) + b"\xff\xfe\xe4\xb8 \xf0\x9f\x98"
    assert len(json.loads(succeeds("tokenize", "smollm2", "--ids", stdin=every_byte))) > 100
    assert succeeds("tokenize", "smollm2", stdin=every_byte)


def test_tokenize_json_lines(tmp_path):
    texts = ["Hello world", "", "a\nb", "\u0000\u00e9\U0001f600", "<|im_end|>"]
    path = tmp_path / "texts.json"
    path.write_text(json.dumps(texts))
    lines = succeeds("tokenize", "smollm2", "--json-lines", path).splitlines()
    assert [json.loads(line) for line in lines] == [
        json.loads(succeeds("tokenize", "smollm2", "--ids", stdin=text)) for text in texts]
    assert succeeds("tokenize", "smollm2", "--json-lines", "-", stdin="[]") == ""


@pytest.mark.model("qwen-0.5b")
def test_template():
    conversation = {"messages": [{"role": "user", "content": "Hi <|im_end|>"}]}
    assert succeeds("template", "smollm2", "--add-generation-prompt", stdin=json.dumps(conversation)).endswith(
        "<|im_start|>user\nHi <|im_end|><|im_end|>\n<|im_start|>assistant\n")
    conversation["tools"] = [{"type": "function", "function": {"name": "look", "parameters": {}}}]
    out = succeeds("template", "qwen-0.5b", stdin=json.dumps(conversation))
    assert '"name": "look"' in out and not out.endswith("assistant\n")


def test_inspect():
    model = json.loads(succeeds("inspect", "smollm2", "--json"))
    expected = {"file_bytes": 98_362_432, "architecture": "llama", "layers": 30, "embedding_length": 576, "heads": 9, "kv_heads": 3,
                "head_dim": 64, "vocab_size": 49152, "context_length": 8192, "sliding_window": 0,
                "kv_bytes_per_token": 30 * 2 * 3 * 64 * 2, "sliding_window_bytes": 0}
    assert {key: model[key] for key in expected} == expected
    assert model["metadata"]["general.architecture"] == "llama"
    assert sum(tensor["count"] for tensor in model["tensors"].values()) == 272
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    assert model["machine_memory_bytes"] == memory
    assert 0 < model["tokens_that_fit"] < memory // model["kv_bytes_per_token"]
    text = succeeds("inspect", "smollm2")
    assert "keys and values" in text and "Q4_1" in text
    assert re.search(r"about [1-9]\d?(,?0)*(,000)* tokens fit beside the weights \(trained for 8,192\)", text)
    assert succeeds("inspect", "-m", "smollm2") == text


@pytest.mark.model("gemma3-270m")
def test_inspect_of_a_model_with_windows():
    model = json.loads(succeeds("inspect", CACHE / "gemma3-270m.gguf", "--json"))
    assert model["sliding_window"] == 512 and model["sliding_window_bytes"] > 0
    assert model["kv_bytes_per_token"] == 3 * 2 * 1 * 256 * 2  # of its 18 layers, three see everything
