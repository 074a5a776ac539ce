#!/usr/bin/env python3
"""Runs clang-tidy over the sources, in parallel, and remembers what was clean.

    run_tidy.py BUILD_FOLDER [--limit-seconds N] [FILE...]

What a file was judged by (itself, every header of src/ it reaches, its compile command, .clang-tidy and the
version of clang-tidy) is hashed; a hash that was clean before is not judged again. The memory is a folder of empty
files in the user's cache. Status 0 clean, 1 findings, 2 the tool could not run. Files for which the time did not
suffice are counted in the last line; they are the first of the next run, since the others are remembered.
"""

import argparse
import concurrent.futures
import functools
import hashlib
import json
import os
import pathlib
import re
import shlex
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from fetching import cache  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parents[1]
TIDY = "clang-tidy-19"
KEEP_DAYS = 30
INCLUDE = re.compile(r'^\s*#\s*include\s*"([^"]+)"', re.MULTILINE)


@functools.cache
def includes(path: pathlib.Path) -> tuple[bytes, tuple[pathlib.Path, ...]]:
    """The bytes of a file, and the files of the tree that it includes itself."""
    content = path.read_bytes()
    found = []
    for name in INCLUDE.findall(content.decode(errors="replace")):
        for folder in (path.parent, ROOT / "src", ROOT / "include"):
            if (folder / name).is_file():
                found.append((folder / name).resolve())
                break
    return content, tuple(found)


def reach(path: pathlib.Path) -> set[pathlib.Path]:
    """The file and every file of the tree that it includes, at any depth."""
    seen, waiting = set(), [path]
    while waiting:
        current = waiting.pop()
        if current not in seen:
            seen.add(current)
            waiting += includes(current)[1]
    return seen


def key(path: pathlib.Path, command: str, common: bytes) -> str:
    digest = hashlib.sha256(common)
    # Neither the place of the checkout nor that of the build folder matters.
    words = [word for word in shlex.split(command) if not word.startswith(("/", "-o", "-I")) and "/" not in word]
    digest.update("\0".join(words).encode())
    for reached in sorted(reach(path)):
        content = includes(reached)[0]
        digest.update(f"{reached.relative_to(ROOT)}\0{len(content)}\0".encode() + content)
    return digest.hexdigest()


# Tests, benchmarks and fuzzers are judged when they are named: with them the stage would take longer than all others.
NOT_PRODUCT = re.compile(r"^(tests|bench)/|_(test|bench|fuzz)\.cc$")


def sources(build: pathlib.Path, wanted: list[str]) -> list[tuple[pathlib.Path, str]]:
    """(file, compile command) of the tree's own sources."""
    entries = json.loads((build / "compile_commands.json").read_text(encoding="utf-8"))
    chosen = {(ROOT / name).resolve() for name in wanted}
    found = {}
    for entry in entries:
        path = pathlib.Path(entry["directory"], entry["file"]).resolve()
        inside = path.is_relative_to(ROOT) and not path.is_relative_to(build) and path.suffix == ".cc"
        if not chosen and NOT_PRODUCT.search(path.relative_to(ROOT).as_posix() if inside else ""):
            continue
        if inside and path.is_file() and "build" not in path.relative_to(ROOT).parts and (not chosen or path in chosen):
            found[path] = entry["command"]
    return sorted(found.items())


def judge(build: pathlib.Path, path: pathlib.Path, deadline: float) -> tuple[bool | None, str]:
    """(clean, or None where the time is over; what clang-tidy says)."""
    left = deadline - time.monotonic()
    if left <= 0:
        return None, ""
    try:
        done = subprocess.run([TIDY, "-p", str(build), "--quiet", str(path)], capture_output=True, text=True,
                              check=False, timeout=left)
    except subprocess.TimeoutExpired:
        return None, ""
    return done.returncode == 0, done.stdout.replace(f"{ROOT}/", "")


def forget_old(memory: pathlib.Path) -> None:
    oldest = time.time() - KEEP_DAYS * 86400
    for mark in memory.iterdir():
        if mark.stat().st_mtime < oldest:
            mark.unlink(missing_ok=True)


def run(build: pathlib.Path, wanted: list[str], limit_seconds: float) -> int:
    version = subprocess.run([TIDY, "--version"], capture_output=True, check=True).stdout
    common = version + (ROOT / ".clang-tidy").read_bytes()
    memory = cache.folder() / "tidy"
    memory.mkdir(parents=True, exist_ok=True)
    forget_old(memory)
    keys = {path: key(path, command, common) for path, command in sources(build, wanted)}
    waiting = []
    for path, digest in keys.items():
        if (memory / digest).exists():
            (memory / digest).touch()
        else:
            waiting.append(path)
    deadline = time.monotonic() + limit_seconds
    found, unjudged = 0, 0
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count() or 1) as pool:
        for path, (clean, words) in zip(waiting, pool.map(lambda path: judge(build, path, deadline), waiting)):
            if clean:
                (memory / keys[path]).touch()
            elif clean is None:
                unjudged += 1
            else:
                found += 1
                print(words.rstrip() or f"{path.relative_to(ROOT)}: clang-tidy failed", flush=True)
    late = f", {unjudged} not judged within {limit_seconds:.0f} s" if unjudged else ""
    print(f"tidy: {len(keys) - found - unjudged} of {len(keys)} files clean "
          f"({len(keys) - len(waiting)} remembered), {found} with findings{late}")
    return 1 if found else 0


def main() -> int:
    parser = argparse.ArgumentParser(description="clang-tidy over the sources, with a memory.")
    parser.add_argument("build", type=pathlib.Path, help="a configured build folder (compile_commands.json)")
    parser.add_argument("files", nargs="*", help="these sources only")
    parser.add_argument("--limit-seconds", type=float, default=900)
    arguments = parser.parse_args()
    try:
        return run(arguments.build.resolve(), arguments.files, arguments.limit_seconds)
    except (OSError, ValueError, subprocess.CalledProcessError) as error:
        print(f"tidy: cannot run: {error}")
        return 2


if __name__ == "__main__":
    sys.exit(main())
