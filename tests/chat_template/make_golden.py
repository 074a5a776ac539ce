"""Writes golden/*.json: what jinja2 renders of templates/*.jinja with every shape.

    make_golden.py            (needs jinja2 3.1.6)

The file of a template maps a shape's name to {"text"} or {"error"}; golden/shapes.json holds the
jobs. golden_test.cc compares. Templates of model files are other people's text and are not stored:
compare_folder.py compares them straight against jinja2.
"""
import json
import pathlib

import reference
import shapes

HERE = pathlib.Path(__file__).parent
BOS, EOS = "<BOS>", "<EOS>"


def main():
    cases = shapes.shapes()
    jobs = {
        name: {**case, "bos_token": BOS, "eos_token": EOS, "now": reference.NOW}
        for name, case in cases.items()
    }
    write(HERE / "golden" / "shapes.json", jobs)
    for path in sorted((HERE / "templates").glob("*.jinja")):
        source = path.read_text(encoding="utf-8")
        golden = {}
        for name, job in jobs.items():
            kind, result = reference.render(source, job)
            golden[name] = {kind: result if kind == "text" else result[:200]}
        write(HERE / "golden" / (path.stem + ".json"), golden)
        texts = sum("text" in g for g in golden.values())
        print(f"{path.name}: {texts} texts, {len(golden) - texts} failures")


def write(path, value):
    path.write_text(json.dumps(value, ensure_ascii=False, indent=0) + "\n", encoding="utf-8")


main()
