"""Result files of benchmarks: what was measured, when and on which machine."""

import datetime
import json
import os
import pathlib
import platform


def cpu_name() -> str:
    with open("/proc/cpuinfo", encoding="utf-8") as file:
        for line in file:
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    return platform.processor()


def result(what: str, **fields) -> dict:
    """A result with its head; `fields` follow it in their order."""
    return {"what": what, "date": datetime.date.today().isoformat(), "machine": {"cpu": cpu_name(), "cores": os.cpu_count()}, **fields}


def write_result(path: pathlib.Path | None, record: dict) -> None:
    """Nothing happens where nobody asked for a file."""
    if path:
        path.write_text(json.dumps(record, indent=2) + "\n", encoding="utf-8")
