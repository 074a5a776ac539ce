"""What the checks of the tree have in common: they print where a rule is broken, and end with a status that says whether one is."""

import collections.abc
import pathlib


def report(name: str, find: collections.abc.Callable[[pathlib.Path], list[str]], arguments: list[str]) -> int:
    """Looks at the tree that the arguments name, else at the one this file stands in. Status 0 clean, 1 breaches."""
    found = find(pathlib.Path(arguments[0]) if arguments else pathlib.Path(__file__).resolve().parents[1])
    for line in found:
        print(line)
    print(f"{name}: {len(found)} breach{'es' * (len(found) != 1)}" if found else f"{name}: clean")
    return 1 if found else 0
