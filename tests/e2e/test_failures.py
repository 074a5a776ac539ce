"""What goes wrong ends with status 1 and one sentence that says what."""

import json
import os
import pathlib
import subprocess

import pytest
from program import BINARY, CACHE, ROOT, fails, memdecay, start

ENGINE_COMMANDS = [["run", "-p", "x", "-t", "1", "-m"], ["chat", "-m"], ["demo", "-m"], ["bench", "-m"], ["inspect"], ["tokenize"],
                   ["template"], ["perplexity", "-f", str(ROOT / "README.md")]]
NO_FETCH = {"MEMDECAY_FETCH": ""}


@pytest.mark.parametrize("words", ENGINE_COMMANDS, ids=lambda words: words[0])
def test_a_model_that_is_not_there(words, tmp_path):
    assert "no model is called nosuch" in fails(*words, "nosuch")
    assert f"there is no file {tmp_path}/x.gguf" in fails(*words, tmp_path / "x.gguf")
    assert "directory" in fails(*words, f"{tmp_path}/")


@pytest.mark.parametrize("words", ENGINE_COMMANDS, ids=lambda words: words[0])
def test_files_that_are_no_model(words, tmp_path):
    text = tmp_path / "text.gguf"
    text.write_text("no model at all\n" * 100)
    assert "not a GGUF file" in fails(*words, text)
    empty = tmp_path / "empty.gguf"
    empty.touch()
    assert str(empty) in fails(*words, empty)


@pytest.mark.model("smollm2")
@pytest.mark.parametrize("share", [0.0001, 0.005, 0.5, 0.999])
def test_a_model_that_is_cut_off(share, tmp_path):
    path = tmp_path / "cut.gguf"
    with open(CACHE / "smollm2.gguf", "rb") as whole:
        path.write_bytes(whole.read(int((CACHE / "smollm2.gguf").stat().st_size * share)))
    assert "cut.gguf" in fails("run", "-m", path, "-p", "x", "-t", 1)
    assert "cut.gguf" in fails("inspect", path)


def test_a_catalogue_model_that_is_not_cached_says_what_to_do(tmp_path):
    said = fails("run", "-p", "x", environment={"XDG_CACHE_HOME": str(tmp_path), **NO_FETCH})
    assert "qwen-0.5b" in said and "./run" in said
    assert "hf:" in fails("run", "-m", "hf:a/b/c.gguf", "-p", "x", environment=NO_FETCH)


def test_a_fetch_program_that_fails_is_told(tmp_path):
    environment = {"XDG_CACHE_HOME": str(tmp_path), "MEMDECAY_FETCH": "/bin/false"}
    assert "could not be fetched" in fails("inspect", "smollm2", environment=environment)


@pytest.mark.model("smollm2")
class TestRun:
    WORDS = ("run", "-m", "smollm2", "-t", 1, "--temp", 0)

    def test_prompts_without_tokens(self):
        assert fails(*self.WORDS, "-p", "") == "the prompt has no tokens"

    def test_a_prompt_longer_than_the_context(self):
        said = fails(*self.WORDS, "-p", "one two three four five six seven eight nine ten", "-c", 5)
        assert "the context holds 5" in said

    def test_a_prompt_that_the_budget_can_never_hold(self):
        said = fails(*self.WORDS, "-p", "word " * 300, "--kv-budget", "2MiB", "--policy", "none")
        assert "KV budget is 2.00 MiB" in said and "prompt tokens need" in said

    def test_a_budget_below_one_page(self):
        assert "too small for this model" in fails(*self.WORDS, "-p", "x", "--kv-budget", "64KiB")

    def test_a_budget_that_fills_up_keeps_what_was_said(self):
        ended = memdecay(*self.WORDS, "-p", "Count: 1, 2, 3,", "-n", 60, "--kv-budget", "1MiB")
        assert ended.status == 1 and "the KV budget of 1.00 MiB is full" in ended.err
        free = memdecay(*self.WORDS, "-p", "Count: 1, 2, 3,", "-n", 60)
        assert len(ended.out.strip()) > 5 and free.out.startswith(ended.out.rstrip("\n"))

    def test_a_full_budget_as_json(self):
        ended = memdecay(*self.WORDS, "-p", "Count: 1, 2, 3,", "-n", 60, "--kv-budget", "1MiB", "--json")
        result = json.loads(ended.out)
        assert ended.status == 1 and result["finish_reason"] == "no_memory" and "is full" in result["error"]
        assert result["memory"]["peak_bytes"] <= result["memory"]["budget_bytes"] == 1 << 20


@pytest.mark.model("smollm2")
def test_a_full_disk_behind_stdout():
    for words in (["run", "-m", "smollm2", "-t", "1", "-p", "x", "-n", "500"], ["inspect", "smollm2"], ["--help"],
                  ["tokenize", "smollm2"]):
        with open("/dev/full", "w") as full:
            done = subprocess.run([BINARY, *words], stdout=full, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL, text=True, timeout=60)
        if words[0] == "tokenize":  # it has nothing to say about nothing
            assert done.returncode == 0
            continue
        assert done.returncode == 1
        assert done.stderr == "memdecay: cannot write to standard output: No space left on device\n"


@pytest.mark.model("smollm2")
def test_closed_streams(tmp_path):
    """The logits file must not become the standard output that is not there."""
    saved = tmp_path / "saved"
    words = f"exec {BINARY} perplexity smollm2 -t 1 -f {ROOT}/README.md -c 16 --chunks 1 --json --save-all-logits {saved}"
    done = subprocess.run(["sh", "-c", words + " <&- >&-"], stderr=subprocess.PIPE, text=True, timeout=60, check=False)
    assert done.returncode == 1 and "cannot write to standard output" in done.stderr
    assert saved.stat().st_size == 20 + 4 * 16 + 2 * (49152 + 4) * 7
    assert memdecay("perplexity", "smollm2", "-t", 1, "--kl-divergence-base", saved).status == 0


@pytest.mark.model("smollm2")
def test_a_reader_that_goes_away_ends_the_work():
    process = start("run", "-m", "smollm2", "-t", "1", "-p", "Once", "-n", "100000", "-c", "8192", stdout=subprocess.PIPE,
                    stderr=subprocess.PIPE)
    assert process.stdout.read(4)
    process.stdout.close()
    assert process.wait(timeout=60) == 1
    assert process.stderr.read() == b"memdecay: cannot write to standard output: Broken pipe\n"


@pytest.mark.model("gemma3-270m")
def test_a_base_model_has_no_chat():
    assert "base model" in fails("chat", "-m", "gemma3-270m", "-t", 1, stdin="Hello\n")
    assert "base model" in fails("template", "gemma3-270m", stdin='{"messages": [{"role": "user", "content": "a"}]}')
    assert "base model" in fails("demo", "-m", "gemma3-270m", "-t", 1)


@pytest.mark.model("smollm2")
class TestPerplexity:
    WORDS = ("perplexity", "smollm2", "-t", 1, "-c", 32)

    def test_texts_that_cannot_be_read(self, tmp_path):
        assert "No such file" in fails(*self.WORDS, "-f", tmp_path / "none")
        assert "directory" in fails(*self.WORDS, "-f", tmp_path)
        assert "the text has 0 tokens" in fails(*self.WORDS, "-f", "/dev/null")
        assert "the text has 0 tokens" in fails(*self.WORDS, "-f", "-")

    @pytest.mark.skipif(os.geteuid() == 0, reason="root reads everything")
    def test_texts_that_may_not_be_read(self, tmp_path):
        (tmp_path / "secret").touch(mode=0)
        assert "Permission denied" in fails(*self.WORDS, "-f", tmp_path / "secret")

    def test_a_full_disk_behind_the_logits(self):
        assert "/dev/full" in fails(*self.WORDS, "-f", ROOT / "README.md", "--chunks", 2, "--save-all-logits", "/dev/full")

    def test_base_files_that_are_none(self, tmp_path):
        base = tmp_path / "base"
        assert "No such file" in fails(*self.WORDS, "--kl-divergence-base", base)
        base.write_bytes(b"_logits_" + (512).to_bytes(4, "little") * 3)
        assert str(base) in fails(*self.WORDS, "--kl-divergence-base", base)
        assert str(tmp_path) in fails(*self.WORDS, "--kl-divergence-base", tmp_path)


@pytest.mark.model("smollm2")
@pytest.mark.parametrize("stdin, says", [
    ("", "ends in the middle"), ("{", "ends in the middle"), ("[]", "messages"), ('{"a": 1}', "messages"), ('{"messages": 5}', 'list "messages"'),
    (b'{"messages": [{"role": "user", "content": "\xff"}]}', "is not JSON"), ("[" * 200000, "nest deeper"),
    ('{"messages": [{"role": "user", "content": ' + "[" * 50000 + "]" * 50000 + "}]}", "nest deeper than 128 levels"),
    ('{"messages": "x"}', 'list "messages"'), ('{"messages": {}}', "no messages"), ('{"messages": []}', "no messages"),
    ('{"messages": [{"role": "user", "content": "a"}, "x"]}', "message 2 of the conversation is no object"),
], ids=range(12))
def test_json_that_is_no_conversation(stdin, says):
    assert says in fails("template", "smollm2", stdin=stdin)


@pytest.mark.model("smollm2")
@pytest.mark.parametrize("text, says", [('{"a": ["b"]}', "no JSON array"), ("", "no JSON array"), ("[1]", "no string"), ('["a", null]', "no string")])
def test_json_lines_that_are_none(text, says, tmp_path):
    path = tmp_path / "lines.json"
    path.write_text(text)
    ended = memdecay("tokenize", "smollm2", "--json-lines", path)
    assert ended.status == 1 and says in ended.err
    assert "No such file" in fails("tokenize", "smollm2", "--json-lines", tmp_path / "none")
    assert "directory" in fails("tokenize", "smollm2", "--json-lines", tmp_path)


def test_a_file_without_a_slash_is_a_path(tmp_path):
    (tmp_path / "README.md").write_text("no model\n" * 100)
    done = subprocess.run([BINARY, "inspect", "-m", "README.md"], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 1 and "README.md" in done.stderr and "not a GGUF file" in done.stderr


@pytest.mark.model("smollm2")
def test_a_prompt_file_that_is_not_there(tmp_path):
    assert "No such file" in fails("run", "-m", "smollm2", "-f", tmp_path / "none")


def test_no_absolute_path_of_this_machine_is_needed(tmp_path):
    """From another folder, with a path relative to it."""
    done = subprocess.run([BINARY, "inspect", "x.gguf"], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.stderr == "memdecay: there is no file x.gguf\n"
    assert pathlib.Path(BINARY).is_absolute()
