"""The user's cache folder: where it is, and one writer at a time.

The rules of the folder are those of src/sys/user_folders.h.
"""

import contextlib
import fcntl
import os
import pathlib
import shutil
import sys

from fetching.failure import FetchError


def folder(environment=os.environ) -> pathlib.Path:
    own = environment.get("MEMDECAY_CACHE", "")
    if own:
        return pathlib.Path(own)
    xdg = environment.get("XDG_CACHE_HOME", "")
    if os.path.isabs(xdg):
        return pathlib.Path(xdg) / "memdecay"
    home = environment.get("HOME") or os.path.expanduser("~")
    if not os.path.isabs(home):
        raise FetchError("no cache folder: neither MEMDECAY_CACHE, XDG_CACHE_HOME nor HOME is set")
    return pathlib.Path(home) / ".cache" / "memdecay"


def say(message: str) -> None:
    print(message, file=sys.stderr, flush=True)


def mebibytes(count: int) -> str:
    return f"{count / (1 << 20):,.0f} MiB"


def require_space(where: pathlib.Path, needed_bytes: int) -> None:
    free = shutil.disk_usage(where).free
    if free < needed_bytes:
        raise FetchError(
            f"{where} has {mebibytes(free)} free, and {mebibytes(needed_bytes)} are needed: "
            "make room, or name another folder in MEMDECAY_CACHE"
        )


@contextlib.contextmanager
def only_writer(cache: pathlib.Path, name: str):
    """Holds the lock of one model; waits, and says so, while another process has it."""
    locks = cache / "locks"
    locks.mkdir(parents=True, exist_ok=True)
    with open(locks / f"{name}.lock", "w", encoding="ascii") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say(f"another process is fetching {name}: waiting for it")
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def sync_folder(path: pathlib.Path) -> None:
    """Makes a rename inside the folder survive a power cut."""
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
