#!/usr/bin/env python3
"""Fails where the tree breaks a rule of CONTRIBUTING.md that neither compiler nor clang-tidy holds.

    check_style.py [ROOT]      prints file:line sentences; status 0 clean, 1 breaches

Sizes of files and functions, words that type names avoid, notes of unfinished work, paths of one machine, tests
that no CMake target would pick up, headers without their contract, and paths in the docs that lead nowhere.
"""

import pathlib
import re
import subprocess
import sys

from breaches import report

CPP = {".h", ".cc", ".c"}
TEXT = CPP | {".py", ".sh", ".cmake", ".txt", ".md", ".json", ""}
FUNCTION_LINES, KERNEL_FUNCTION_LINES = 70, 120
NAMES_TO_AVOID = {"Manager", "Helper", "Helpers", "Util", "Utils", "Data", "Info", "Base"}
# Put together from pieces, so that this file does not find itself.
UNFINISHED = re.compile(r"\b(TO" r"DO|FIX" r"ME|XX" r"X)\b|\bst" r"ubs?\b|place" r"holder|not imple" r"mented", re.IGNORECASE)
MACHINE_PATH = re.compile(r"/(wo" r"rk|fa" r"rm|ro" r"ot|tmp/bash_jo" r"bs)(/|\b)")
DOC_PATH = re.compile(r"`((?:src|tools|docs|cmake|tests|models|bench|eval|include|bindings|\.ci)/[\w./*{},+-]*)`")


def project_files(root: pathlib.Path) -> list[pathlib.Path]:
    """Everything that is or may become part of the tree: what git does not ignore."""
    if not (root / ".git").exists():
        return sorted(path for path in root.rglob("*") if path.is_file())
    listed = subprocess.run(["git", "-C", str(root), "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
                            capture_output=True, check=True).stdout.decode()
    paths = (root / name for name in sorted(set(listed.split("\0"))) if name)
    return [path for path in paths if path.is_file()]


def line_cap(file: str) -> int:
    if file.startswith("src/kernels/"):
        return 800
    # *_golden.h holds expected values, and tests/ what tests share.
    is_short = file.endswith(".h") and not file.endswith("_golden.h") and not file.startswith("tests/")
    return 250 if is_short else 600


def check_sizes(file: str, text: str) -> list[str]:
    lines = text.count("\n")
    cap = line_cap(file)
    found = [f"{file}:{cap + 1}: {lines} lines, and {cap} are the most for this kind of file"] if lines > cap else []
    longest = KERNEL_FUNCTION_LINES if file.startswith("src/kernels/") else FUNCTION_LINES
    for number, length in function_bodies(text):
        if length > longest:
            found.append(f"{file}:{number}: a function body of {length} lines, and {longest} are the most")
    return found


NOT_CODE = re.compile(r'//[^\n]*|/\*.*?\*/|R"(\w*)\(.*?\)\1"|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])+\'', re.DOTALL)


def without_comments(text: str) -> str:
    """Comments and literals blanked, lines kept. A digit separator (1'000) is no literal."""
    text = re.sub(r"(?<=[0-9a-fA-F])'(?=[0-9a-fA-F])", "", text)
    return NOT_CODE.sub(lambda match: re.sub(r"[^\n]", " ", match[0]), text)


def opens_function(head: str) -> bool:
    """Whether the text between the last statement and a `{` is the head of a function."""
    head = re.sub(r"^\s*#.*$", "", head, flags=re.MULTILINE).strip()
    if ")" not in head or re.search(r"(=|,|\(|return)\s*$", head):
        return False
    return re.match(r"(if|for|while|switch|catch|do|else|namespace|class|struct|enum|union)\b", head) is None


def function_bodies(text: str) -> list[tuple[int, int]]:
    """(line of the opening brace, lines between the braces) of every outermost function."""
    code = without_comments(text)
    found, head_from, opened_at, start = [], 0, None, 0
    initializers = []  # for every open brace, whether it is one as in `x_{1}`: written without a space before it
    for match in re.finditer(r"[{};]", code):
        sign, at = match[0], match.start()
        if sign == "{":
            initializers.append(at > 0 and not code[at - 1].isspace())
            if opened_at is None and not initializers[-1] and opens_function(code[head_from:at]):
                opened_at, start = len(initializers), at
        elif sign == "}" and initializers:
            if opened_at == len(initializers):
                number = code.count("\n", 0, start) + 1
                found.append((number, max(0, code.count("\n", start, at) - 1)))
                opened_at = None
            if initializers.pop():
                continue
        if sign != "{" or not initializers[-1]:
            head_from = at + 1
    return found


def check_type_names(file: str, text: str) -> list[str]:
    found = []
    for match in re.finditer(r"\b(?:class|struct|enum|using)\s+(?:class\s+)?(?:\[\[\w+\]\]\s*)?(\w+)", without_comments(text)):
        if set(re.findall(r"[A-Z][a-z0-9]*", match[1])) & NAMES_TO_AVOID:
            number = text.count("\n", 0, match.start()) + 1
            found.append(f"{file}:{number}: {match[1]} says little: name the type after what it is")
    return found


def check_header(file: str, text: str) -> list[str]:
    found = []
    if not text.startswith(("//", "/*")):
        found.append(f"{file}:1: a header begins with its contract")
    # src/kernels/target_*.h open and close a region of a file and are included many times.
    if "#pragma once" not in text and not pathlib.PurePath(file).name.startswith("target_"):
        found.append(f"{file}:1: a header has #pragma once")
    return found


def check_lines(file: str, text: str) -> list[str]:
    is_prose = file.endswith(".md")
    found = []
    for number, line in enumerate(text.splitlines(), 1):
        if not is_prose and UNFINISHED.search(line):
            found.append(f"{file}:{number}: unfinished work is an issue, not a note in the tree")
        if MACHINE_PATH.search(line):
            found.append(f"{file}:{number}: a path of one machine")
    return found


def check_doc_paths(root: pathlib.Path, file: str, text: str) -> list[str]:
    found = []
    for number, line in enumerate(text.splitlines(), 1):
        for match in DOC_PATH.finditer(line):
            for path in expand_braces(match[1]):
                # A word in capitals stands for something: `docs/decisions/NNNN-title.md`.
                if re.search(r"[A-Z]{3}", path) is None and not any(root.glob(path.rstrip("/"))):
                    found.append(f"{file}:{number}: `{path}` is not there")
    return found


def expand_braces(path: str) -> list[str]:
    match = re.search(r"\{([^{}]*)\}", path)
    if match is None:
        return [path]
    return [path[:match.start()] + choice + path[match.end():] for choice in match[1].split(",")]


def check_has_target(root: pathlib.Path, file: str) -> list[str]:
    """cmake/module.cmake picks up files beside a list file and one folder below it."""
    path = root / file
    for level, folder in enumerate(path.parents):
        list_file = folder / "CMakeLists.txt"
        if not list_file.is_file():
            continue
        text = list_file.read_text(encoding="utf-8")
        if (level <= 1 and "memdecay_module(" in text) or path.name in text or "GLOB" in text:
            return []
        break
    return [f"{file}:1: no CMake target takes this file"]


def breaches(root: pathlib.Path) -> list[str]:
    found = []
    for path in project_files(root):
        file = path.relative_to(root).as_posix()
        if path.suffix not in TEXT or file.startswith(("tests/golden/", "build/")):
            continue
        try:
            text = path.read_text(encoding="utf-8")
        except UnicodeDecodeError:
            continue
        found += check_lines(file, text)
        if path.suffix == ".md":
            found += check_doc_paths(root, file, text)
        if path.suffix in CPP:
            found += check_sizes(file, text) + check_type_names(file, text)
        if path.suffix == ".h" and file.startswith(("src/", "include/")):
            found += check_header(file, text)
        if re.search(r"_(test|bench|fuzz)\.cc$", file):
            found += check_has_target(root, file)
    return found


def main(arguments: list[str]) -> int:
    return report("style", breaches, arguments)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
