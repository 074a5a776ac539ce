"""A model from the Hugging Face hub: hf:OWNER/REPO/FILE, through the huggingface_hub package.

The package resumes what was interrupted. What it does not do is checked here: where the hub states a
SHA-256 (large files have it as their ETag), the bytes on the disk must have it.
"""

import hashlib
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
    repository, file = parse(name)
    try:
        import huggingface_hub as hub  # only hf: names need it
    except ImportError as error:
        raise FetchError("hf: models need the Python package huggingface_hub; ./run sets it up") from error
    store = cache_folder / "huggingface"
    known = hub.try_to_load_from_cache(repository, file, cache_dir=store)
    if isinstance(known, str):
        return pathlib.Path(known)
    store.mkdir(parents=True, exist_ok=True)
    with cache.only_writer(cache_folder, re.sub(r"\W", "-", name)):
        cache.say(f"fetching {file} of {repository} from the Hugging Face hub")
        try:
            expected = hub.get_hf_file_metadata(hub.hf_hub_url(repository, file))
            if expected.size is not None:
                cache.require_space(store, expected.size)
            path = pathlib.Path(hub.hf_hub_download(repository, file, cache_dir=store))
        except FetchError:
            raise
        except Exception as error:  # the package has no common base class for its failures
            reason = str(error).strip().splitlines() or [type(error).__name__]
            raise FetchError(f"the hub did not give {file} of {repository}: {reason[0]}") from error
        _check(path, expected)
        return path


def _check(path: pathlib.Path, expected) -> None:
    wrong = expected.size is not None and path.stat().st_size != expected.size
    if not wrong and re.fullmatch(r"[0-9a-f]{64}", expected.etag or ""):
        with open(path, "rb") as file:
            wrong = hashlib.file_digest(file, "sha256").hexdigest() != expected.etag
    if wrong:
        path.resolve().unlink()
        path.unlink()
        raise FetchError(f"what the hub sent as {path.name} is not what it announced: it was removed")
