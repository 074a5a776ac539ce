"""Fetching from the hub, against a small server on this machine that speaks the part of its protocol in use."""

import hashlib
import http.server
import os
import pathlib
import re
import subprocess
import sys
import threading

import pytest
from fetching import hub
from fetching.failure import FetchError

ROOT = pathlib.Path(__file__).resolve().parents[2]
# More than two of the pieces of 10 MB that huggingface_hub writes at a time.
CONTENT = bytes(range(256)) * 100_000
COMMIT = "0123456789abcdef0123456789abcdef01234567"


class LocalHub(http.server.ThreadingHTTPServer):
    """Serves CONTENT as OWNER/REPO/FILE; counts requests, cuts or spoils bodies on demand."""

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Handler)
        self.ranges: list[str | None] = []
        self.cut_after: int | None = None
        self.body = CONTENT
        self.announced = hashlib.sha256(CONTENT).hexdigest()


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def do_HEAD(self):
        self.answer(body=False)

    def do_GET(self):
        self.answer(body=True)

    def answer(self, body: bool):
        if not re.fullmatch(r"/owner/repo/resolve/main/folder/model\.gguf", self.path):
            self.send_response(404)
            self.send_header("X-Error-Code", "EntryNotFound")
            self.send_header("Content-Length", "0")
            self.end_headers()
            return
        asked = self.headers.get("Range")
        start = int(re.match(r"bytes=(\d+)-", asked)[1]) if asked else 0
        content = self.server.body[start:]
        self.send_response(206 if start else 200)
        self.send_header("X-Repo-Commit", COMMIT)
        self.send_header("ETag", f'"{self.server.announced}"')
        self.send_header("Accept-Ranges", "bytes")
        if start:
            self.send_header("Content-Range", f"bytes {start}-{len(self.server.body) - 1}/{len(self.server.body)}")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        if not body:
            return
        self.server.ranges.append(asked)
        if self.server.cut_after is not None:
            content, self.server.cut_after = content[:self.server.cut_after], None
            self.close_connection = True
        self.wfile.write(content)


@pytest.fixture
def server():
    local = LocalHub()
    thread = threading.Thread(target=local.serve_forever, daemon=True)
    thread.start()
    yield local
    local.shutdown()
    local.server_close()
    thread.join()


def fetch(server, home, name="hf:owner/repo/folder/model.gguf", port=None):
    environment = {**os.environ, "MEMDECAY_CACHE": str(home), "HF_HUB_DISABLE_PROGRESS_BARS": "1",
                   "HF_ENDPOINT": f"http://127.0.0.1:{port or server.server_port}", "HF_HUB_DOWNLOAD_TIMEOUT": "5",
                   "HF_HOME": str(home / "hf"), "NO_PROXY": "127.0.0.1", "no_proxy": "127.0.0.1"}
    return subprocess.run([sys.executable, str(ROOT / "tools" / "fetch_model.py"), name], env=environment,
                          capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=120)


def test_fetches_checks_and_works_without_the_hub_afterwards(server, tmp_path):
    done = fetch(server, tmp_path)
    assert done.returncode == 0, done.stderr
    path = pathlib.Path(done.stdout.splitlines()[-1])
    assert path.read_bytes() == CONTENT
    assert path.is_relative_to(tmp_path)
    requests = len(server.ranges)
    again = fetch(server, tmp_path, port=1)  # where nobody listens
    assert (again.returncode, again.stdout) == (0, done.stdout)
    assert len(server.ranges) == requests


def test_goes_on_where_the_connection_broke(server, tmp_path):
    server.cut_after = 15_000_000
    assert fetch(server, tmp_path).returncode == 0
    assert server.ranges == [None, "bytes=10485760-"]
    assert [path.read_bytes() for path in tmp_path.rglob("model.gguf")] == [CONTENT]


def test_goes_on_where_another_process_stopped(server, tmp_path):
    folder = tmp_path / "huggingface/owner/repo/folder"
    folder.mkdir(parents=True)
    (folder / "model.gguf.part").write_bytes(CONTENT[:12345])
    (folder / "model.gguf.part.etag").write_text(server.announced)
    assert fetch(server, tmp_path).returncode == 0
    assert server.ranges == ["bytes=12345-"]
    assert (folder / "model.gguf").read_bytes() == CONTENT
    assert [path.name for path in folder.iterdir()] == ["model.gguf"]


def test_what_began_as_another_file_is_not_gone_on_with(server, tmp_path):
    folder = tmp_path / "huggingface/owner/repo/folder"
    folder.mkdir(parents=True)
    (folder / "model.gguf.part").write_bytes(b"other")
    (folder / "model.gguf.part.etag").write_text("0" * 64)
    assert fetch(server, tmp_path).returncode == 0
    assert server.ranges == [None]
    assert (folder / "model.gguf").read_bytes() == CONTENT


def test_bytes_that_are_not_those_announced_are_removed(server, tmp_path):
    server.body = b"X" + CONTENT[1:]
    done = fetch(server, tmp_path)
    assert done.returncode == 1
    assert "is not what it announced" in done.stderr
    assert not any(path.is_file() and path.stat().st_size == len(CONTENT) for path in tmp_path.rglob("*"))
    server.body = CONTENT
    assert fetch(server, tmp_path).returncode == 0


def test_a_file_that_is_not_there_is_a_sentence(server, tmp_path):
    done = fetch(server, tmp_path, "hf:owner/repo/gone.gguf")
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1].startswith("fetch: the hub did not give gone.gguf of owner/repo: ")
    assert "Traceback" not in done.stderr


def test_no_hub_is_a_sentence(server, tmp_path):
    done = fetch(server, tmp_path, port=1)
    assert done.returncode == 1
    assert "the hub did not give" in done.stderr and "Traceback" not in done.stderr


@pytest.mark.parametrize("name", ["hf:", "hf:owner", "hf:owner/repo", "hf:owner/repo/", "hf:owner/repo/../x",
                                  "hf:owner/repo/a//b", "hf:../repo/x", "hf:owner/repo/a b"])
def test_names(name):
    with pytest.raises(FetchError, match="not of the form"):
        hub.parse(name)


def test_a_file_may_lie_in_a_folder():
    assert hub.parse("hf:owner/repo.x/a/b.gguf") == ("owner/repo.x", "a/b.gguf")
