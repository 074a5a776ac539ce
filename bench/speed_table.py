#!/usr/bin/env python3
"""Turns `memdecay bench --against ... -o json` results into a Markdown table and an SVG picture of the ratios.

    speed_table.py RESULT.json... --svg docs/images/speed.svg

A result is {"machine", "date", "command", "model", "rows": [...]}: what `bench/run_speed.sh` writes.
"""

import argparse
import json
import pathlib

BAR_HEIGHT, GAP, LEFT, WIDTH, TOP = 18, 6, 230, 420, 48


def case_name(row: dict) -> str:
    what = f"prompt {row['n_prompt']}" if row["n_prompt"] else "decode"
    return what + (f" at {row['n_depth']}" if row["n_depth"] else "")


def speeds(row: dict) -> tuple[float, float]:
    """Medians of tokens a second, ours and the peer's."""
    def middle(values: list[float]) -> float:
        ordered = sorted(values)
        half = len(ordered) // 2
        return ordered[half] if len(ordered) % 2 else (ordered[half - 1] + ordered[half]) / 2
    return middle(row["samples_ts"]), middle(row["peer_samples_ts"])


def table(results: list[dict]) -> str:
    lines = ["| model | threads | case | tok/s | llama.cpp | ratio | pairs | bandwidth |",
             "|---|---|---|---|---|---|---|---|"]
    for result in results:
        for row in result["rows"]:
            ours, peer = speeds(row)
            share = f"{100 * row['bandwidth_share']:.0f} %" if row["bytes_moved"] else "-"
            lines.append(f"| {result['model']} | {row['n_threads']} | {case_name(row)} | {ours:.1f} | {peer:.1f} | "
                         f"{row['ratio']:.2f} | {len(row['peer_samples_ts'])} | {share} |")
    return "\n".join(lines)


def picture(results: list[dict], threads: int) -> str:
    bars = [(f"{result['model']}, {case_name(row)}", row["ratio"]) for result in results for row in result["rows"]
            if row["n_threads"] == threads]
    longest = max(ratio for _, ratio in bars)
    height = TOP + len(bars) * (BAR_HEIGHT + GAP) + 10
    one = LEFT + WIDTH / longest
    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{LEFT + WIDTH + 70}" height="{height}" '
             'font-family="sans-serif" font-size="12">',
             f'<rect width="100%" height="100%" fill="white"/><text x="10" y="22" font-size="14">Tokens a second, '
             f'as a multiple of llama.cpp ({threads} threads, same machine, runs in turn)</text>']
    for number, (name, ratio) in enumerate(bars):
        y = TOP + number * (BAR_HEIGHT + GAP)
        width = WIDTH * ratio / longest
        parts.append(f'<text x="{LEFT - 8}" y="{y + 13}" text-anchor="end">{name}</text>'
                     f'<rect x="{LEFT}" y="{y}" width="{width:.1f}" height="{BAR_HEIGHT}" fill="#2a6f97"/>'
                     f'<text x="{LEFT + width + 5:.1f}" y="{y + 13}">{ratio:.1f}x</text>')
    parts.append(f'<line x1="{one:.1f}" x2="{one:.1f}" y1="{TOP - 6}" y2="{height - 8}" stroke="#c1121f" '
                 f'stroke-dasharray="4 3"/><text x="{one:.1f}" y="{TOP - 10}" text-anchor="middle" '
                 'fill="#c1121f">llama.cpp</text></svg>')
    return "\n".join(parts) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("results", nargs="+", type=pathlib.Path)
    parser.add_argument("--svg", type=pathlib.Path)
    parser.add_argument("--threads", type=int, default=2, help="of the picture")
    arguments = parser.parse_args()
    results = [json.loads(path.read_text()) for path in arguments.results]
    print(table(results))
    if arguments.svg:
        arguments.svg.write_text(picture(results, arguments.threads))


if __name__ == "__main__":
    main()
