# shellcheck shell=bash
# Sourced by ./run and ./test: makes sure that what the build needs is on this machine.
#
# set_up PACKAGE_LIST...  installs the Debian packages of tools/PACKAGE_LIST.txt that are missing (as root, or
# with sudo), makes .venv from tools/requirements.txt, and picks the compiler. When everything is there it
# does nothing, says nothing and needs no network. It ends the script with one sentence when it cannot.
# Afterwards `root` is the checkout, `python` the interpreter of .venv and `compiler_flags` what CMake needs to hear.

root=$(cd "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/.." && pwd)
python="$root/.venv/bin/python"
compiler_flags=()

say() { printf '%s\n' "$*" >&2; }
fail() {
  say "memdecay: $*"
  exit 1
}

# One set-up and one build at a time in a checkout; the lock goes with the process.
take_lock() {
  mkdir -p "$root/build"
  exec 9>"$root/build/.lock"
  if command -v flock >/dev/null && ! flock -n 9; then
    say "another ./run or ./test is at work in this checkout: waiting for it"
    flock 9
  fi
}
drop_lock() { exec 9>&-; }

packages_of() { sed -e 's/#.*//' -e '/^[[:space:]]*$/d' "${@/#/$root/tools/}"; }

# The packages among the arguments that are not installed.
missing_of() {
  local installed package
  installed=$(dpkg-query -W -f='${Package}=${db:Status-Status}\n' "$@" 2>/dev/null || true)
  for package in "$@"; do
    case $'\n'"$installed"$'\n' in *$'\n'"$package=installed"$'\n'*) ;; *) printf '%s\n' "$package" ;; esac
  done
}

as_root() {
  if [ "$(id -u)" -eq 0 ]; then "$@"; else sudo "$@"; fi
}

apt_install() {
  as_root env DEBIAN_FRONTEND=noninteractive apt-get -q -y -o DPkg::Lock::Timeout=300 install \
    --no-install-recommends "$@" >&2 9>&-
}

install_packages() {
  local wanted missing version=19
  if ! command -v dpkg-query >/dev/null || ! command -v apt-get >/dev/null; then
    fail "set-up knows Debian 12 and its relatives only; install what docs/dependencies.md lists by hand"
  fi
  mapfile -t wanted < <(packages_of "$@")
  [ ! -f "$root/build/clang-version" ] || version=$(<"$root/build/clang-version")
  mapfile -t missing < <(missing_of "${wanted[@]//-19/-$version}")
  [ "${#missing[@]}" -gt 0 ] || return 0
  if [ "$(id -u)" -ne 0 ] && ! command -v sudo >/dev/null; then
    fail "these packages are missing, and without root or sudo they cannot be installed: ${missing[*]}"
  fi
  say "installing Debian packages: ${missing[*]}"
  apt_install "${missing[@]}" && return 0
  say "trying again with a fresh list of packages"
  as_root apt-get -q -y -o DPkg::Lock::Timeout=300 update >&2 9>&- ||
    fail "apt-get update failed (its own words are above); these packages are missing: ${missing[*]}"
  version=$(newest_clang)
  mapfile -t missing < <(missing_of "${wanted[@]//-19/-$version}")
  apt_install "${missing[@]}" || fail "apt-get could not install: ${missing[*]}"
  [ "$version" = 19 ] || echo "$version" >"$root/build/clang-version"
}

# Where apt has no clang-19, an older one builds MemDecay too; its kernels are not the ones that we measure.
newest_clang() {
  local version
  for version in 19 16 14; do
    [ -n "$(apt-cache madison "clang-$version" 2>/dev/null)" ] || continue
    [ "$version" = 19 ] || say "there is no clang-19 here: using clang-$version, whose speed nobody has measured"
    echo "$version"
    return 0
  done
  echo 19
}

pick_compiler() {
  command -v clang++-19 >/dev/null && return 0
  local older
  for older in 16 14; do
    if command -v "clang++-$older" >/dev/null; then
      compiler_flags=("-DCMAKE_C_COMPILER=clang-$older" "-DCMAKE_CXX_COMPILER=clang++-$older")
      return 0
    fi
  done
  fail "there is no clang-19, clang-16 or clang-14 on this machine"
}

# A Python of 3.11 or later that can make environments; Debian's own comes first.
find_python() {
  local candidate
  for candidate in /usr/bin/python3 python3.13 python3.12 python3.11 python3; do
    if "$candidate" -c 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
      printf '%s\n' "$candidate"
      return 0
    fi
  done
  fail "there is no Python of 3.11 or later with the venv module"
}

make_environment() {
  local requirements="$root/tools/requirements.txt" stamp="$root/.venv/requirements.txt" base log
  if cmp -s "$requirements" "$stamp" && "$python" -c '' 2>/dev/null; then return 0; fi
  base=$(find_python) || exit 1
  say "making the Python environment .venv, for the scripts that fetch models and check the tree"
  log="$root/build/venv.log"
  if ! { "$base" -m venv --clear "$root/.venv" &&
    "$python" -m pip --disable-pip-version-check install --quiet -r "$requirements"; } >"$log" 2>&1 9>&-; then
    tail -n 5 "$log" >&2
    fail "the Python packages of tools/requirements.txt could not be installed (pip's words are above)"
  fi
  cp "$requirements" "$stamp"
}

set_up() {
  local lists=("${@/%/.txt}")
  mkdir -p "$root/build"
  install_packages "${lists[@]}"
  pick_compiler
  make_environment
}

# Says that a build is going on once it has lasted two seconds, and then how far it is: on a terminal in one line,
# else a line every 15 seconds.
announce_build() {
  local every=${MEMDECAY_PROGRESS_SECONDS:-15}
  sleep 2 >/dev/null 2>&1
  say "building memdecay: up to five minutes on two cores the first time; the compiler's words go to ${1#"$root/"}"
  [ ! -t 2 ] || every=1
  while sleep "$every" >/dev/null 2>&1; do
    if [ -t 2 ]; then printf '\r\033[K%s' "$(build_progress "$1")" >&2; else say "$(build_progress "$1")"; fi
  done
}

# "  71 % built [102/143]" by the last step that ninja names in a log.
build_progress() {
  local last done all
  last=$(grep -o '^\[[0-9]*/[0-9]*\]' "$1" | tail -n 1) || true
  IFS='[/]' read -r _ done all _ <<<"$last"
  if [ -n "$last" ] && [ "$all" -gt 0 ]; then echo "  $((100 * done / all)) % built $last"; else echo "  starting"; fi
}

# build_release: the program that ./run starts; quiet when nothing changed.
build_release() {
  local folder="$root/build/release" log="$root/build/release.log" announcer status=0
  if [ ! -f "$folder/build.ninja" ] || [ "$root/CMakePresets.json" -nt "$folder/build.ninja" ]; then
    (cd "$root" && cmake --preset release "${compiler_flags[@]}") >"$log" 2>&1 9>&- || {
      tail -n 20 "$log" >&2
      fail "cmake could not configure the build (its words are above; all of them: build/release.log)"
    }
  fi
  : >"$log"
  announce_build "$log" 9>&- &
  announcer=$!
  ninja -C "$folder" memdecay >"$log" 2>&1 9>&- || status=$?
  kill "$announcer" 2>/dev/null || true
  wait "$announcer" 2>/dev/null || true
  [ ! -t 2 ] || printf '\r\033[K' >&2
  if [ "$status" -ne 0 ]; then
    tail -n 30 "$log" >&2
    fail "the build failed (the compiler's words are above; all of them: build/release.log)"
  fi
}
