"""Batches for torch: order, crops and flips as batched tensor operations, on the training device.

Shape letters: B batch.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import torch
from torch import Tensor

from depthscope.data.batches import augmentation, augmentation_digest, order, order_digest
from depthscope.data.dataset import Dataset, Split
from depthscope.study.run import RunSpec
from depthscope.train.augment import Windows
from depthscope.train.twin import is_twin


class Feed:
    """A data set on a device, as the run's network takes it; see `taken`.

    Args:
        data: see `data.dataset.Split`.
        spec: names the batch size, the augmentation and the seed of its draws.
        device: where the tensors live.
        dtype: of what is of floating point: inputs that are no tokens, and targets.
    """

    def __init__(self, data: Dataset, spec: RunSpec, device: str, dtype: torch.dtype) -> None:
        self._spec = spec
        self._device = device
        self._data = data
        self._dtype = dtype
        self.num_examples = len(data.train)
        self.batch_size = min(spec.batch_size or self.num_examples, self.num_examples)
        self.train = self._tensors(data.train)
        self.validation = self._tensors(data.validation) if data.validation is not None else None
        self.test = self._tensors(data.test) if data.test is not None else None
        pad = spec.padding
        # After normalisation, so that the border is the data set's mean colour.
        self._windows: Windows | None = None
        if spec.augment == "crop_flip":
            x = self.train[0]
            self._windows = Windows(torch.nn.functional.pad(x, (pad,) * 4), x.shape[-2], x.shape[-1])

    def _tensors(self, split: Split) -> tuple[Tensor, Tensor]:
        x, y = taken(self._spec, self._data, split)
        return self._cast(x).to(self._device), self._cast(y).to(self._device)

    def _cast(self, values: Tensor) -> Tensor:
        return values.to(self._dtype) if values.is_floating_point() else values

    @property
    def steps_per_epoch(self) -> int:
        """Batches in an epoch; the last may be smaller."""
        return -(-self.num_examples // self.batch_size)

    def num_seen(self, batches: int) -> int:
        """Examples in the first batches of an epoch."""
        return min(batches * self.batch_size, self.num_examples)

    def digests(self, num_steps: int) -> dict[str, str | None]:
        """Those of the draws of all epochs that so many updates begin, as `Digests` has them."""
        seed, num, epochs = self._spec.seed, self.num_examples, -(-num_steps // self.steps_per_epoch)
        augmented = self._windows is not None
        return {
            "order": order_digest(seed, epochs, num),
            "augment": augmentation_digest(seed, epochs, num, self._spec.padding) if augmented else None,
        }

    def epoch(self, epoch: int, first: int = 0) -> Iterator[tuple[Tensor, Tensor]]:
        """(x, y) of each batch of an epoch from batch `first` on, in the epoch's order and with its augmentation.

        The draws are those of the whole epoch, so a batch is the same wherever one begins.
        """
        x, y = self.train
        seed, num = self._spec.seed, self.num_examples
        chosen = torch.from_numpy(order(seed, epoch, num)).to(self._device)
        draws = None
        if self._windows is not None:
            dy, dx, flip = augmentation(seed, epoch, num, self._spec.padding)
            draws = tuple(torch.from_numpy(each).to(self._device) for each in (dy, dx, flip))
        for start in range(first * self.batch_size, num, self.batch_size):
            batch = chosen[start : start + self.batch_size]
            if draws is None or self._windows is None:
                yield x[batch], y[batch]
            else:
                yield self._windows.take(batch, *(each[batch] for each in draws)), y[batch]


def taken(spec: RunSpec, data: Dataset, split: Split, num: int | None = None) -> tuple[Tensor, Tensor]:
    """(x, y) of the first `num` examples of a split (None: all), as the run's network takes them.

    x is normalised by the training split's mean and standard deviation, in float32, where the data set is `normalised`;
    for a family that the laboratory has too it is left as it is, in the data set's own precision.
    """
    if is_twin(spec) or not data.normalised:
        return torch.from_numpy(np.array(split.x[:num])), torch.from_numpy(np.array(split.y[:num]))
    shape = (1, -1) + (1,) * (data.train.x.ndim - 2)
    mean = torch.from_numpy(data.mean.astype(np.float32)).reshape(shape)
    std = torch.from_numpy(np.where(data.std > 0, data.std, 1).astype(np.float32)).reshape(shape)
    x = torch.from_numpy(np.ascontiguousarray(split.x[:num]))
    return (x.to(torch.float32) - mean) / std, torch.from_numpy(np.array(split.y[:num]))
