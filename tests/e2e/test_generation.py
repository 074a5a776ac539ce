"""run, chat and demo: text, memory, and what the numbers promise."""

import json
import os
import pty
import re
import subprocess

import pytest
from program import fails, memdecay, start, succeeds

pytestmark = pytest.mark.model("smollm2")
RUN = ("run", "-m", "smollm2", "-t", 1, "-p", "The capital of France is", "-n", 8)


def run(*arguments) -> dict:
    return json.loads(succeeds(*RUN, "--json", *arguments))


def test_a_transcript_without_chat_structure_has_regions(tmp_path):
    turns = [f"user: Where is order QX{i}7R2L? I have waited for {i + 2} days.\n\nassistant: I look it up.\n\ntool: "
             + json.dumps({"order": f"QX{i}7R2L", "status": "on its way", "carrier": "Nordpost", "parcel": 77 * i, "lines": list(range(30))})
             for i in range(6)]
    transcript = tmp_path / "transcript.txt"
    transcript.write_text("system: You are the agent of a small shop. Look orders up before you speak.\n\n" + "\n\n".join(turns))
    result = json.loads(succeeds("run", "-m", "smollm2", "-t", 1, "-f", transcript, "-n", 1, "--kv-budget", "64MiB", "--json"))
    regions = result["memory"]["by_region"]
    assert sum(regions.values()) == result["memory"]["pages"] and len([count for count in regions.values() if count]) >= 2, regions
    assert regions.get("tool", 0) > 0, regions


def test_the_json_of_a_run():
    result = run("--temp", 0)
    assert list(result) == ["text", "finish_reason", "prompt_tokens", "generated_tokens", "tokens", "prompt_tokens_per_second",
                            "decode_tokens_per_second", "memory"]
    assert "Paris" in result["text"]
    assert result["finish_reason"] in ("length", "stop")
    assert result["prompt_tokens"] == 5 and result["generated_tokens"] == len(result["tokens"]) == 8
    assert result["prompt_tokens_per_second"] > 0 and result["decode_tokens_per_second"] > 0
    memory = result["memory"]
    assert list(memory) == ["tokens", "pages", "live_bytes", "peak_bytes", "budget_bytes", "utilisation", "by_state", "by_region"]
    assert memory["tokens"] == 5 + 8 - 1 and memory["pages"] == 1 and memory["budget_bytes"] is None
    assert memory["utilisation"] == pytest.approx(12 / 32)
    assert 32 * 30 * 2 * 3 * 64 * 2 <= memory["live_bytes"] <= memory["peak_bytes"]


def test_text_and_json_agree():
    assert succeeds(*RUN, "--temp", 0) == run("--temp", 0)["text"] + "\n"


def test_the_same_seed_gives_the_same_text():
    texts = {seed: run("--seed", seed)["tokens"] for seed in (1, 2, 3)}
    assert run("--seed", 2)["tokens"] == texts[2]
    assert len({tuple(tokens) for tokens in texts.values()}) > 1


def test_neither_threads_nor_page_size_nor_a_budget_change_the_text():
    expected = run("--temp", 0)["tokens"]
    assert run("--temp", 0, "--page-tokens", 16, "-t", 2, "--kv-budget", "8MiB")["tokens"] == expected
    assert run("--temp", 0, "--page-tokens", 64)["tokens"] == expected


def test_the_context_ends_an_answer():
    result = json.loads(succeeds("run", "-m", "smollm2", "-t", 1, "-p", "Count: 1, 2, 3, 4", "-n", 100, "-c", 20, "--temp", 0, "--json"))
    assert result["prompt_tokens"] + result["generated_tokens"] == 20 and result["finish_reason"] == "length"


def test_no_new_tokens():
    result = run("-n", 0)
    assert result["text"] == "" and result["tokens"] == [] and result["memory"]["tokens"] == 5


def test_a_budget_is_strict():
    result = run("--kv-budget", "1MiB", "--temp", 0)
    assert result["memory"]["budget_bytes"] == 1 << 20 >= result["memory"]["peak_bytes"]


def chat(stdin, *arguments):
    """What a chat says beside the answers."""
    ended = memdecay("chat", "-m", "smollm2", "-t", 1, "-n", 6, "--temp", 0, *arguments, stdin=stdin)
    assert ended.status == 0, ended
    assert "[" not in ended.out and "\033" not in ended.out + ended.err and "> " not in ended.out
    return ended.err


def test_a_chat_through_pipes_shows_its_cost_and_memory_after_each_turn():
    turns = chat("Say hi.\n\nAnd what did I say?\n").splitlines()
    assert len(turns) == 4, turns
    costs = [re.fullmatch(r"\[(\d+) new, (\d+) reused, (\d+) computed, 0 recomputed, (\d+) generated, 0 evicted tokens; "
                          r"prompt \d+ ms, [\d.]+ ms a token(?:; cut at the limit)?\]", line) for line in turns[::2]]
    (new, reused, computed, said), (_, reused2, *_) = ([int(word) for word in cost.groups()] for cost in costs)
    assert reused == 0 and computed == new + said - 1
    assert reused2 == computed  # what the session holds is not computed again
    for line in turns[1::2]:
        assert re.fullmatch(r"\[[\d.]+ [KM]iB live, [\d.]+ [KM]iB at most; pages: \d+ fp16, 0 gone; .*\d+ (decision|recent).*\]", line), line
    budget = chat("Say hi.\n", "--kv-budget", "16MiB", "--system", "Be brief and kind, and never speak of the weather.")
    assert "at most of 16.0 MiB;" in budget and "system" in budget


def test_a_prompt_from_a_file(tmp_path):
    words = ("run", "-m", "smollm2", "-t", 1, "-n", 8, "--temp", 0)
    path = tmp_path / "prompt.txt"
    path.write_text("The capital of France is\n")
    expected = succeeds(*RUN, "--temp", 0)
    assert succeeds(*words, "-f", path) == expected
    assert succeeds(*words, "--file", "-", stdin="The capital of France is") == expected


def typed(*lines: str) -> str:
    """What a chat at a terminal shows when a person types these lines."""
    ours, theirs = pty.openpty()
    process = start("chat", "-m", "smollm2", "-t", "1", "-n", "3", "--temp", "0", stdin=theirs, stdout=subprocess.PIPE,
                    stderr=subprocess.STDOUT)
    os.write(ours, "".join(line + "\n" for line in lines).encode())
    out = process.communicate(timeout=60)[0].decode()
    os.close(ours)
    os.close(theirs)
    assert process.returncode == 0, out
    return out


def test_a_chat_at_a_terminal_has_commands():
    out = typed("/help", "/frob", "/exit", "Hello")
    assert out.startswith("smollm2 (") and "1 thread," in out.splitlines()[0]
    assert "/help" in out.splitlines()[0] and "/exit" in out.splitlines()[0]
    assert "/exit   end the chat" in out and "there is no command /frob" in out and "pages:" not in out
    assert typed("/etc/hosts is what?", "").count("pages:") == 1


def test_a_pipe_has_no_chat_commands():
    assert chat("/exit\n/help\n").count("pages:") == 2


def test_a_chat_with_nothing_to_say():
    assert chat("") == ""
    assert "pages: 1 fp16," in chat("Hi\n", "--system", "Be brief.", "--page-tokens", "64")


def test_bad_lines_end_a_chat_of_pipes():
    assert "UTF-8" in fails("chat", "-m", "smollm2", "-t", 1, "-n", 4, stdin=b"\xff\xfe\n")
    assert "KV budget" in fails("chat", "-m", "smollm2", "-t", 1, "-n", 20, "--kv-budget", "1MiB", "--temp", 0, stdin="Tell a story.\nMore\n")


def test_the_demo_plays_tools_and_shows_what_it_reused():
    out = succeeds("demo", "-m", "smollm2", "-t", 1, "-n", 4)
    head, *rows = [line.split() for line in out.splitlines() if re.match(r" *(turn|\d+) +\w+ ", line)]
    assert head[:6] == ["turn", "after", "prompt", "reused", "computed", "generated"] and len(rows) == 7
    assert [row[1] for row in rows] == ["user", "tool"] * 3 + ["user"]
    assert rows[0][3] == "0"
    for before, row in zip(rows, rows[1:]):
        assert int(row[3]) > 0 and int(row[2]) > int(before[2])
        assert int(row[4]) <= int(row[2]) - int(row[3]) + 4
    for row in rows:
        assert row[-3].endswith("%") and float(row[-1]) > 0


@pytest.mark.model("qwen-0.5b")
def test_the_default_model_answers():
    ended = memdecay("chat", "-t", 1, "-n", 12, "--temp", 0, stdin="What is 2 + 2? Answer with the number only.\n")
    assert ended.status == 0 and "4" in ended.out.splitlines()[1]
