"""Settings of torch under which a run gives the same bits on every run of one device."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import torch


@contextlib.contextmanager
def exact(threads: int) -> Iterator[None]:
    """The same bits on every run of one device, and float32 that means float32; the caller's settings come back."""
    cudnn, matmul = torch.backends.cudnn, torch.backends.cuda.matmul
    before = (torch.get_num_threads(), cudnn.benchmark, cudnn.deterministic, cudnn.allow_tf32, matmul.allow_tf32)
    generator = torch.get_rng_state()  # which a model may draw from
    torch.set_num_threads(threads)
    cudnn.benchmark, cudnn.deterministic, cudnn.allow_tf32, matmul.allow_tf32 = False, True, False, False
    try:
        yield
    finally:
        torch.set_num_threads(before[0])
        torch.set_rng_state(generator)
        cudnn.benchmark, cudnn.deterministic, cudnn.allow_tf32, matmul.allow_tf32 = before[1:]
