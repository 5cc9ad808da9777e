"""The two texts: where they are looked for, what they must be, and where they are downloaded from."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

from depthscope.core.errors import UserError
from depthscope.data.cache import cache_dir
from depthscope.data.fetch import Progress, fetch
from depthscope.data.search import SEARCH_DEPTH, damaged, file_digest, folders_in, found_in_named


@dataclass(frozen=True, kw_only=True)
class TextFile:
    """A text of which every byte is known.

    Attributes:
        files: the names that it goes by, ours first.
        url: where it is published.
        mirror: the environment variable that may name another address.
        size: bytes.
        sha256: of the content, in hex.
    """

    files: tuple[str, ...]
    url: str
    mirror: str
    size: int
    sha256: str

    def verify(self, path: Path) -> None:
        """Raise a UserError unless `path` holds this text."""
        try:
            size = path.stat().st_size
        except OSError as error:
            raise damaged(path, f"a file of {self.size:,} bytes", f"none ({error.strerror})") from error
        if size != self.size:
            raise damaged(path, f"{self.size:,} bytes", f"{size:,}")
        came = file_digest(path, "sha256")
        if came != self.sha256:
            raise damaged(path, f"sha256 {self.sha256}", came)

    def find(self, root: Path) -> Path:
        """The file in `root` or up to two folders deep, the nearest; others that have its name are passed over.

        Raises:
            UserError: there is none, or none that holds this text.
        """
        wrong: UserError | None = None
        for folder in folders_in(root, self.files[0]):
            for path in (folder / name for name in self.files):
                if path.is_file():
                    try:
                        self.verify(path)
                    except UserError as error:
                        wrong = wrong or error
                    else:
                        return path
        raise wrong or UserError(
            f"{root}: holds no {' or '.join(self.files)}, at most {SEARCH_DEPTH} folders deep; "
            "leave out --data to let Depthscope download it."
        )

    def ready(self, root: Path | None, progress: Progress | None = None) -> Path:
        """Where to read from: in `root`, in DEPTHSCOPE_DATA, or in the cache, downloaded if it is not there whole.

        Args:
            root: a folder that was named; never replaced by a download.
            progress: told of the bytes downloaded so far, and of the whole number.

        Raises:
            UserError: a named folder holds no such text; or see `fetch`.
        """
        found = found_in_named(root, self.find)
        if found is not None:
            return found
        kept = cache_dir() / "text" / self.files[0]
        with contextlib.suppress(UserError):
            self.verify(kept)
            return kept
        url = os.environ.get(self.mirror) or self.url
        return fetch(url, kept, mirror=self.mirror, sha256=self.sha256, size=self.size, progress=progress)


TEXTS: Mapping[str, TextFile] = MappingProxyType(
    {
        "shakespeare": TextFile(
            files=("tinyshakespeare.txt", "input.txt"),
            url="https://raw.githubusercontent.com/karpathy/char-rnn/master/data/tinyshakespeare/input.txt",
            mirror="DEPTHSCOPE_SHAKESPEARE_URL",
            size=1_115_394,
            sha256="86c4e6aa9db7c042ec79f339dcb96d42b0075e16b8fc2e86bf0ca57e2dc565ed",
        ),
        "names": TextFile(
            files=("names.txt",),
            url="https://raw.githubusercontent.com/karpathy/makemore/master/names.txt",
            mirror="DEPTHSCOPE_NAMES_URL",
            size=228_145,
            sha256="0a30b5557f192f32ab962680889aac5f6fda0f4cecf40a6d0b5694f58ea8cc4d",
        ),
    }
)
"""By the name of the data set that is made of it."""
