"""play: a conversation of any length through a fixed number of bytes, and what every turn says about it."""

import json

import pytest
from program import fails, memdecay, misused, succeeds

pytestmark = pytest.mark.model("smollm2")
MIB = 1 << 20
POLICIES = ("memdecay", "memdecay-classic", "window", "sinks", "uniform", "recompute", "h2o", "tova", "keydiff", "lru", "random")


def conversation(turns: int) -> dict:
    messages = [{"role": "system", "content": "You are a clerk. The vault code is K7-4413."}]
    for turn in range(turns):
        messages.append({"role": "user", "content": f"Order {1000 + turn} came in with {turn % 7} boxes. Note it down and say so in one sentence."})
        messages.append({"role": "assistant", "content": f"Order {1000 + turn} with {turn % 7} boxes is noted down."})
    return {"messages": messages}


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    path = tmp_path_factory.mktemp("play") / "conversation.json"
    path.write_text(json.dumps(conversation(14)))
    return path


def play(file, *arguments) -> list[dict]:
    return [json.loads(line) for line in succeeds("play", "-m", "smollm2", "-t", 1, "--messages", file, "--json", *arguments).splitlines()]


def test_a_recorded_conversation_without_a_budget(file):
    turns = play(file, "--recorded")
    assert [turn["turn"] for turn in turns] == list(range(1, 15))
    for turn in turns:
        assert list(turn) == ["turn", "new_tokens", "reused_tokens", "cached_tokens", "computed_tokens", "recomputed_tokens",
                              "generated_tokens", "agreed_tokens", "evicted_tokens", "pins_refused_tokens", "live_bytes", "peak_bytes", "pages", "prompt_ms", "ms_per_token", "step_ms", "text"]
        assert turn["computed_tokens"] == turn["new_tokens"] + turn["generated_tokens"]
        assert 0 < turn["step_ms"]["p50"] <= turn["step_ms"]["p95"] <= turn["step_ms"]["p99"]
        assert turn["evicted_tokens"] == turn["pins_refused_tokens"] == 0 and turn["live_bytes"] <= turn["peak_bytes"] and turn["ms_per_token"] > 0
        assert "noted down" in turn["text"]
    held = turns[0]["new_tokens"] + turns[0]["generated_tokens"]
    for turn in turns[1:]:
        assert turn["reused_tokens"] == held
        held += turn["new_tokens"] + turn["generated_tokens"]


def test_a_forced_token_is_a_decode_step_with_its_logits(tmp_path):
    written = conversation(3)
    path = tmp_path / "written.json"
    path.write_text(json.dumps(written))
    first = play(path, "--recorded")[0]
    assert 0 < first["agreed_tokens"] < first["generated_tokens"]
    turns = play(path, "--generate", 10)
    assert all(turn["agreed_tokens"] == turn["generated_tokens"] for turn in turns)
    for turn in turns:
        written["messages"][2 * turn["turn"]]["content"] = turn["text"]
    path.write_text(json.dumps(written))
    markup = 2  # the end of an answer, which one that was cut short does not have
    for turn in play(path, "--recorded"):
        assert turn["generated_tokens"] - markup <= turn["agreed_tokens"] <= turn["generated_tokens"]


@pytest.mark.parametrize("policy", POLICIES)
def test_every_policy_keeps_the_budget_and_computes_only_what_is_new(file, policy):
    budget = 10 * MIB
    free = play(file, "--recorded")
    turns = play(file, "--recorded", "--kv-budget", budget, "--policy", policy, "--protect-prefix")
    assert [turn["computed_tokens"] - turn["recomputed_tokens"] for turn in turns] == [turn["computed_tokens"] for turn in free]
    assert policy == "recompute" or all(turn["recomputed_tokens"] == 0 for turn in turns)
    assert [turn["new_tokens"] for turn in turns] == [turn["new_tokens"] for turn in free]
    assert max(turn["peak_bytes"] for turn in turns) <= budget
    assert sum(turn["evicted_tokens"] for turn in turns) > 0 or any(set(turn["pages"]["by_state"]) - {"fp16", "gone"} for turn in turns)


@pytest.mark.parametrize("policy", ["memdecay", "none"])
def test_pages_have_regions_with_and_without_a_budget(file, policy):
    for budget in ((), ("--kv-budget", "1GiB")):
        for turn in play(file, "--recorded", "--policy", policy, *budget):
            pages = turn["pages"]
            assert sum(pages["by_region"].values()) == sum(pages["by_state"].values()) > 0
            assert {"system", "recent"} & set(pages["by_region"])
            assert "decision" in pages["by_region"] or turn["turn"] < 3


@pytest.mark.parametrize("budget", [(), ("--kv-budget", "1GiB")])
def test_the_client_may_say_what_region_a_message_is(tmp_path, budget):
    said = conversation(3)
    path = tmp_path / "said.json"
    path.write_text(json.dumps(said))
    before = play(path, "--recorded", *budget)[-1]
    assert "ordinary" not in before["pages"]["by_region"]
    for message in said["messages"]:
        message["region"] = "ordinary"
    path.write_text(json.dumps(said))
    after = play(path, "--recorded", *budget)[-1]
    assert set(after["pages"]["by_region"]) == {"ordinary"}
    assert all(after[name] == before[name] for name in ("text", "new_tokens", "reused_tokens")), "the template sees nothing of it"
    for wrong in ("dull", 7, None, ["tool"]):
        said["messages"][1]["region"] = wrong
        path.write_text(json.dumps(said))
        sentence = fails("play", "-m", "smollm2", "--messages", path, "--recorded", "--json", *budget)
        assert "message 2" in sentence and "system, decision, tool, recent, ordinary" in sentence


def test_the_file_that_fails_is_named(tmp_path, file):
    bad = tmp_path / "bad.json"
    said = conversation(1)
    said["messages"][1]["region"] = "us-east-1"
    bad.write_text(json.dumps(said))
    good = tmp_path / "good.json"
    good.write_text(json.dumps(conversation(1)))
    sentence = fails("play", "-m", "smollm2", "-t", 1, "--messages", good, bad, good, "--recorded", "--json")
    assert sentence.startswith(f"{bad}: ") and "message 2" in sentence
    assert fails_with_output("play", "-m", "smollm2", "-t", 1, "--messages", good, file, "--recorded", "--policy", "none", "--kv-budget",
                             "4MiB").startswith(f"memdecay: {file}: ")


def test_a_pin_that_is_refused_is_said_once(tmp_path):
    large = conversation(3)
    large["messages"][0]["content"] += " Note everything down as it is said, word by word." * 40
    path = tmp_path / "large.json"
    path.write_text(json.dumps(large))
    words = ("play", "-m", "smollm2", "-t", 1, "--messages", path, "--json", "--recorded", "--protect-prefix", "--kv-format", "fp16", "--kv-budget")
    small = memdecay(*words, "14MiB")
    assert small.status == 0, small
    note, = (line for line in small.err.splitlines() if line.startswith("note: ") and "pinned" in line)
    refused, pinned = (int(word) for word in note.split() if word.isdigit())
    first, *_, last = (json.loads(line)["pins_refused_tokens"] for line in small.out.splitlines())
    assert 0 < refused == first <= last < pinned and "half of the budget" in note
    ample = memdecay(*words, "1GiB")
    assert ample.status == 0 and "pinned" not in ample.err
    assert all(json.loads(line)["pins_refused_tokens"] == 0 for line in ample.out.splitlines())


def test_what_is_kept_can_be_seen_and_evicted_after_the_fact(file):
    arguments = ("--recorded", "--kept", "--kv-format", "fp16", "--policy", "h2o", "--kv-budget")
    whole = play(file, *arguments, "1GiB", "--eviction", "after")
    tokens = sum(turn["new_tokens"] + turn["generated_tokens"] for turn in whole)
    assert whole[-1]["kept"] == [[0, tokens]] and whole[-1]["evicted_tokens"] == 0
    assert sum(page[1] for page in whole[-1]["scores"]) == tokens
    half = play(file, *arguments, whole[-1]["evictable_bytes"] // 2, "--eviction", "after")
    assert [turn["kept"] for turn in half[:-1]] == [turn["kept"] for turn in whole[:-1]]
    kept = half[-1]["kept"]
    assert sum(end - first for first, end in kept) + half[-1]["evicted_tokens"] == tokens
    assert 0 < half[-1]["evictable_bytes"] <= whole[-1]["evictable_bytes"] // 2
    dropped = [page for page in whole[-1]["scores"] if all(not first <= page[0] < end for first, end in kept)]
    droppable = {page[0] for page in half[-1]["scores"] if page[3] == "droppable"}
    left = [page for page in whole[-1]["scores"] if page[0] in droppable]
    # A smaller budget protects fewer of the newest.
    assert dropped and all(page[3] in ("droppable", "among the newest") for page in dropped)
    assert not left or max(page[2] for page in dropped) <= min(page[2] for page in left)
    assert "--kv-budget" in misused("play", "-m", "smollm2", "--messages", file, "--recorded", "--eviction", "after")


def test_the_model_writes_its_own_turns(file):
    turns = play(file, "--generate", 12, "--kv-budget", 10 * MIB)
    assert len(turns) == 14 and all(0 < turn["generated_tokens"] <= 12 for turn in turns)
    assert all(turn["peak_bytes"] <= 10 * MIB for turn in turns)
    again = play(file, "--generate", 12, "--kv-budget", 10 * MIB)
    assert [turn["text"] for turn in again] == [turn["text"] for turn in turns]


def test_a_question_at_the_end_is_answered_by_the_model(tmp_path):
    asked = conversation(3)
    asked["messages"].append({"role": "user", "content": "Say yes."})
    path = tmp_path / "asked.json"
    path.write_text(json.dumps(asked))
    turns = play(path, "--recorded", "--generate", 5)
    assert [turn["text"] for turn in turns[:3]] == [f"Order {1000 + turn} with {turn} boxes is noted down." for turn in range(3)]
    assert len(turns) == 4 and 0 < turns[3]["generated_tokens"] <= 5 and turns[3]["text"]


def calls(content: dict, arguments: object) -> dict:
    called = {"role": "assistant", **content, "tool_calls": [
        {"id": "c1", "type": "function", "function": {"name": "get_order", "arguments": arguments}}]}
    return {"messages": [{"role": "user", "content": "Where is order 17?"}, called,
                         {"role": "tool", "tool_call_id": "c1", "content": "on its way"}, {"role": "assistant", "content": "It is on its way."}]}


@pytest.mark.parametrize("model", ["smollm2", pytest.param("qwen-0.5b", marks=pytest.mark.model("qwen-0.5b"))])
def test_tool_calls_are_read_however_clients_write_them(tmp_path, model):
    path = tmp_path / "calls.json"
    plays = []
    for content in ({"content": None}, {"content": ""}, {}):
        for arguments in ({"number": 17}, '{"number": 17}'):
            path.write_text(json.dumps(calls(content, arguments)))
            out = succeeds("play", "-m", model, "-t", 1, "--messages", path, "--json", "--recorded")
            turns = [json.loads(line) for line in out.splitlines()]
            plays.append([(turn["new_tokens"], turn["generated_tokens"], turn["text"]) for turn in turns])
    assert all(one == plays[0] for one in plays)
    assert "get_order" in plays[0][0][2] and "17" in plays[0][0][2] and plays[0][0][1] > 10


def test_conversations_with_other_salts_share_no_prefixes(file):
    def firsts(*salts):
        out = succeeds("play", "-m", "smollm2", "-t", 1, "--messages", *[file] * 3, "--json", "--recorded", *(("--cache-salt", *salts) if salts else ()))
        return [turn for turn in map(json.loads, out.splitlines()) if turn["turn"] == 1]

    for salts in ((), ("a",)):
        assert [turn["cached_tokens"] > 0 for turn in firsts(*salts)] == [False, True, True]
    turns = firsts("a", "b", "a")
    assert [turn["cached_tokens"] > 0 for turn in turns] == [False, False, True]
    assert "salt" in turns[1]["miss"]
    assert "one for each file" in misused("play", "-m", "smollm2", "--messages", file, "--recorded", "--cache-salt", "a", "b")


@pytest.mark.model("qwen-0.5b")
def test_a_date_does_not_hide_tools_that_the_template_writes_behind_it(tmp_path):
    tools = [{"type": "function", "function": {"name": f"find_{what}", "description": f"Finds a {what} by its number and tells all about it.",
                                               "parameters": {"type": "object", "properties": {"number": {"type": "integer"}}}}}
             for what in ("order", "parcel", "customer", "invoice")]
    files = []
    for day in ("November 30, 2026", "1 December 2026"):
        files.append(tmp_path / f"{day}.json")
        files[-1].write_text(json.dumps({"tools": tools, "messages": [
            {"role": "system", "content": f"Today is {day}.\nYou are a clerk."}, {"role": "user", "content": "Hello"},
            {"role": "assistant", "content": "Hello."}]}))

    def cached(rule):
        out = succeeds("play", "-m", "qwen-0.5b", "-t", 1, "--json", "--recorded", "--stable-prefix", rule, "--messages", *files)
        return [json.loads(line)["cached_tokens"] for line in out.splitlines()]

    assert cached("off")[1] < 20
    assert cached("move")[1] > 200 and cached("normalise")[1] > 200


@pytest.mark.parametrize(("form", "share"), [("int8", 0.5625), ("k8v4", 0.4375), ("int4", 0.3125)])
def test_a_fixed_form_takes_fewer_bytes(file, form, share):
    def growth(turns):  # what the later turns' pages take: the room held for demotions is there from the start
        return turns[-1]["live_bytes"] - turns[2]["live_bytes"]

    free = play(file, "--recorded")
    turns = play(file, "--recorded", "--kv-format", form)
    states = turns[-1]["pages"]["by_state"]
    assert states[form] > states.get("fp16", 0) and states["gone"] == 0
    assert share < growth(turns) / growth(free) < share + 0.1
    assert turns[-1]["live_bytes"] < free[-1]["live_bytes"]


def test_policy_none_says_when_it_is_full(file):
    assert "is full" in fails_with_output("play", "-m", "smollm2", "-t", 1, "--messages", file, "--recorded", "--policy", "none", "--kv-budget", "4MiB")


def fails_with_output(*arguments) -> str:
    ended = memdecay(*arguments)
    assert ended.status == 1, ended
    return ended.err


def test_what_is_wrong_with_a_file_or_flags_is_said(tmp_path):
    bad = tmp_path / "bad.json"
    deep = "[" * 200_000 + "]" * 200_000
    for text, sentence in [("{", "ends in the middle of a JSON value"), ('{"messages": [{"role": "user", "content": ' + deep + "}]}", "nest deeper"),
                           ("[]", "bad.json: the conversation is not a JSON object"), ("{}", '"messages" is missing'), ('{"messages": []}', "no messages"),
                           ('{"messages": [7]}', "message 1"), ('{"messages": [{"role": "user"}], "tools": 7}', '"tools"')]:
        bad.write_text(text)
        assert sentence in fails("play", "-m", "smollm2", "--messages", bad, "--recorded")
    assert "nowhere.json" in fails("play", "-m", "smollm2", "--messages", tmp_path / "nowhere.json", "--recorded")
    bad.write_text(json.dumps(conversation(1)))
    assert "policy" in fails("play", "-m", "smollm2", "--messages", bad, "--recorded", "--policy", "best")
    misused("play", "-m", "smollm2", "--messages", bad)
    misused("play", "-m", "smollm2", "--messages", bad, "--recorded", "--kv-format", "int3")
