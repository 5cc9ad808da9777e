from __future__ import annotations

import contextlib
import hashlib
import re
import socket
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from depthscope.core.errors import UserError
from depthscope.data.fetch import fetch

CONTENT = np.random.default_rng(0).bytes(1_000_003)
OTHER = np.random.default_rng(1).bytes(1_000_003)


@dataclass
class Site:
    """What the loopback server does; one entry of `script` is used up by each request."""

    content: bytes = CONTENT
    etag: str | None = '"one"'
    script: list[dict[str, Any]] = field(default_factory=list)
    asked: list[str | None] = field(default_factory=list)
    conditions: list[str | None] = field(default_factory=list)
    sent: int = 0
    url: str = ""


class Handler(BaseHTTPRequestHandler):
    site: Site

    def log_message(self, format: str, *args: Any) -> None:
        pass

    def do_GET(self) -> None:
        site = self.site
        site.asked.append(self.headers.get("Range"))
        site.conditions.append(self.headers.get("If-Range"))
        step = site.script.pop(0) if site.script else {}
        time.sleep(step.get("wait", 0))
        if "status" in step:
            self.send_response(step["status"])
            for key, value in step.get("headers", {}).items():
                self.send_header(key, value)
            self.send_header("Content-Length", "0")
            self.end_headers()
            return
        start = 0
        found = re.fullmatch(r"bytes=(\d+)-", self.headers.get("Range") or "")
        same = self.headers.get("If-Range") in (None, site.etag)
        if found and same and not step.get("ignore_range"):
            start = int(found[1])
            if start >= len(site.content):
                self.send_response(416)
                self.send_header("Content-Range", f"bytes */{len(site.content)}")
                self.send_header("Content-Length", "0")
                self.end_headers()
                return
            self.send_response(206)
            shown = start + step.get("shift", 0)
            self.send_header("Content-Range", f"bytes {shown}-{len(site.content) - 1}/{len(site.content)}")
        else:
            self.send_response(200)
        body = site.content[start:]
        if not step.get("no_length"):
            self.send_header("Content-Length", str(len(body)))
        if site.etag:
            self.send_header("ETag", site.etag)
        self.end_headers()
        body = body[: step.get("cut", len(body))]
        with contextlib.suppress(OSError):  # the client hangs up where it refuses
            self.wfile.write(body)
        site.sent += len(body)


class Server(ThreadingHTTPServer):
    def handle_error(self, request: Any, client_address: Any) -> None:
        pass


@contextlib.contextmanager
def serving(site: Site) -> Iterator[Site]:
    server = Server(("127.0.0.1", 0), type("Bound", (Handler,), {"site": site}))
    site.url = f"http://127.0.0.1:{server.server_address[1]}/file"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield site
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@pytest.fixture
def site() -> Iterator[Site]:
    with serving(Site()) as site:
        yield site


def get(site: Site, folder: Path, **options: Any) -> Path:
    options = {
        "sha256": hashlib.sha256(CONTENT).hexdigest(),
        "pause": 0.01,
        "timeout": 5.0,
        "mirror": "DEPTHSCOPE_SITE_URL",
        **options,
    }
    return fetch(site.url, folder / "file", **options)


def names(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir() if path.suffix != ".lock"}


def test_a_file_comes_whole_with_progress(site: Site, tmp_path: Path) -> None:
    seen: list[tuple[int, int | None]] = []
    path = get(site, tmp_path / "new" / "folder", progress=lambda done, total: seen.append((done, total)))
    assert path.read_bytes() == CONTENT
    assert names(path.parent) == {"file"}
    assert seen[0] == (0, len(CONTENT))
    assert seen[-1] == (len(CONTENT), len(CONTENT))
    assert seen == sorted(seen)


def test_a_file_that_is_there_is_not_asked_for(site: Site, tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(CONTENT)
    get(site, tmp_path)
    assert site.asked == []


def test_md5_will_do(site: Site, tmp_path: Path) -> None:
    assert get(site, tmp_path, sha256=None, md5=hashlib.md5(CONTENT).hexdigest()).exists()


def test_a_cut_connection_is_taken_up_where_it_broke(site: Site, tmp_path: Path) -> None:
    site.script = [{"cut": 300_000}, {"cut": 200_000}]
    path = get(site, tmp_path, size=len(CONTENT))
    assert path.read_bytes() == CONTENT
    assert site.asked == [None, "bytes=300000-", "bytes=500000-"]
    assert site.sent == len(CONTENT), "no byte was sent twice"


def test_progress_is_not_held_against_a_bad_line(site: Site, tmp_path: Path) -> None:
    site.script = [{"cut": 50_000} for _ in range(12)]
    assert get(site, tmp_path, attempts=2).read_bytes() == CONTENT


def test_the_next_call_goes_on_from_the_part(site: Site, tmp_path: Path) -> None:
    site.script = [{"cut": 300_000}, {"status": 503}, {"status": 503}]
    with pytest.raises(UserError, match=r"broke off at 300,000 bytes .*goes on from there"):
        get(site, tmp_path, attempts=2)
    assert names(tmp_path) == {"file.part", "file.part.etag"}
    assert get(site, tmp_path).read_bytes() == CONTENT
    assert site.asked[-1] == "bytes=300000-"
    assert names(tmp_path) == {"file"}


def test_a_server_that_ignores_range_starts_again(site: Site, tmp_path: Path) -> None:
    site.script = [{"cut": 300_000}, {"ignore_range": True}]
    assert get(site, tmp_path).read_bytes() == CONTENT
    assert site.asked == [None, "bytes=300000-"]


def test_a_server_that_never_gets_further_is_given_up(site: Site, tmp_path: Path) -> None:
    site.script = [{"cut": 300_000, "ignore_range": True} for _ in range(20)]
    with pytest.raises(UserError, match="broke off at 300,000 bytes"):
        get(site, tmp_path, attempts=3)
    assert len(site.asked) == 4


def test_wrong_bytes_are_refused_and_removed(site: Site, tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"old")
    site.content = OTHER
    with pytest.raises(UserError, match=r"wanted a file of sha256 [0-9a-f]{64}, got [0-9a-f]{64}"):
        get(site, tmp_path, size=len(CONTENT))
    assert names(tmp_path) == {"file"}
    assert (tmp_path / "file").read_bytes() == b"old"


def test_a_missing_file_is_asked_for_once(site: Site, tmp_path: Path) -> None:
    site.script = [{"status": 404}]
    with pytest.raises(UserError, match=r"/file: the server answers 404 .*--data"):
        get(site, tmp_path)
    assert len(site.asked) == 1
    assert names(tmp_path) == set()


@pytest.mark.parametrize("status", [429, 500, 503])
def test_a_busy_server_is_asked_again(site: Site, tmp_path: Path, status: int) -> None:
    site.script = [{"status": status}, {"status": status}]
    assert get(site, tmp_path).read_bytes() == CONTENT


def test_a_part_that_is_whole_needs_no_bytes(site: Site, tmp_path: Path) -> None:
    (tmp_path / "file.part").write_bytes(CONTENT)
    assert get(site, tmp_path).read_bytes() == CONTENT
    assert site.sent == 0
    (tmp_path / "file").rename(tmp_path / "file.part")
    assert get(site, tmp_path, size=len(CONTENT)).read_bytes() == CONTENT
    assert len(site.asked) == 1, "of a known size, the server is not even asked"


@pytest.mark.parametrize("size", [None, len(CONTENT)])
def test_a_part_longer_than_the_file_starts_again(site: Site, tmp_path: Path, size: int | None) -> None:
    (tmp_path / "file.part").write_bytes(OTHER + b"more")
    assert get(site, tmp_path, size=size).read_bytes() == CONTENT


@pytest.mark.parametrize("shift", [-10, 10])
def test_a_range_that_starts_elsewhere_starts_again(site: Site, tmp_path: Path, shift: int) -> None:
    site.script = [{"cut": 300_000}, {"shift": shift}]
    assert get(site, tmp_path).read_bytes() == CONTENT
    assert site.asked == [None, "bytes=300000-", None]


def test_a_file_that_changed_meanwhile_comes_anew(site: Site, tmp_path: Path) -> None:
    site.content, site.etag = OTHER, '"old"'
    site.script = [{"cut": 300_000}, {"status": 503}]
    with pytest.raises(UserError, match="broke off"):
        get(site, tmp_path, attempts=1)
    site.content, site.etag, site.script = CONTENT, '"new"', []
    assert get(site, tmp_path).read_bytes() == CONTENT
    assert site.asked[-1] == "bytes=300000-", "If-Range made the server send it whole"


@pytest.mark.parametrize("etag", [None, 'W/"weak"'])
def test_a_part_of_another_file_is_thrown_away(site: Site, tmp_path: Path, etag: str | None) -> None:
    site.etag = etag
    (tmp_path / "file.part").write_bytes(OTHER[:1000])
    assert get(site, tmp_path).read_bytes() == CONTENT
    assert site.asked == ["bytes=1000-", None]


@pytest.mark.parametrize(("etag", "sent"), [('"strong"', '"strong"'), ('W/"weak"', None), (None, None)])
def test_only_a_strong_tag_is_a_condition(site: Site, tmp_path: Path, etag: str | None, sent: str | None) -> None:
    # RFC 9110, 13.1.5: a weak tag promises no equal bytes and may not stand in If-Range.
    site.etag, site.script = etag, [{"cut": 300_000}]
    assert get(site, tmp_path).read_bytes() == CONTENT
    assert site.conditions == [None, sent]


def test_a_page_in_place_of_the_file_is_refused_at_once(site: Site, tmp_path: Path) -> None:
    site.content = b"<html>log in</html>"
    with pytest.raises(UserError, match="wanted a file of 1,000,003 bytes, the server offers 19"):
        get(site, tmp_path, size=len(CONTENT))
    assert names(tmp_path) == set()


def test_a_server_that_sends_too_much_is_stopped(site: Site, tmp_path: Path) -> None:
    site.content, site.script = CONTENT + OTHER, [{"no_length": True}]
    seen: list[int] = []
    with pytest.raises(UserError, match="sends more than the 1,000,003 bytes"):
        get(site, tmp_path, size=len(CONTENT), progress=lambda done, total: seen.append(done))
    assert max(seen) <= len(CONTENT), "what is too much is not written"
    assert names(tmp_path) == set()


def test_a_cut_without_a_length_is_seen_by_the_size(site: Site, tmp_path: Path) -> None:
    site.script = [{"no_length": True, "cut": 300_000}]
    assert get(site, tmp_path, size=len(CONTENT)).read_bytes() == CONTENT
    assert site.asked == [None, "bytes=300000-"]


def test_a_silent_server_is_given_up(site: Site, tmp_path: Path) -> None:
    site.script = [{"wait": 0.5}, {"wait": 0.5}]
    with pytest.raises(UserError, match="timed out"):
        get(site, tmp_path, timeout=0.1, attempts=2)


def test_no_server_at_all(tmp_path: Path) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with pytest.raises(UserError, match=r"broke off at 0 bytes \(.*refused.*\)"):
        get(Site(url=f"http://127.0.0.1:{port}/file"), tmp_path, attempts=2)


def test_a_redirect_is_followed(site: Site, tmp_path: Path) -> None:
    site.script = [{"status": 302, "headers": {"Location": "/elsewhere"}}]
    assert get(site, tmp_path).read_bytes() == CONTENT


def test_a_redirect_to_a_local_file_is_not(site: Site, tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_bytes(CONTENT)
    site.script = [{"status": 302, "headers": {"Location": secret.as_uri()}}]
    with pytest.raises(UserError, match="answers 302"):
        get(site, tmp_path)


@pytest.mark.parametrize(
    "url", ["file:///etc/hosts", "ftp://host/file", "host/file", "http://[half/file", "http://host:x/", "http://"]
)
def test_only_http_is_spoken(url: str, tmp_path: Path) -> None:
    with pytest.raises(UserError, match="wanted an address that starts with http"):
        get(Site(url=url), tmp_path)


def test_a_folder_that_cannot_be_made(site: Site, tmp_path: Path) -> None:
    (tmp_path / "taken").write_bytes(b"")
    with pytest.raises(UserError, match=r"cannot be written .*DEPTHSCOPE_CACHE"):
        get(site, tmp_path / "taken")


def test_two_at_once_download_once(site: Site, tmp_path: Path) -> None:
    pytest.importorskip("fcntl", reason="no file locks on Windows")
    site.script = [{"wait": 0.3}]
    threads = [threading.Thread(target=get, args=(site, tmp_path)) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(site.asked) == 1
    assert (tmp_path / "file").read_bytes() == CONTENT
