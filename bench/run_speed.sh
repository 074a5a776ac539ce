#!/usr/bin/env bash
# Measures memdecay against a llama-bench on this machine, run by run in turn, and stores the rows.
#
#   bench/run_speed.sh LLAMA_BENCH MODEL OUT.json BENCH_ARGS...
#   bench/run_speed.sh ~/peer/bin/llama-bench smollm2 bench/results/x.json -t 2 -p 512 -n 128 -d 0,4096 -r 5
set -euo pipefail
peer=$1 model=$2 out=$3
shift 3
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
rows=$("$root/build/release/src/cli/memdecay" bench -m "$model" "$@" -o json --against "$peer")
ROWS=$rows python3 - "$model" "$out" "$*" <<'PYTHON'
import datetime, json, os, pathlib, sys
model, out, arguments = sys.argv[1:]
cpu = next((line.split(":")[1].strip() for line in open("/proc/cpuinfo") if line.startswith("model name")), "unknown")
rows = json.loads(os.environ["ROWS"])
for row in rows:  # where the file lies on this machine is nobody's business
    row["model_filename"] = pathlib.Path(row["model_filename"]).name
result = {"machine": f"{cpu}, {os.cpu_count()} cores", "date": datetime.date.today().isoformat(), "model": model,
          "command": f"memdecay bench -m {model} {arguments} --against llama-bench", "rows": rows}
pathlib.Path(out).write_text(json.dumps(result, indent=1) + "\n")
PYTHON
