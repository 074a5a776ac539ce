"""The program as its users have it: the real binary on real models, judged by what it prints and how it ends.

MEMDECAY_BINARY names the program; else the newest of build/release and build/dev. Models come from the user's cache; tests of a
model that is not there are skipped and say so. One thread unless a test is about threads: the machine may be busy.
"""

import json

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


@pytest.fixture(scope="session")
def shop_runs(tmp_path_factory):
    """Two customers of a small shop, as tau-bench writes its episodes."""
    episodes = []
    for task, code in enumerate(["QX7R2L", "ZT55KP"]):
        traj = [{"role": "system", "content": "You are the agent of a small shop. Always look an order up before you speak of it. "
                                              "Never promise what the order does not say."}]
        for turn in range(4):
            traj += [
                {"role": "user", "content": f"Where is my order {code}-{turn}? I have waited for {turn + 2} days now."},
                {"role": "assistant", "content": None, "tool_calls": [
                    {"id": f"c{turn}", "type": "function",
                     "function": {"name": "get_order", "arguments": json.dumps({"code": f"{code}-{turn}"})}}]},
                {"role": "tool", "tool_call_id": f"c{turn}", "name": "get_order",
                 "content": json.dumps({"code": f"{code}-{turn}", "status": "on its way", "carrier": "Nordpost", "parcel": turn * 77})},
                {"role": "assistant", "content": f"Your order {code}-{turn} is on its way with Nordpost, parcel {turn * 77}."},
            ]
        episodes.append({"task_id": task, "trial": 0, "reward": 1.0, "info": {}, "traj": traj})
    path = tmp_path_factory.mktemp("runs") / "shop.json"
    path.write_text(json.dumps(episodes))
    return path
