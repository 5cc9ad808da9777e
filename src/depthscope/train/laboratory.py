"""From a spec to what the NumPy laboratory works on: a form, weights, batches.

Shape letters: S seeds, B examples of a batch, T positions, V tokens.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from depthscope.core.depth import gpt2_scale
from depthscope.data.batches import order
from depthscope.data.dataset import Dataset
from depthscope.lab.forms import Form, init_params
from depthscope.lab.judge import scores
from depthscope.lab.stacks import Stack
from depthscope.lab.transformer.model import Gpt
from depthscope.study.run import RunSpec
from depthscope.train.memory import DataShape
from depthscope.train.samples import written

Array = NDArray[Any]


def form_of(spec: RunSpec, data: DataShape) -> Form:
    """The laboratory's network of a run."""
    fields: dict[str, Any] = {"shortcut": spec.shortcut, "activation": spec.activation, "norm": spec.norm}
    fields |= {"depth": spec.depth, "width": spec.width}
    if spec.family != "gpt":
        return Stack(num_inputs=data.example, num_classes=data.num_outputs, **fields)
    scale: Any = spec.norm_options.get("scale", True)
    options: Mapping[str, Any] = spec.model_options
    return Gpt(num_tokens=data.num_tokens, length=data.input_shape[0], norm_scale=scale, **fields, **options)


def params_of(specs: Sequence[RunSpec], form: Form) -> dict[str, Array]:
    """The first weights of runs that differ in their seed alone, one row a run."""
    spec = specs[0]
    return init_params(
        form,
        [each.seed for each in specs],
        init=spec.init,
        gain=spec.gain,
        stem_gain=spec.stem_gain,
        dtype=np.dtype(spec.precision),
    )


def derived_of(spec: RunSpec) -> dict[str, float]:
    """What the depth decided."""
    return {"projection_scale": gpt2_scale(2 * spec.depth)} if spec.init == "depth_scaled" else {}


class Batches:
    """Which examples each update of each run is made on: those that a run in torch would see.

    Args:
        specs: runs that differ in their seed alone.
        num_examples: of the training set.

    Attributes:
        per_epoch: updates in an epoch; the last may have fewer examples.
    """

    def __init__(self, specs: Sequence[RunSpec], num_examples: int) -> None:
        self._seeds = [spec.seed for spec in specs]
        self._num = num_examples
        self._size = min(specs[0].batch_size or num_examples, num_examples)
        self._epoch, self._order = -1, np.empty((0, 0), np.int64)
        self.per_epoch = -(-num_examples // self._size)

    def __call__(self, step: int) -> NDArray[np.int64]:
        """Positions [S, B] in the training set of the examples of update `step`, from 0."""
        epoch, at = divmod(step, self.per_epoch)
        if epoch != self._epoch:
            self._epoch, self._order = epoch, np.stack([order(seed, epoch, self._num) for seed in self._seeds])
        return self._order[:, at * self._size : (at + 1) * self._size]

    def num_seen(self, step: int) -> int:
        """Examples that the first `step` updates were made on."""
        epochs, rest = divmod(step, self.per_epoch)
        return epochs * self._num + min(rest * self._size, self._num)


def texts_of(form: Form, params: Mapping[str, Array], data: Dataset, seed: int) -> tuple[str, ...]:
    """What a trained network writes; see `samples.written`.

    Args:
        form: the network.
        params: parameter name -> its value, without the seed axis.
        data: whose tokens it writes.
        seed: the run's.
    """
    one = {name: value[None] for name, value in params.items()}

    def following(tokens_BT: NDArray[np.int64]) -> Array:
        found_VM = scores(form, one, tokens_BT[None])[0]
        return np.moveaxis(found_VM.reshape(-1, *tokens_BT.shape), 0, -1)

    return written(following, data, seed)
