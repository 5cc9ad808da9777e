"""The only downloader: one file over HTTP, resumed after a cut, kept only if its checksum is right."""

from __future__ import annotations

import contextlib
import hashlib
import http.client
import os
import re
import sys
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from depthscope.core.errors import UserError

Progress = Callable[[int, int | None], None]
"""Called with the bytes held so far and the bytes of the whole file (None while unknown)."""

CHUNK = 1 << 18
RETRIED_CODES = frozenset({408, 425, 429, 500, 502, 503, 504})
"""Answers that mean "later"; any other error of a server is final."""


class _CutError(Exception):
    """The connection ended early, or the server asked to come back later."""


@dataclass(frozen=True)
class _Job:
    url: str
    part: Path
    size: int | None
    progress: Progress
    timeout: float
    mirror: str

    @property
    def tag(self) -> Path:
        """Where the ETag stands that the part file's bytes came with."""
        return self.part.with_name(self.part.name + ".etag")

    def held(self) -> int:
        return self.part.stat().st_size if self.part.exists() else 0

    def drop(self) -> None:
        self.part.unlink(missing_ok=True)
        self.tag.unlink(missing_ok=True)


def fetch(
    url: str,
    destination: Path,
    *,
    mirror: str,
    md5: str | None = None,
    sha256: str | None = None,
    size: int | None = None,
    progress: Progress | None = None,
    attempts: int = 5,
    timeout: float = 30.0,
    pause: float = 1.0,
) -> Path:
    """Download `url` to `destination`, which is afterwards whole and right, or as it was.

    Bytes are gathered in `destination` + `.part`. A part that an earlier call or a cut connection left
    is continued from where it ends, if the server can do that and its file is still the same one.

    Args:
        url: an http or https address.
        destination: the file to make; left alone if it is there with the right checksum.
        mirror: the environment variable that may name another address, for the message.
        md5: the checksum to expect, in hex; this or `sha256`.
        sha256: likewise.
        size: the file's size in bytes, where it is known.
        progress: told of the bytes held so far.
        attempts: how many connections in a row may bring nothing new before giving up.
        timeout: seconds to wait for a server that says nothing.
        pause: seconds before the second connection, doubled before each further one.

    Returns:
        `destination`.

    Raises:
        UserError: no connection, a refusal by the server, wrong bytes, or a disk that cannot be written.
    """
    kind, wanted = ("sha256", sha256) if sha256 is not None else ("md5", md5)
    assert wanted is not None, "fetch needs a checksum"
    _check_address(url)
    part = destination.with_name(destination.name + ".part")
    job = _Job(url, part, size, progress or (lambda done, total: None), timeout, mirror)
    try:
        destination.parent.mkdir(parents=True, exist_ok=True)
        with only_one(part):
            if destination.exists() and _checksum(destination, kind) == wanted:
                return destination
            resumed = job.held() > 0
            _gather(job, attempts, pause)
            came = _checksum(part, kind)
            if came != wanted and resumed:
                # The old part may be of another file: one more time, from the start.
                job.drop()
                _gather(job, attempts, pause)
                came = _checksum(part, kind)
            if came != wanted:
                job.drop()
                raise UserError(
                    f"{url}: wanted a file of {kind} {wanted}, got {came}; the download was removed. "
                    "Try again later, or fetch the file by other means and name its folder with --data."
                )
            os.replace(part, destination)
            job.tag.unlink(missing_ok=True)
            return destination
    except OSError as error:
        raise UserError(
            f"{destination}: cannot be written ({error.strerror or error}). "
            "Free some space, or name another cache folder in DEPTHSCOPE_CACHE."
        ) from error


def _check_address(url: str) -> None:
    """Refuse what is not HTTP: `urlopen` would also open local files."""
    try:
        parts = urllib.parse.urlsplit(url)
        good = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        good = False
    if not good:
        raise UserError(f"{url}: wanted an address that starts with http:// or https:// and names a host.")


@contextlib.contextmanager
def only_one(path: Path) -> Iterator[None]:
    """Hold `path` + `.lock`: a second process waits here. On Windows there is no lock and both go on."""
    with open(path.with_name(path.name + ".lock"), "w") as file:
        if sys.platform != "win32":
            import fcntl

            fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _gather(job: _Job, attempts: int, pause: float) -> None:
    """Connect until the part file is whole. Network faults end here; faults of the disk go up as OSError."""
    farthest, idle = job.held(), 0
    while True:
        try:
            _connect_once(job)
            return
        except _CutError as cut:
            held = job.held()
            # Counted against the farthest point ever reached: a server that cannot resume starts at 0 each time.
            idle = 0 if held > farthest else idle + 1
            farthest = max(farthest, held)
            if idle >= attempts:
                raise UserError(
                    f"{job.url}: the download broke off at {held:,} bytes ({cut}). Check the connection and run the "
                    "same command again (it goes on from there), or name a folder that holds the data with --data."
                ) from cut
            time.sleep(pause * 2 ** max(idle - 1, 0))


def _connect_once(job: _Job) -> None:
    held = job.held()
    if job.size is not None and held >= job.size:
        if held == job.size:
            return
        job.drop()
        held = 0
    request = urllib.request.Request(job.url, headers={"User-Agent": "depthscope", "Accept-Encoding": "identity"})
    if held:
        request.add_header("Range", f"bytes={held}-")
        if job.tag.exists():
            # Without the same file to continue, the server is to send the new one whole.
            request.add_header("If-Range", job.tag.read_text(encoding="latin-1"))
    try:
        response = urllib.request.urlopen(request, timeout=job.timeout)
    except urllib.error.HTTPError as error:
        with error:
            _refused(job, error, held)
        return
    except (OSError, http.client.HTTPException) as error:
        raise _CutError(getattr(error, "reason", None) or error) from error
    with response:
        start = 0
        if response.status == 206:
            start, total = _content_range(response.headers.get("Content-Range", ""))
            if start != held:
                job.drop()
                raise _CutError(f"the server sent bytes from {start:,}, not from {held:,}")
        else:
            length = response.headers.get("Content-Length")
            total = int(length) if length and length.isdigit() else None
        if job.size is not None and total not in (None, job.size):
            job.drop()
            raise UserError(
                f"{job.url}: wanted a file of {job.size:,} bytes, the server offers {total:,}. "
                "Is a login page in between? Or name a folder that holds the data with --data."
            )
        etag = response.headers.get("ETag", "")
        _receive(job, response, start, job.size if job.size is not None else total, etag)


def _refused(job: _Job, error: urllib.error.HTTPError, held: int) -> None:
    """An answer that is an error: done already (returns), come again (`_CutError`), or final (`UserError`)."""
    if error.code == 416 and held:
        # Asked for bytes past the end. Either the part is whole, or it is of another file.
        total = error.headers.get("Content-Range", "").rpartition("/")[2]
        if total == str(held):
            return
        job.drop()
        raise _CutError("the part file was longer than the file; starting again")
    if error.code in RETRIED_CODES:
        raise _CutError(f"the server answers {error.code} {error.reason}") from error
    raise UserError(
        f"{job.url}: the server answers {error.code} {error.reason}. "
        f"Name a mirror in {job.mirror}, or a folder that holds the data with --data."
    ) from error


def _content_range(header: str) -> tuple[int, int | None]:
    """First byte and whole size in `bytes 5-9/10`; -1 where the header makes no sense."""
    found = re.fullmatch(r"bytes (\d+)-\d+/(\d+|\*)", header.strip())
    if not found:
        return -1, None
    return int(found[1]), None if found[2] == "*" else int(found[2])


def _receive(job: _Job, response: http.client.HTTPResponse, start: int, total: int | None, etag: str) -> None:
    with open(job.part, "ab" if start else "wb") as file:
        if not start:
            job.tag.unlink(missing_ok=True)
            if etag and not etag.startswith("W/"):  # a weak tag promises no equal bytes
                job.tag.write_text(etag, encoding="latin-1")
        done = start
        job.progress(done, total)
        while chunk := _chunk(response):
            done += len(chunk)
            if total is not None and done > total:
                break
            file.write(chunk)
            job.progress(done, total)
        _flush(file)
    if total is not None and done > total:
        job.drop()
        raise UserError(f"{job.url}: the server sends more than the {total:,} bytes of the file. Try again later.")
    if total is not None and done < total:
        raise _CutError(f"{total - done:,} bytes are missing")


def _chunk(response: http.client.HTTPResponse) -> bytes:
    try:
        # read1 gives what has arrived; read would lose it if the connection broke before CHUNK bytes.
        return response.read1(CHUNK)
    except (OSError, http.client.HTTPException) as error:
        raise _CutError(error) from error


def _flush(file: BinaryIO) -> None:
    file.flush()
    os.fsync(file.fileno())


def _checksum(path: Path, kind: str) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, lambda: hashlib.new(kind, usedforsecurity=False)).hexdigest()
