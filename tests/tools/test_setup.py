"""./run and tools/setup.sh in a checkout of their own, where dpkg, apt-get, sudo, cmake and ninja are played."""

import os
import pathlib
import pty
import shutil
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
PLAYED = {
    # Every package is installed, but those that the file `missing` names.
    "dpkg-query": 'for name; do case "$name" in -*) ;; *) grep -qx "$name" "$STAGE/missing" || echo "$name=installed";;'
                  ' esac; done',
    "apt-get": 'echo "apt-get $*" >>"$STAGE/calls"; [ ! -e "$STAGE/apt-fails" ] || exit 100\n'
               'case "$*" in *install*clang-19*) [ "$(cat "$STAGE/newest-clang")" = 19 ] || exit 100 ;; esac\n'
               'case "$*" in *install*) : >"$STAGE/missing" ;; esac',
    "apt-cache": 'for name; do :; done; [ "$name" = "clang-$(cat "$STAGE/newest-clang")" ] && echo here',
    "sudo": 'echo "sudo $*" >>"$STAGE/calls"; exec "$@"',
    "id": 'cat "$STAGE/uid"',
    "cmake": 'echo "cmake $*" >>"$STAGE/calls"; mkdir -p build/release; : >build/release/build.ninja',
    "ninja": 'echo "ninja $*" >>"$STAGE/calls"; echo "ninja speaks"; echo "[102/143] one step"; sleep "$(cat "$STAGE/build-seconds")"; [ ! -e "$STAGE/ninja-fails" ]',
    "clang++-19": "exit 0",
}
PROGRAM = """#!/bin/sh
echo "cwd=$PWD fetch=$MEMDECAY_FETCH"
for word; do echo "<$word>"; done
exit 7
"""


class Stage:
    def __init__(self, folder: pathlib.Path):
        self.folder = folder
        self.checkout = folder / "a checkout"
        self.played = folder / "bin"
        for path in (self.checkout / "tools", self.checkout / "build/release/src/cli", self.checkout / ".venv/bin",
                     self.played):
            path.mkdir(parents=True)
        shutil.copy(ROOT / "run", self.checkout)
        for name in ("setup.sh", "packages_run.txt", "requirements.txt"):
            shutil.copy(ROOT / "tools" / name, self.checkout / "tools")
        (self.checkout / "CMakePresets.json").write_text("{}")
        shutil.copy(ROOT / "tools/requirements.txt", self.checkout / ".venv/requirements.txt")
        self.script(self.checkout / ".venv/bin/python", "exit 0")
        (self.checkout / "build/release/src/cli/memdecay").write_text(PROGRAM)
        (self.checkout / "build/release/src/cli/memdecay").chmod(0o755)
        for name, body in PLAYED.items():
            self.script(self.played / name, body)
        (folder / "missing").write_text("")
        (folder / "uid").write_text("0")
        (folder / "calls").write_text("")
        (folder / "build-seconds").write_text("0")
        (folder / "newest-clang").write_text("19")

    @staticmethod
    def script(path: pathlib.Path, body: str) -> None:
        path.write_text(f"#!/bin/sh\n{body}\n")
        path.chmod(0o755)

    def run(self, *arguments: str, cwd: pathlib.Path | None = None, stdin=subprocess.DEVNULL, only_played=False,
            **more):
        path = str(self.played) if only_played else f"{self.played}:{os.environ['PATH']}"
        environment = {**os.environ, "PATH": path, "STAGE": str(self.folder), "MEMDECAY_PROGRESS_SECONDS": "1"}
        streams = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **more}
        return subprocess.run([str(self.checkout / "run"), *arguments], cwd=cwd or self.folder, env=environment,
                              text=True, stdin=stdin, timeout=60, **streams)

    def calls(self) -> list[str]:
        return (self.folder / "calls").read_text().splitlines()


@pytest.fixture
def stage(tmp_path):
    return Stage(tmp_path)


def test_arguments_folder_and_status_carry_over(stage):
    done = stage.run("bench", "a b", "", "*")
    assert done.returncode == 7
    assert done.stdout.splitlines() == [f"cwd={stage.folder} fetch={stage.checkout}/tools/fetch_model.sh",
                                        "<bench>", "<a b>", "<>", "<*>"]
    assert done.stderr == ""


def test_without_a_terminal_the_demo(stage):
    assert stage.run().stdout.splitlines()[1:] == ["<demo>"]


def test_on_a_terminal_a_chat(stage):
    ours, theirs = pty.openpty()
    done = stage.run(stdin=theirs)
    os.close(ours)
    os.close(theirs)
    assert done.stdout.splitlines()[1:] == ["<chat>", "<-m>", "<qwen-0.5b>"]


def test_twice_configures_once(stage):
    stage.run()
    stage.run()
    assert [call.split()[0] for call in stage.calls()] == ["cmake", "ninja", "ninja"]


def test_through_a_link(stage):
    (stage.folder / "link").symlink_to(stage.checkout / "run")
    done = subprocess.run([str(stage.folder / "link"), "x"], env={**os.environ, "STAGE": str(stage.folder),
                          "PATH": f"{stage.played}:{os.environ['PATH']}"}, capture_output=True, text=True)
    assert done.returncode == 7


def test_missing_packages_are_installed_as_root(stage):
    (stage.folder / "missing").write_text("ccache\ncmake\n")
    done = stage.run()
    assert "installing Debian packages: ccache cmake" in done.stderr
    assert stage.calls()[0].endswith("install --no-install-recommends ccache cmake")
    assert not any(call.startswith("sudo") for call in stage.calls())


def test_missing_packages_are_installed_with_sudo(stage):
    (stage.folder / "missing").write_text("ccache\n")
    (stage.folder / "uid").write_text("1000")
    assert stage.run().returncode == 7
    assert stage.calls()[0].startswith("sudo env DEBIAN_FRONTEND=noninteractive apt-get")


def test_neither_root_nor_sudo_is_a_sentence(stage):
    (stage.folder / "missing").write_text("ccache\n")
    (stage.folder / "uid").write_text("1000")
    (stage.played / "sudo").unlink()
    for name in ("bash", "sh", "env", "readlink", "dirname", "sed", "grep", "mkdir", "flock", "cat"):
        (stage.played / name).symlink_to(shutil.which(name))
    done = stage.run(only_played=True)
    assert done.returncode == 1
    assert done.stderr == ("memdecay: these packages are missing, and without root or sudo they cannot be "
                           "installed: ccache\n")


def test_apt_that_fails_is_tried_again_and_then_a_sentence(stage):
    (stage.folder / "missing").write_text("ccache\n")
    (stage.folder / "apt-fails").touch()
    done = stage.run()
    assert done.returncode == 1
    assert "memdecay: apt-get update failed" in done.stderr
    assert ["install" in call for call in stage.calls()] == [True, False]


def test_an_older_clang_only_where_there_is_no_newer_one(stage):
    (stage.folder / "newest-clang").write_text("16")
    (stage.folder / "missing").write_text("clang-16\nclang-19\n")
    done = stage.run()
    assert "there is no clang-19 here: using clang-16" in done.stderr
    assert [call.split()[-1] for call in stage.calls() if "install" in call] == ["clang-19", "clang-16"]
    (stage.folder / "missing").write_text("clang-19\n")
    assert stage.run().stderr == ""


def test_a_failed_build_shows_the_words_and_the_sentence(stage):
    (stage.folder / "ninja-fails").touch()
    done = stage.run()
    assert done.returncode == 1
    assert "ninja speaks" in done.stderr
    assert done.stderr.splitlines()[-1].startswith("memdecay: the build failed")
    assert done.stdout == ""


def test_a_long_build_says_how_far_it_is(stage):
    (stage.folder / "build-seconds").write_text("5")
    done = stage.run()
    first, *later = done.stderr.splitlines()
    assert first.startswith("building memdecay") and first.endswith("build/release.log")
    assert later and set(later) == {"  71 % built [102/143]"}


def test_a_long_build_on_a_terminal_counts_in_one_line(stage):
    (stage.folder / "build-seconds").write_text("5")
    ours, theirs = pty.openpty()
    stage.run(stderr=theirs)
    os.close(theirs)
    said = os.read(ours, 10000).decode()
    os.close(ours)
    assert "\r\033[K  71 % built [102/143]" in said and said.count("\n") == 1 and said.endswith("\r\033[K")


def test_a_short_build_says_nothing(stage):
    assert stage.run().stderr == ""
