"""What a measurement must not move although it lives outside the model: generators and modes."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import torch


def set_generator(device: torch.device | str, seed: int) -> None:
    """Put torch's global generator of a device at `seed`; on a CPU that alone, without those of the GPUs beside it."""
    if torch.device(device).type == "cpu":
        torch.default_generator.manual_seed(seed)
    else:
        torch.manual_seed(seed)


@contextmanager
def undisturbed(device: torch.device) -> Iterator[None]:
    """Run a block with gradients on and autocast off; put every global generator back after it.

    Generators: torch's on the CPU and on `device`, NumPy's legacy global one, Python's. They are put
    back after an exception too, and so are the modes.

    Args:
        device: where the block computes.
    """
    python_state = random.getstate()
    numpy_state = np.random.get_state()  # noqa: NPY002 - other people's models may draw from it
    cuda = [device] if device.type == "cuda" else []
    try:
        with (
            torch.random.fork_rng(devices=cuda),
            torch.inference_mode(False),
            # Leaving inference mode turns gradients on in today's torch; it does not promise to.
            torch.enable_grad(),
            torch.autocast(device.type, enabled=False),
        ):
            yield
    finally:
        random.setstate(python_state)
        np.random.set_state(numpy_state)  # noqa: NPY002 - see above
