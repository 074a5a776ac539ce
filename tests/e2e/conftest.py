"""The program as its users have it: the real binary on real models, judged by what it prints and how it ends.

MEMDECAY_BINARY names the program; else the newest of build/release and build/dev. Models come from the user's cache; tests of a
model that is not there are skipped and say so. One thread unless a test is about threads: the machine may be busy.
"""

import pytest
from program import BINARY, CACHE


def pytest_collection_modifyitems(items):
    for item in items:
        if "tests/e2e/" not in item.path.as_posix():
            continue
        if BINARY is None or not BINARY.exists():
            item.add_marker(pytest.mark.skip(reason="memdecay is not built; MEMDECAY_BINARY may name it"))
        for mark in item.iter_markers("model"):
            for name in mark.args:
                if not (CACHE / f"{name}.gguf").exists():
                    item.add_marker(pytest.mark.skip(reason=f"the model {name} is not in the cache"))


def pytest_configure(config):
    config.addinivalue_line("markers", "model(*names): models of the catalogue that the test reads")
