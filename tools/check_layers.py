#!/usr/bin/env python3
"""Fails when a source file includes what its floor may not.

The floors are those of docs/design/overview.md: a module includes its own files and those of the modules
listed for it, nothing else. Beside that, system calls stay in src/sys, intrinsics in the folders of
src/kernels, the installed headers in include/ include nothing of src/, and what CMake links are the same floors.

    check_layers.py [ROOT]      prints file:line sentences; status 0 clean, 1 breaches
"""

import pathlib
import re
import sys

from breaches import report

FLOORS = {
    "core": "",
    "sys": "core",
    "policy": "core",
    "quant": "core",
    "kernels": "core sys quant",
    "kv": "core sys quant policy",
    "model": "core sys quant kernels",
    "tier": "core sys quant policy kv",
    "sched": "core policy kv tier",
    "engine": "core sys policy quant kernels kv model tier sched",
    "server": "core sys engine",
    "eval": "core sys quant policy engine",
    "cli": "core sys engine server eval",
}
# Inside the model floor: leaves that know nothing of one another, and the transformer that reads files.
MODEL_PARTS = {"gguf": "", "tokenizer": "", "chat_template": "", "sampler": "", "transformer": "gguf"}

SYSTEM_HEADER = re.compile(
    r"(unistd|fcntl|pthread|spawn|poll|sched|dlfcn|dirent|pwd|grp|netdb|termios|signal|semaphore|syslog)\.h"
    r"|(sys|linux|arpa|net|netinet)/.*|liburing\.h|numaif\.h")
INTRINSICS = re.compile(r"([a-z]*mmintrin|immintrin|x86intrin|arm_neon|arm_sve|cpuid)\.h")
# It spins with _mm_pause, the one intrinsic outside the kernels.
INTRINSIC_FILES = {"src/sys/thread_team.cc"}

INCLUDE = re.compile(r'^\s*#\s*include\s*(?:"([^"]+)"|<([^>]+)>)')
SUFFIXES = {".h", ".cc", ".c", ".inc"}


def module_of(path: str) -> str:
    return path.split("/")[0]


def quoted_breach(file: str, included: str) -> str | None:
    """What is wrong with an #include "..." of src/, or nothing."""
    own, other = module_of(file), module_of(included)
    if "/" not in included or ".." in included.split("/"):
        return f'"{included}" must be written from src/, as in "core/status.h"'
    if other not in FLOORS:
        return f'"{included}" names no module of src/'
    if other != own and other not in FLOORS[own].split():
        return f"{own} may not include {other}: it stands on {FLOORS[own] or 'nothing'}"
    if own == other == "model":
        return model_breach(file, included)
    return None


def model_breach(file: str, included: str) -> str | None:
    own, other = file.split("/")[1], included.split("/")[1]
    if own not in MODEL_PARTS or own == other:
        return None
    if other not in MODEL_PARTS[own].split():
        return f"model/{own} may not include model/{other}"
    return None


def angled_breach(file: str, included: str) -> str | None:
    """What is wrong with an #include <...> of src/, or nothing."""
    is_test = re.search(r"_(test|bench|fuzz)\.cc$", file) is not None
    if SYSTEM_HEADER.fullmatch(included) and module_of(file) != "sys" and not is_test:
        return f"<{included}> is for src/sys: system calls stay there"
    in_kernel_folder = file.startswith("kernels/") and file.count("/") >= 2
    # The benchmarks and tests beside the kernels measure what an instruction can do at best.
    may = in_kernel_folder or (is_test and module_of(file) == "kernels") or f"src/{file}" in INTRINSIC_FILES
    if INTRINSICS.fullmatch(included) and not may:
        return f"<{included}> is for the folders below src/kernels: intrinsics stay there"
    return None


def source_breaches(root: pathlib.Path, path: pathlib.Path) -> list[str]:
    file = path.relative_to(root / "src").as_posix()
    if module_of(file) not in FLOORS:
        return [f"src/{file}:1: {module_of(file)} is no module of the floors in tools/check_layers.py"]
    found = []
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        match = INCLUDE.match(line)
        if match is None:
            continue
        breach = quoted_breach(file, match[1]) if match[1] else angled_breach(file, match[2])
        if breach:
            found.append(f"src/{file}:{number}: {breach}")
    return found


def installed_breaches(root: pathlib.Path, path: pathlib.Path) -> list[str]:
    """The installed headers include each other and standard headers, never src/."""
    found = []
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        match = INCLUDE.match(line)
        if match and match[1] and not match[1].startswith("memdecay/"):
            name = path.relative_to(root).as_posix()
            found.append(f'{name}:{number}: an installed header may not include "{match[1]}"')
    return found


LIST_FILE = re.compile(r"memdecay_module\(\s*(\w+)([^)]*)\)")


def cmake_breaches(root: pathlib.Path, path: pathlib.Path) -> list[str]:
    """The DEPENDS of a module's list file name only floors below it."""
    module = path.relative_to(root / "src").parts[0]
    name = path.relative_to(root).as_posix()
    found = []
    for match in LIST_FILE.finditer(path.read_text(encoding="utf-8")):
        words = match[2].split("LIBRARIES")[0].split()
        for depends in words[words.index("DEPENDS") + 1:] if "DEPENDS" in words else []:
            if depends in MODEL_PARTS and module == "model":
                allowed = depends in MODEL_PARTS.get(match[1], "").split()
            else:
                floor = "model" if depends in MODEL_PARTS else depends
                allowed = floor in FLOORS.get(module, "").split()
            if not allowed:
                found.append(f"{name}:1: {match[1]} may not depend on {depends}")
    return found


def breaches(root: pathlib.Path) -> list[str]:
    found = []
    for path in sorted((root / "src").rglob("*")):
        if path.suffix in SUFFIXES:
            found += source_breaches(root, path)
        elif path.name == "CMakeLists.txt":
            found += cmake_breaches(root, path)
    for path in sorted((root / "include").rglob("*.h*")):
        found += installed_breaches(root, path)
    return found


def main(arguments: list[str]) -> int:
    return report("layers", breaches, arguments)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
