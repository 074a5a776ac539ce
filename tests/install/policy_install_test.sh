#!/usr/bin/env bash
# Installs libmemdecay-policy into an empty folder, and builds and runs the example against what lies there.
#
#   policy_install_test.sh BUILD_FOLDER EXAMPLE.c
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cmake --install "$1" --component policy --prefix "$folder/prefix" >/dev/null
config=$(dirname "$(find "$folder/prefix" -name memdecay-policy.pc)")
flags=$(PKG_CONFIG_PATH=$config pkg-config --cflags --libs memdecay-policy)
# shellcheck disable=SC2086  # several words
cc -std=c11 -Wall -Wextra -Werror "$2" $flags -Wl,-rpath,"$(dirname "$config")" -o "$folder/example"
"$folder/example"
