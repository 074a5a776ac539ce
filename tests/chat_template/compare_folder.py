"""Renders every template of a folder (and of GGUF files) with every shape, against jinja2.

    compare_folder.py RENDERER [--templates FOLDER] [--gguf FILE...] [--shapes-at-least N]

FOLDER defaults to $MEMDECAY_TEMPLATES. A template passes where all texts are equal and where both
sides fail on the same shapes. Status 1 where anything differs.
"""
import argparse
import collections
import json
import os
import pathlib
import subprocess
import sys

import reference
import shapes


def sources(args):
    if args.templates:
        for path in sorted(pathlib.Path(args.templates).glob("*.jinja")):
            yield path.name, path.read_bytes().decode("utf-8"), "<BOS>", "<EOS>"
    for path in args.gguf:
        source, bos, eos = reference.gguf_template(path)
        if source is None:
            print(f"{path}: the file has no chat template")
        else:
            yield pathlib.Path(path).name, source, bos, eos


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("renderer")
    parser.add_argument("--templates", default=os.environ.get("MEMDECAY_TEMPLATES"))
    parser.add_argument("--gguf", nargs="*", default=[])
    parser.add_argument("--verbose", action="store_true")
    args = parser.parse_args()

    cases = shapes.shapes()
    renderer = subprocess.Popen([args.renderer], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    totals = collections.Counter()
    templates = perfect = 0
    for name, source, bos, eos in sources(args):
        counts = collections.Counter()
        for shape, case in cases.items():
            job = {**case, "bos_token": bos, "eos_token": eos, "now": reference.NOW}
            renderer.stdin.write(json.dumps({"template": source, **job}).encode() + b"\n")
            renderer.stdin.flush()
            ours = json.loads(renderer.stdout.readline())
            kind, theirs = reference.render(source, job)
            if kind == "text" and ours.get("text") == theirs:
                counts["equal"] += 1
            elif kind == "error" and ours.get("code") == "invalid argument":
                counts["both fail"] += 1
            elif theirs == "RecursionError" and ours.get("code") == "resource exhausted":
                counts["both fail"] += 1
            else:
                counts["DIFFERENT"] += 1
                print(f"{name} {shape}\n  jinja2: {kind} {theirs[-300:]!r}\n  ours:   "
                      f"{str(ours.get('error', ours.get('text')))[-300:]!r}")
        templates += 1
        perfect += counts["DIFFERENT"] == 0
        totals.update(counts)
        if args.verbose:
            print(f"{name}: {dict(counts)}")
    print(f"{templates} templates x {len(cases)} shapes: {dict(totals)}; {perfect} without a difference")
    sys.exit(0 if perfect == templates and templates > 0 else 1)


main()
