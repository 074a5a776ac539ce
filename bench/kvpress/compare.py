#!/usr/bin/env python3
"""What h2o, keydiff, sinks and tova keep here, against NVIDIA's kvpress package on the same prompts and weights.

    compare.py RUNS MODEL.gguf [--program build/dev/src/cli/memdecay] [--budgets 50,25] [--prompts 8] [--output FILE]

RUNS holds tau-bench trajectories (*.json.gz, as bench/kv_utilisation.py reads them). MODEL.gguf is played by `memdecay play
--eviction after`: everything is computed, then evicted once, which is what kvpress does. The same weights, dequantized, run in
transformers (tests/golden/gguf_reference.py), where each press scores every token of every layer and kv head.
Needs the packages of requirements.txt.

Ours drops pages of 32 tokens for all layers and heads at once; theirs drops tokens, per layer and head. So both are brought
to common ground in three ways, for an equal number of kept tokens:
  votes   a token gets a vote of each (layer, head) that keeps it; the tokens with the most votes against ours
  pages   their scores averaged over layers, heads and a page's tokens, and whole pages kept by that: the same unit as ours
  ranks   Spearman's correlation of our page scores with those averages, over pages that may be evicted
Only pages that may be evicted take part (sinks, the newest pages and the open page stay here in any case), and chance is what
randomly chosen pages of the same number reach. `layers` is how much their own layers agree with each other.
"""

import argparse
import itertools
import json
import pathlib
import random
import statistics
import subprocess
import sys

import numpy as np
import torch

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tests" / "golden"), str(ROOT / "bench")]
import kvpress  # noqa: E402
from gguf_reference import load_model  # noqa: E402
from kvpress.presses.base_press import BasePress  # noqa: E402
from recorded import first_trials  # noqa: E402
from result_file import result, write_result  # noqa: E402

METHODS = ("h2o", "keydiff", "sinks", "tova")
UNLIMITED = 1 << 40
CHARACTERS_PER_TOKEN = 4.0  # about, to choose where a prompt ends
MOST_TOKENS = 2000


def conversations(folder: pathlib.Path) -> list[list[dict]]:
    """Plain turns of user and assistant: calls as text; the policy text, which would be pinned, and tool results as what the user
    says."""
    plain = []
    for run in first_trials(folder):
        messages = []
        for message in run["traj"]:
            text = message.get("content") or ""
            for call in message.get("tool_calls") or []:
                text += json.dumps({"name": call["function"]["name"], "arguments": call["function"]["arguments"]})
            messages.append({"role": "assistant" if message["role"] == "assistant" else "user", "content": text})
        plain.append(messages)
    return plain


class Program:
    """The memdecay command line."""

    def __init__(self, path: pathlib.Path, model: pathlib.Path) -> None:
        self.path, self.model = str(path), str(model)

    def run(self, arguments: list[str], text: str) -> str:
        return subprocess.run([self.path, *arguments], input=text, capture_output=True, text=True, check=True).stdout

    def tokens(self, messages: list[dict]) -> list[int]:
        text = self.run(["template", self.model], json.dumps({"messages": messages}))
        return json.loads(self.run(["tokenize", self.model, "--ids", "--no-bos"], text))

    def play(self, messages: list[dict], policy: str, budget: int, eviction: str = "after") -> dict:
        """The last turn."""
        lines = self.run(["play", "-m", self.model, "-t", "1", "--messages", "-", "--recorded", "--json", "--kept", "--kv-format", "fp16",
                          "--policy", policy, "--kv-budget", str(budget), "--eviction", eviction],
                         json.dumps({"messages": messages}))
        return json.loads(lines.splitlines()[-1])


def choose_prompts(program: Program, folder: pathlib.Path, count: int) -> list[tuple[list[dict], list[int]]]:
    """Runs cut behind an assistant's turn, so that they have 600 to 2,000 tokens; every second without the policy text."""
    prompts = []
    for number, messages in enumerate(conversations(folder)):
        if len(prompts) == count:
            break
        if number % 2 == 1:
            messages = messages[1:]
        wanted = (1800, 800, 1700, 1300)[number % 4]
        lengths = list(itertools.accumulate(len(message["content"]) / CHARACTERS_PER_TOKEN for message in messages))
        ends = [i + 1 for i, message in enumerate(messages) if message["role"] == "assistant" and lengths[i] <= wanted]
        if not ends:
            continue
        tokens = program.tokens(messages[:ends[-1]])
        if 600 <= len(tokens) <= MOST_TOKENS:
            prompts.append((messages[:ends[-1]], tokens))
    return prompts


class Recorder(BasePress):
    """Scores of every press in every layer from one pass; compresses nothing."""

    def __init__(self) -> None:
        self.presses = {"h2o": kvpress.ObservedAttentionPress(0.5), "keydiff": kvpress.KeyDiffPress(0.5),
                        "tova": kvpress.TOVAPress(0.5)}
        self.scores = {name: [] for name in (*self.presses, "h2o_sum")}

    def compress(self, module, hidden_states, keys, values, attentions, kwargs):
        for name, press in self.presses.items():
            self.scores[name].append(press.score(module, hidden_states, keys, values, attentions, kwargs)[0].double().numpy())
        count = keys.shape[2]
        seen = np.arange(count, 0, -1)  # queries that see the token
        self.scores["h2o_sum"].append(self.scores["h2o"][-1] * seen)
        return keys, values


def their_scores(model, tokens: list[int]) -> dict[str, np.ndarray]:
    """[layers, kv heads, tokens] a press; higher is kept."""
    recorder = Recorder()
    with torch.no_grad(), recorder(model):
        model(torch.tensor([tokens]), use_cache=True, logits_to_keep=1)
    return {name: np.stack(layers) for name, layers in recorder.scores.items()}


def sinks_scores(shape: tuple[int, ...], kept: int) -> np.ndarray:
    count = shape[-1]
    press = kvpress.StreamingLLMPress(1 - (kept + 0.5) / count)
    keys = torch.zeros(1, shape[1], count, 1)
    return np.repeat(press.score(None, None, keys, None, None, {})[0].double().numpy()[None], shape[0], axis=0)


def jaccard(a: np.ndarray, b: np.ndarray) -> float:
    union = np.count_nonzero(a | b)
    return float(np.count_nonzero(a & b) / union) if union else 1.0


def best(scores: np.ndarray, count: int) -> np.ndarray:
    """Masks of the `count` highest along the last axis; ties go to the later."""
    order = np.argsort(scores, axis=-1, kind="stable")
    masks = np.zeros(scores.shape, dtype=bool)
    np.put_along_axis(masks, order[..., scores.shape[-1] - count:], True, axis=-1)
    return masks


def ranks(values: np.ndarray) -> np.ndarray:
    order = np.argsort(values, kind="stable")
    places = np.empty(len(values))
    places[order] = np.arange(len(values))
    return places


def mask_of(runs: list[list[int]], count: int) -> np.ndarray:
    mask = np.zeros(count, dtype=bool)
    for first, end in runs:
        mask[first:end] = True
    return mask


def page_mask(pages: list[tuple[int, int]], count: int) -> np.ndarray:
    return mask_of([[first, first + tokens] for first, tokens in pages], count)


def chance(pages: list[tuple[int, int]], kept_pages: int, ours: np.ndarray, draws: int = 200) -> float:
    source = random.Random(1)
    return statistics.fmean(jaccard(ours, page_mask(source.sample(pages, kept_pages), len(ours))) for _ in range(draws))


def compare(ours: np.ndarray, pages: list, theirs: np.ndarray) -> dict:
    """`ours` is a mask over all tokens, `pages` those that might have gone, `theirs` [layers, heads, tokens]."""
    count = len(ours)
    free = page_mask(pages, count)
    kept = ours & free
    number = int(np.count_nonzero(kept))
    scores = np.where(free, theirs, -np.inf)
    masks = best(scores, number)
    votes = masks.sum(axis=(0, 1)).astype(float)
    # Ties of votes are parted by the mean score.
    votes_mask = best(np.where(free, votes + 1e-9 * ranks(theirs.mean(axis=(0, 1))), -1.0), number)
    means = [float(theirs[:, :, first:first + tokens].mean()) for first, tokens in pages]
    kept_pages = [page for page in pages if ours[page[0]]]
    by_page = sorted(range(len(pages)), key=lambda i: means[i], reverse=True)[:len(kept_pages)]
    of_layers = best(np.where(free, masks.sum(axis=1).astype(float), -1.0), number)
    pairs = list(itertools.combinations(range(len(of_layers)), 2))
    return {
        "votes": jaccard(kept, votes_mask),
        "heads": statistics.fmean(jaccard(kept, head) for layer in masks for head in layer),
        "pages": jaccard(kept, page_mask([pages[i] for i in by_page], count)),
        "chance": chance(pages, len(kept_pages), kept),
        "layers": statistics.fmean(jaccard(of_layers[a], of_layers[b]) for a, b in pairs),
        "kept_tokens": number,
    }


def kept_by(scores: list, budget: float, count: int) -> np.ndarray | None:
    """What one plan leaves of pages that all take the same bytes: the lowest scores that may go, go first. None where what
    is protected takes more than the budget."""
    gone = len(scores) - int(budget * len(scores))
    droppable = sorted((score, first, tokens) for first, tokens, score, shield in scores if shield == "droppable")
    if gone >= len(droppable):
        return None
    mask = page_mask([(first, tokens) for first, tokens, _, _ in scores], count)
    for _, first, tokens in droppable[:gone]:
        mask[first:first + tokens] = False
    return mask


def free_pages(scores: list) -> tuple[list[tuple[int, int]], np.ndarray]:
    free = [(first, tokens, score) for first, tokens, score, shield in scores if shield == "droppable"]
    return [(first, tokens) for first, tokens, _ in free], np.array([score for _, _, score in free])


def measure(program: Program, model, prompt: tuple[list[dict], list[int]], budgets: list[float], check: bool) -> list[dict]:
    """With `check` each budget is really played, to show that what is kept follows from the scores."""
    messages, tokens = prompt
    theirs = their_scores(model, tokens)
    rows = []
    for method in METHODS:
        whole = program.play(messages, method, UNLIMITED)
        if whole["kept"] != [[0, len(tokens)]]:
            sys.exit(f"compare: {len(tokens)} tokens here, but {whole['kept']} in the program")
        pages, scores = free_pages(whole["scores"])
        if len(pages) < 8:
            sys.exit(f"compare: of {len(whole['scores'])} pages only {len(pages)} may be evicted: nothing to compare")
        for budget in budgets:
            ours = kept_by(whole["scores"], budget, len(tokens))
            if ours is None:
                print(f"{len(tokens)} tokens, {method}: what is protected takes more than {100 * budget:g} %", file=sys.stderr)
                continue
            if check:
                last = program.play(messages, method, int(budget * whole["evictable_bytes"]))
                if not np.array_equal(ours, mask_of(last["kept"], len(tokens))):
                    sys.exit(f"compare: {method} at {budget} keeps {last['kept']}, which is not what its scores say")
            row = {"method": method, "budget": budget, "tokens": len(tokens), "free_tokens": sum(n for _, n in pages)}
            kinds = {method: sinks_scores(theirs["h2o"].shape, int(ours.sum())) if method == "sinks" else theirs[method]}
            if method == "h2o":
                kinds["h2o_sum"] = theirs["h2o_sum"]
            for name, of_press in kinds.items():
                means = np.array([of_press[:, :, first:first + n].mean() for first, n in pages])
                rank = None if method == "sinks" else float(np.corrcoef(ranks(scores), ranks(means))[0, 1])
                rows.append({**row, "press": name, **compare(ours, pages, of_press), "rank": rank})
    return rows


def summary(rows: list[dict]) -> list[dict]:
    table = []
    for (press, budget), group in itertools.groupby(sorted(rows, key=lambda r: (r["press"], -r["budget"])),
                                                    key=lambda r: (r["press"], r["budget"])):
        group = list(group)
        cell = {"press": press, "budget": budget, "prompts": len(group)}
        for name in ("votes", "heads", "pages", "chance", "layers", "rank"):
            values = [row[name] for row in group if row[name] is not None]
            cell[name] = round(statistics.fmean(values), 4) if values else None
        table.append(cell)
    return table


def show(table: list[dict]) -> None:
    columns = ("votes", "heads", "pages", "chance", "layers", "rank")
    print("press     budget  " + "".join(f"{name:>9}" for name in columns))
    for cell in table:
        values = "".join(f"{'-':>9}" if cell[name] is None else f"{cell[name]:9.3f}" for name in columns)
        print(f"{cell['press']:9} {100 * cell['budget']:5.1f} %  {values}")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("runs", type=pathlib.Path)
    parser.add_argument("model", type=pathlib.Path, metavar="MODEL.gguf")
    parser.add_argument("--program", type=pathlib.Path, default=ROOT / "build" / "dev" / "src" / "cli" / "memdecay")
    parser.add_argument("--budgets", default="50,25", help="per cent of the prompt's pages")
    parser.add_argument("--prompts", type=int, default=8)
    parser.add_argument("--output", type=pathlib.Path)
    arguments = parser.parse_args()
    program = Program(arguments.program, arguments.model)
    prompts = choose_prompts(program, arguments.runs, arguments.prompts)
    if len(prompts) < arguments.prompts:
        sys.exit(f"compare: {arguments.runs} has only {len(prompts)} runs of the right length")
    model, _ = load_model(str(arguments.model))
    budgets = [float(part) / 100 for part in arguments.budgets.split(",")]
    rows = []
    for number, prompt in enumerate(prompts):
        rows += measure(program, model, prompt, budgets, check=number == 0)
        print(f"{len(prompt[1])} tokens done", file=sys.stderr)
        write_result(arguments.output, result(
            "what our policies keep against kvpress", kvpress="0.5.5", model=arguments.model.stem,
            prompt_tokens=[len(tokens) for _, tokens in prompts[:number + 1]], table=summary(rows), rows=rows))  # fmt: skip
    show(summary(rows))
    return 0


if __name__ == "__main__":
    sys.exit(main())
