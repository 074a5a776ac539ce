"""Recorded agent runs, and what memdecay says about them."""

import gzip
import json
import pathlib
import subprocess


def episodes(file: pathlib.Path) -> list[dict]:
    """tau-bench's {"trial", "task_id", "traj": [messages]}."""
    with gzip.open(file, "rt", encoding="utf-8") as stream:
        return json.load(stream)


def first_trials(folder: pathlib.Path) -> list[dict]:
    """The first trial of each task in the folder's *.json.gz, by task."""
    runs = [run for file in sorted(folder.glob("*.json.gz")) for run in episodes(file)]
    return sorted((run for run in runs if run.get("trial", 0) == 0), key=lambda run: run["task_id"])


def output_of(command: list[str]) -> str:
    """What a program printed; its failure ends this one with what it said."""
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    if done.returncode != 0:
        raise SystemExit(f"{' '.join(command[:2])} ended with status {done.returncode}: {done.stderr.strip()}")
    return done.stdout


def play(program: str, model: str, conversation: dict, folder: pathlib.Path, *flags: str) -> list[dict]:
    """The turns of a conversation whose answers are forced."""
    file = folder / "conversation.json"
    file.write_text(json.dumps(conversation), encoding="utf-8")
    command = [program, "play", "-m", model, "--messages", str(file), "--recorded", "--json", *flags]
    return [json.loads(line) for line in output_of(command).splitlines()]
