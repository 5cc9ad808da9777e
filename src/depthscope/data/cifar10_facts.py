"""What is known of CIFAR-10 in advance: sizes and checksums, so that nothing else passes for it.

Source of the images: Alex Krizhevsky, Learning Multiple Layers of Features from Tiny Images, 2009.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from types import MappingProxyType
from typing import Literal

import numpy as np
from numpy.typing import NDArray

SplitName = Literal["train", "test"]

NUM_ROWS: Mapping[SplitName, int] = MappingProxyType({"train": 50_000, "test": 10_000})
NUM_CLASSES = 10
IMAGE_SHAPE = (3, 32, 32)
ROWS_PER_FILE = 10_000
"""Images in one file of the official folder."""

ARCHIVE_URL = "https://www.cs.toronto.edu/~kriz/cifar-10-python.tar.gz"
ARCHIVE_MD5 = "c58f30108f718f92721af3b95e74349a"
ARCHIVE_SIZE = 170_498_071

OFFICIAL_FOLDER = "cifar-10-batches-py"
OFFICIAL_FILES = MappingProxyType(
    {
        "batches.meta": (158, "5ff9c542aee3614f3951f8cda6e48888"),
        "data_batch_1": (31_035_704, "c99cafc152244af753f735de768cd75f"),
        "data_batch_2": (31_035_320, "d4bba439e000b95fd0a9bffe97cbabec"),
        "data_batch_3": (31_035_999, "54ebc095f3ab1f0389bbae665268c751"),
        "data_batch_4": (31_035_696, "634d18415352ddfa80567beed471001a"),
        "data_batch_5": (31_035_623, "482c414d41f54cd18b22e5b47cb7c3cb"),
        "test_batch": (31_035_526, "40351d587109b95175f43aff81a1287e"),
    }
)
"""Each file of the official folder, with its size in bytes and its published md5."""

PARQUET_FILES: Mapping[SplitName, str] = MappingProxyType(
    {"train": "train-00000-of-00001.parquet", "test": "test-00000-of-00001.parquet"}
)
KNOWN_PARQUET = frozenset(
    {
        "9527f156e19fe94da3e40987df88a3d1c4a4e589effb9fd1998e74b9f949b122",
        "2a8ebd84c3ffa69c4964f8e7a73a3e079ac18ef0ab509935ef61b80d539f2317",
    }
)
"""SHA-256 of parquet files whose every image was compared with the official files before."""

BLOCK = 1000
"""Images under one digest of `BLOCK_DIGESTS`."""

_TRAIN_DIGESTS = """
0f266ad90f33ac09 819bfd2c18812fd2 a7d2de55ab2f0e27 906d60306cd22a4c 3b6c03647509aab2
5b814aee7ea26974 f778da0b48b8ca9a 1382cfcac3202edf 05ca655620faf07a d095fc2e84596227
c29ea9e9186733af d294d4e5ee4d2f56 9845b61eed17b732 c70e63c0f6e6a2f8 e0bdd7e4368a49db
f1e88e2aeb9e709d b9084e7a73462882 9632ef862d14c5df 5bcb91874fc0c669 14e1b50234002531
55a15e17441138c6 2916f44d4504941b c8f5a52351ad2ee4 46920fb1188097c3 ec70d94b5c014806
30947979215b925f 8fbf8927c2a325a1 536e1bbd30dec3ff b638f387fa7ac31f 0b7f664979558ff1
8cb7b445c3c8249d 23b7d271d67d236b f812d8d20aebd389 04981115e980b1a0 27935aa61f7b656a
7b9fd7e239be6321 4586e921bdc0ca07 69eff773adf692ad ff8df16161bb811e 848cd1e75ca019a0
a3a4daabb39441b7 e66b09d2dd293157 fa2705fd75b8509d 645d1f4301692b58 5615a05f45bc8dcb
f38a40be3ba9d2e4 c6dadfae7517d3a1 8bb18d494e040fb0 749f6b1b31965670 0b65e84cbe0ed894
"""
_TEST_DIGESTS = """
2c7f1e2769a741f6 d9e60396755bdddc 0d2a3409272199cb 9ea667a5225a25ab ff72913986f36bb5
dfb3663ff3922a27 1de770cd6874bbae 265e501dfc407447 7a0b4fbe0189169a 6b137bf30786b271
"""
BLOCK_DIGESTS: Mapping[SplitName, tuple[str, ...]] = MappingProxyType(
    {"train": tuple(_TRAIN_DIGESTS.split()), "test": tuple(_TEST_DIGESTS.split())}
)
"""First 16 hex digits of the SHA-256 of each 1,000 images (uint8 `[1000, 3, 32, 32]`) then their labels (uint8).

They tell official content from any other whatever file it came in, and without reading all of it.
Taken from the official files, whose md5 was checked.
"""


def block_digest(x: NDArray[np.uint8], y: NDArray[np.integer]) -> str:
    """The digest of one block, `[BLOCK, 3, 32, 32]` with labels `[BLOCK]`, as in `BLOCK_DIGESTS`."""
    content = hashlib.sha256(np.ascontiguousarray(x).data)
    content.update(y.astype(np.uint8).tobytes())
    return content.hexdigest()[:16]


def wrong_block(split: SplitName, x: NDArray[np.uint8], y: NDArray[np.integer], first: int = 0) -> int | None:
    """First row of the first block that is not the official one, None where all are.

    Args:
        split: which split the rows are of.
        x: images, uint8 `[N, 3, 32, 32]`, N a multiple of `BLOCK`.
        y: labels `[N]`.
        first: row of the split that x starts at, a multiple of `BLOCK`.
    """
    assert len(x) % BLOCK == 0, f"{len(x)} rows are not whole blocks"
    assert first % BLOCK == 0, f"row {first} starts no block"
    for start in range(0, len(x), BLOCK):
        end = start + BLOCK
        if block_digest(x[start:end], y[start:end]) != BLOCK_DIGESTS[split][(first + start) // BLOCK]:
            return first + start
    return None


def whole_blocks(num_rows: int) -> int:
    """`num_rows` rounded up to whole blocks.

    >>> whole_blocks(1), whole_blocks(1000), whole_blocks(1001)
    (1000, 1000, 2000)
    """
    return -(-num_rows // BLOCK) * BLOCK
