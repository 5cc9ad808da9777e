"""Settings of torch under which the traced pass and the measured ones take the same way."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch


@contextmanager
def unfused() -> Iterator[None]:
    """Run `nn.TransformerEncoderLayer` and `nn.MultiheadAttention` as written.

    With everything frozen in eval mode torch runs a whole encoder layer as one operation, which hides its additions,
    and does so or not by whether the input requires a gradient: a traced and a measured pass would differ.
    """
    mha: Any = getattr(torch.backends, "mha", None)
    if mha is None:
        yield
        return
    before = mha.get_fastpath_enabled()
    mha.set_fastpath_enabled(False)
    try:
        yield
    finally:
        mha.set_fastpath_enabled(before)
