#!/usr/bin/env bash
# tools/fetch_model.py with the Python of this checkout's .venv; ./run names it in MEMDECAY_FETCH.
set -euo pipefail
root=$(cd "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/.." && pwd)
if [ ! -x "$root/.venv/bin/python" ]; then
  echo "fetch: there is no Python environment in this checkout yet; ./run --help makes it" >&2
  exit 1
fi
exec "$root/.venv/bin/python" "$root/tools/fetch_model.py" "$@"
