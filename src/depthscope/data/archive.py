"""CIFAR-10 from its official address into the cache."""

from __future__ import annotations

import contextlib
import hashlib
import os
import tarfile
import zlib
from pathlib import Path

from depthscope.core.errors import UserError
from depthscope.core.files import write_bytes
from depthscope.data import cifar10_facts as facts
from depthscope.data.cache import cache_dir
from depthscope.data.fetch import Progress, fetch, only_one
from depthscope.data.search import damaged
from depthscope.data.sources import OfficialFolder

URL_VARIABLE = "DEPTHSCOPE_CIFAR10_URL"


def downloaded_folder() -> OfficialFolder | None:
    """The official folder that an earlier download left in the cache; None where it is missing or damaged."""
    source = OfficialFolder(cache_dir() / facts.OFFICIAL_FOLDER)
    with contextlib.suppress(UserError):
        source.verify()
        return source
    return None


def download(progress: Progress | None = None) -> OfficialFolder:
    """The official folder in the cache, downloaded if it is not there whole.

    The address is the official one, or the mirror that the environment variable DEPTHSCOPE_CIFAR10_URL
    names; the checksums are the same for either. A second process that asks meanwhile waits for the first.

    Raises:
        UserError: see `fetch`; or the cache cannot be written.
    """
    folder = cache_dir()
    url = os.environ.get(URL_VARIABLE) or facts.ARCHIVE_URL
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with only_one(folder / facts.OFFICIAL_FOLDER):
            there = downloaded_folder()
            if there is not None:
                return there
            archive = folder / "cifar-10-python.tar.gz"
            fetch(url, archive, mirror=URL_VARIABLE, md5=facts.ARCHIVE_MD5, size=facts.ARCHIVE_SIZE, progress=progress)
            extract(archive, folder / facts.OFFICIAL_FOLDER)
            archive.unlink()
    except OSError as error:
        raise UserError(
            f"{folder}: cannot be written ({error.strerror or error}). "
            "Free some space, or name another cache folder in DEPTHSCOPE_CACHE."
        ) from error
    return OfficialFolder(folder / facts.OFFICIAL_FOLDER)


def extract(archive: Path, folder: Path) -> None:
    """The seven official files out of `archive` into `folder`, each checked before it is written.

    Nothing is unpacked by the name that the archive gives it: of its members, only regular files of an
    expected name and size are read, and each goes to a place of our choosing. The rest is passed over.

    Raises:
        UserError: a file is missing or not the official one, or the archive is damaged.
        OSError: a file cannot be written.
    """
    missing = dict(facts.OFFICIAL_FILES)
    try:
        with tarfile.open(archive, "r:gz") as tar:
            for member in tar:
                top, _, name = member.name.removeprefix("./").partition("/")
                if top != facts.OFFICIAL_FOLDER or name not in missing or not member.isreg():
                    continue
                size, md5 = missing.pop(name)
                file = tar.extractfile(member)
                content = file.read(size + 1) if file is not None else b""
                came = hashlib.md5(content, usedforsecurity=False).hexdigest()
                if came != md5:
                    raise damaged(f"{archive}: {name}", f"md5 {md5}", came)
                _write(folder / name, content)
    except (tarfile.TarError, EOFError, zlib.error) as error:
        raise damaged(archive, "a whole tar.gz archive", f"a damaged one ({error})") from error
    if missing:
        raise damaged(archive, f"an archive that holds {', '.join(missing)}", "one without")


def _write(path: Path, content: bytes) -> None:
    try:
        write_bytes(path, content)
    except UserError as error:
        # Its mend speaks of --out, which has no say here.
        if isinstance(error.__cause__, OSError):
            raise error.__cause__ from None
        raise
