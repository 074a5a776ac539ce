"""Runs the program for a test and judges how it ended."""

import dataclasses
import os
import pathlib
import subprocess

ROOT = pathlib.Path(__file__).resolve().parents[2]
CACHE = pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache") / "memdecay" / "models"


def find_binary() -> pathlib.Path | None:
    if os.environ.get("MEMDECAY_BINARY"):
        return pathlib.Path(os.environ["MEMDECAY_BINARY"]).resolve()
    built = [ROOT / "build" / preset / "src" / "cli" / "memdecay" for preset in ("release", "dev")]
    return max((path for path in built if path.exists()), key=lambda path: path.stat().st_mtime, default=None)


BINARY = find_binary()


@dataclasses.dataclass
class Ended:
    status: int
    out: str
    err: str


def start(*arguments: str, **options) -> subprocess.Popen:
    """For tests that look while it runs."""
    return subprocess.Popen([str(BINARY), *arguments], **options)


def memdecay(*arguments: object, stdin: str | bytes = b"", environment: dict[str, str] | None = None) -> Ended:
    """Runs the program to its end; one that hangs fails the test."""
    done = subprocess.run([str(BINARY), *map(str, arguments)], capture_output=True, timeout=120, check=False,
                          input=stdin.encode() if isinstance(stdin, str) else stdin, env={**os.environ, **(environment or {})})
    return Ended(done.returncode, done.stdout.decode(errors="replace"), done.stderr.decode(errors="replace"))


def succeeds(*arguments: object, **options) -> str:
    ended = memdecay(*arguments, **options)
    assert ended.status == 0, ended
    return ended.out


def fails(*arguments: object, **options) -> str:
    """The sentence of a failure: status 1, one line on stderr."""
    ended = memdecay(*arguments, **options)
    assert ended.status == 1, ended
    assert ended.err.startswith("memdecay: ") and ended.err.count("\n") == 1 and ended.err.endswith("\n"), ended
    return ended.err.removeprefix("memdecay: ").rstrip("\n")


def misused(*arguments: object) -> str:
    """What wrong usage says: status 2, nothing on stdout."""
    ended = memdecay(*arguments)
    assert ended.status == 2, ended
    assert ended.out == "" and "--help" in ended.err, ended
    return ended.err
