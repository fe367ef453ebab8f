"""Downloads from a server of this machine: checked, resumed, and explained when they fail."""

import contextlib
import hashlib
import io
import re
import threading
import zipfile
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import numpy as np
import pytest

from eigenscape.datasets.entry import DataSet, Form, Remote
from eigenscape.datasets.fetch import by_hand, fetch
from eigenscape.errors import FetchError, MissingExtraError, OutputError

CONTENT = np.random.default_rng(0).bytes(300_000)


@dataclass
class Server:
    """What the server sends, how it breaks, and what it was asked."""

    url: str = ""
    content: bytes = CONTENT
    ranges: bool = True
    break_after: list[int] = field(default_factory=list)
    """Bytes after which each of the first answers breaks off."""
    asked: list[str | None] = field(default_factory=list)
    """The Range header of every request."""


@pytest.fixture
def server():
    state = Server()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self):
            asked = self.headers.get("Range")
            state.asked.append(asked)
            start = int(re.fullmatch(r"bytes=(\d+)-", asked)[1]) if asked and state.ranges else 0
            if self.path != "/file" or start >= len(state.content):
                self.send_response(404 if self.path != "/file" else 416)
                self.send_header("Content-Length", "0")
                self.end_headers()
                return
            self.send_response(206 if start else 200)
            body = state.content[start:]
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            stop = state.break_after.pop(0) if state.break_after else len(body)
            with contextlib.suppress(OSError):
                self.wfile.write(body[:stop])
            self.close_connection = stop < len(body)

        def log_message(self, *_):
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as http:
        state.url = f"http://127.0.0.1:{http.server_port}/file"
        thread = threading.Thread(target=http.serve_forever, args=(0.01,))
        thread.start()
        yield state
        http.shutdown()
        thread.join()


@pytest.fixture(autouse=True)
def no_waiting(monkeypatch):
    # Between attempts pooch waits for seconds.
    monkeypatch.setattr("pooch.core.time.sleep", lambda seconds: None)


def data_set(url, content=CONTENT, **keys):
    remote = Remote("a.bin", url, hashlib.sha256(content).hexdigest(), len(content), **keys)
    forms = (Form(remote.brings),)
    return DataSet("toy", "A toy.", (1, 1), "us", "none", forms=forms, remotes=(remote,))


def test_fetch__brings_the_file_once(server, data_home):
    seen = []
    folder = fetch(data_set(server.url), lambda *state: seen.append(state))
    assert folder == data_home / "toy"
    assert [path.name for path in folder.iterdir()] == ["a.bin"]
    assert (folder / "a.bin").read_bytes() == CONTENT
    assert seen[-1] == ("a.bin", len(CONTENT), len(CONTENT))
    assert fetch(data_set(server.url)) == folder
    assert server.asked == [None]


def test_fetch__goes_on_where_it_broke_off(server, data_home):
    server.break_after = [100_000, 50_000]
    fetch(data_set(server.url))
    assert (data_home / "toy" / "a.bin").read_bytes() == CONTENT
    assert server.asked[0] is None
    starts = [int(re.search(r"\d+", asked)[0]) for asked in server.asked[1:]]
    assert len(starts) == 2
    assert 0 < starts[0] < starts[1] <= 150_000


def test_fetch__goes_on_in_another_process(server, data_home):
    part = data_home / "toy" / ".a.bin.part"
    part.parent.mkdir(parents=True)
    part.write_bytes(CONTENT[:1234])
    fetch(data_set(server.url))
    assert (data_home / "toy" / "a.bin").read_bytes() == CONTENT
    assert server.asked == ["bytes=1234-"]


def test_fetch__starts_anew_where_the_server_cannot_resume(server, data_home):
    server.break_after, server.ranges = [100_000], False
    fetch(data_set(server.url))
    assert (data_home / "toy" / "a.bin").read_bytes() == CONTENT


def test_fetch__twice_at_once_is_one_download(server, data_home):
    threads = [threading.Thread(target=fetch, args=(data_set(server.url),)) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (data_home / "toy" / "a.bin").read_bytes() == CONTENT
    assert server.asked == [None]


def test_fetch__drops_a_part_that_is_too_long(server, data_home):
    part = data_home / "toy" / ".a.bin.part"
    part.parent.mkdir(parents=True)
    part.write_bytes(CONTENT + b"more")
    fetch(data_set(server.url))
    assert (data_home / "toy" / "a.bin").read_bytes() == CONTENT


def test_fetch__gives_up_and_keeps_what_came(server, data_home):
    server.break_after = [20_000] * 9
    with pytest.raises(FetchError, match="broke off") as caught:
        fetch(data_set(server.url))
    for said in (server.url, "goes on from there", str(data_home / "toy"), "a.bin"):
        assert said in str(caught.value)
    assert len(server.asked) == 4
    assert not (data_home / "toy" / "a.bin").exists()
    kept = (data_home / "toy" / ".a.bin.part").stat().st_size
    assert 0 < kept <= 80_000
    server.break_after = []
    fetch(data_set(server.url))
    assert server.asked[-1] == f"bytes={kept}-"


def test_fetch__refuses_other_content(server, data_home):
    server.content = CONTENT[:-1] + b"x"
    with pytest.raises(FetchError, match="is not the file it was") as caught:
        fetch(data_set(server.url))
    for said in (server.url, hashlib.sha256(CONTENT).hexdigest(), str(data_home / "toy")):
        assert said in str(caught.value)
    assert list((data_home / "toy").iterdir()) == []


def test_fetch__offline_says_what_to_do(server, data_home):
    server.content = b""
    nowhere = "http://127.0.0.1:9/file"  # The discard port: nobody listens.
    with pytest.raises(FetchError, match="cannot be reached") as caught:
        fetch(data_set(nowhere))
    for said in (nowhere, "put a.bin into", str(data_home / "toy")):
        assert said in str(caught.value)
    assert caught.value.exit_status == 2


def test_fetch__a_page_that_is_gone(server, data_home):
    with pytest.raises(FetchError, match="404"):
        fetch(data_set(server.url + "s"))
    assert list((data_home / "toy").iterdir()) == []


def test_fetch__takes_files_out_of_an_archive(server, data_home):
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        for name in ("inner/one.npy", "inner/two.npy", "other.py", "../../out.py", "/out.py"):
            archive.writestr(name, name.encode())
    server.content = packed.getvalue()
    members = ("inner/one.npy", "inner/two.npy")
    folder = fetch(data_set(server.url, server.content, members=members))
    assert sorted(path.name for path in folder.iterdir()) == ["one.npy", "two.npy"]
    assert (folder / "two.npy").read_bytes() == b"inner/two.npy"
    assert not list(data_home.parent.rglob("out.py"))


def test_fetch__nothing_to_fetch(data_home):
    item = DataSet(
        "mine", "Mine.", (1, 1), "me", "none",
        forms=(Form(("mine.tif",), "mine_labels.tif"),), obtain="Ask me.",
    )  # fmt: skip
    with pytest.raises(FetchError, match=r"mine: cannot be fetched\. Put mine\.tif") as caught:
        fetch(item)
    assert by_hand(item) in str(caught.value)
    assert by_hand(item).endswith(f"mine_labels.tif into {data_home / 'mine'}. Ask me.")


def test_fetch__directory_that_cannot_be_written(server, data_home):
    data_home.write_text("a file, not a directory")
    with pytest.raises(OutputError, match="cannot be written"):
        fetch(data_set(server.url))


def test_fetch__without_pooch(server, data_home, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "pooch", None)
    with pytest.raises(MissingExtraError, match=r"eigenscape\[data\]"):
        fetch(data_set(server.url))


def test_fetch__by_name_from_the_command_line(server, data_home, cli, monkeypatch):
    from eigenscape.datasets import catalog

    packed = io.BytesIO()
    images = np.arange(3 * 4, dtype=np.uint8).reshape(3, 2, 2)
    np.savez(packed, x_train=images, y_train=np.array([7, 0, 9]))
    server.content = packed.getvalue()
    mnist = catalog.DATA_SETS["mnist"]
    remote = Remote(
        "mnist.npz", server.url, hashlib.sha256(server.content).hexdigest(), len(server.content)
    )
    local = DataSet(**{**vars(mnist), "remotes": (remote,)})
    monkeypatch.setitem(catalog.DATA_SETS, "mnist", local)
    done = cli("data", "fetch", "mnist")
    assert done.exit_code == 0, done.stderr
    values = np.load(done.stdout.strip())
    np.testing.assert_array_equal(values, images.reshape(3, 1, 4))
    assert (data_home / "mnist" / "mnist.npz").read_bytes() == server.content
