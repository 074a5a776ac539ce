"""A model from the Hugging Face hub: hf:OWNER/REPO/FILE, through the huggingface_hub package.

The package speaks with the hub (endpoint, token, retries). Its own cache begins a file anew in every process, so
the bytes go to `<cache>/huggingface/OWNER/REPO/FILE.part` instead and an interrupted fetch goes on there. Only
a file of the announced size gets its name, and where the hub states a SHA-256 (large files have it as their ETag), only
one that has it.
"""

import hashlib
import os
import pathlib
import re

from fetching import cache
from fetching.failure import FetchError


def parse(name: str) -> tuple[str, str]:
    """(repository, file) of hf:OWNER/REPO/FILE."""
    match = re.fullmatch(r"hf:([\w.-]+/[\w.-]+)/([^\s\\]+)", name)
    if match is None or any(piece in ("", ".", "..") for piece in name[3:].split("/")):
        raise FetchError(f"{name} is not of the form hf:OWNER/REPO/FILE")
    return match[1], match[2]


def fetch(name: str, cache_folder: pathlib.Path) -> pathlib.Path:
    """The path of the file, fetched now if it is not there yet."""
    repository, file = parse(name)
    final = cache_folder / "huggingface" / repository / file
    if final.is_file():
        return final
    final.parent.mkdir(parents=True, exist_ok=True)
    with cache.only_writer(cache_folder, re.sub(r"[^\w.-]", "-", name)):
        if not final.is_file():
            cache.say(f"fetching {file} of {repository} from the Hugging Face hub")
            _fetch_into(repository, file, final)
    return final


def _fetch_into(repository: str, file: str, final: pathlib.Path) -> None:
    try:
        import huggingface_hub as hub  # only hf: names need it
        from huggingface_hub.file_download import http_get
    except ImportError as error:
        raise FetchError("hf: models need the Python package huggingface_hub; ./run sets it up") from error
    part = final.with_name(final.name + ".part")
    state = final.with_name(final.name + ".part.etag")
    try:
        url = hub.hf_hub_url(repository, file)
        announced = hub.get_hf_file_metadata(url)
        begun = _begun_bytes(part, state, announced)
        if announced.size is not None:
            cache.require_space(final.parent, announced.size - begun)
        with open(part, "ab") as out:
            http_get(url, out, resume_size=begun, headers=hub.utils.build_hf_headers(), expected_size=announced.size)
            out.flush()
            os.fsync(out.fileno())
    except FetchError:
        raise
    except Exception as error:  # the package has no common base class for its failures
        reason = str(error).strip().splitlines() or [type(error).__name__]
        raise FetchError(f"the hub did not give {file} of {repository}: {reason[0]}") from error
    good = _is_announced(part, announced)
    state.unlink(missing_ok=True)
    if not good:
        part.unlink()
        raise FetchError(f"what the hub sent as {file} of {repository} is not what it announced: it was removed")
    os.replace(part, final)
    cache.sync_folder(final.parent)


def _begun_bytes(part: pathlib.Path, state: pathlib.Path, announced) -> int:
    """How much of this very file an earlier fetch left; anything else that lies there is removed."""
    size = part.stat().st_size if part.is_file() else 0
    known = state.read_text(encoding="utf-8") if state.is_file() else None
    if known != announced.etag or (announced.size is not None and size > announced.size):
        part.unlink(missing_ok=True)
        size = 0
    state.write_text(announced.etag or "", encoding="utf-8")
    return size


def _is_announced(part: pathlib.Path, announced) -> bool:
    if announced.size is not None and part.stat().st_size != announced.size:
        return False
    if re.fullmatch(r"[0-9a-f]{64}", announced.etag or "") is None:
        return True
    with open(part, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest() == announced.etag
