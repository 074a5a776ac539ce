"""models/catalogue.json: which models exist by name, what they are made of, how to know them."""

import dataclasses
import json
import pathlib
import re

from fetching.failure import FetchError

ROOT = pathlib.Path(__file__).resolve().parents[2]
CATALOGUE = ROOT / "models" / "catalogue.json"


@dataclasses.dataclass(frozen=True)
class Part:
    """One member of one wheel."""

    package: str
    version: str
    member: str


@dataclasses.dataclass(frozen=True)
class Model:
    name: str
    title: str
    size_bytes: int
    sha256: str
    parts: tuple[Part, ...]
    terms: str | None


def _model(entry: dict) -> Model:
    model = Model(
        name=entry["name"],
        title=entry["title"],
        size_bytes=entry["bytes"],
        sha256=entry["sha256"],
        parts=tuple(Part(**part) for part in entry["parts"]),
        terms=entry.get("terms"),
    )
    if not re.fullmatch(r"[a-z0-9][a-z0-9.-]*", model.name):
        raise FetchError(f"{CATALOGUE.name}: {model.name!r} is not a model name")
    if not re.fullmatch(r"[0-9a-f]{64}", model.sha256) or model.size_bytes <= 0 or not model.parts:
        raise FetchError(f"{CATALOGUE.name}: the entry of {model.name} is incomplete")
    return model


def load(path: pathlib.Path = CATALOGUE) -> dict[str, Model]:
    try:
        entries = json.loads(path.read_text(encoding="utf-8"))["models"]
        return {entry["name"]: _model(entry) for entry in entries}
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise FetchError(f"the catalogue {path} cannot be read: {error!r}") from error
