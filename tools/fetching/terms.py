"""Shows the terms of a model before it is first fetched, and asks where there is someone to ask.

On a terminal a person answers y or n. MEMDECAY_ACCEPT_TERMS, a list of model names divided by commas
or `all`, answers beforehand. Where nobody can answer, the terms are printed and the fetch goes on:
using the model means accepting them, and the text says so.
"""

import os
import sys

from fetching.cache import say
from fetching.failure import FetchError


def accepted_beforehand(name: str, environment=os.environ) -> bool:
    names = {item.strip() for item in environment.get("MEMDECAY_ACCEPT_TERMS", "").split(",")}
    return bool(names & {name, "all"})


def show(name: str, terms: str, environment=os.environ) -> None:
    say(f"{name}: {terms}")
    if accepted_beforehand(name, environment) or not (sys.stdin and sys.stdin.isatty()):
        return
    sys.stderr.write("Do you accept these terms? [y/N] ")
    sys.stderr.flush()
    if sys.stdin.readline().strip().lower() not in ("y", "yes"):
        raise FetchError(f"{name} was not fetched: its terms were not accepted")
