"""What training takes of memory: counted on the network itself, by part.

Not in it: the interpreter and its libraries (some 100 MB with NumPy alone, 300 to 500 MB with torch), what a
kernel needs while it works, the probes of the user's, and the gradient check.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from depthscope.data.dataset import Dataset, Task
from depthscope.study.run import RunSpec
from depthscope.train.twin import eval_batch, probe_batch


@dataclass(frozen=True, kw_only=True)
class Memory:
    """Bytes that runs trained side by side hold at their fullest.

    Attributes:
        weights: parameters and buffers; in the laboratory also the initial tensors, which are kept.
        gradients: of the parameters.
        optimizer: what it remembers.
        activations: of the fullest moment: a training batch's saved for the backward pass and the gradients on their
            way, or what `layers` keeps of its own batch in float64, or an evaluation's.
        copies: the float64 copy of weights and gradients in which `layers` is measured.
        data: the data set, and its splits as the engine takes them.
    """

    weights: int
    gradients: int
    optimizer: int
    activations: int
    copies: int
    data: int

    @property
    def total(self) -> int:
        """All parts together."""
        return self.weights + self.gradients + self.optimizer + self.activations + self.copies + self.data


@dataclass(frozen=True, kw_only=True)
class DataShape:
    """What of a data set decides counts.

    Attributes:
        input_shape: of one example.
        output_shape: what a network gives for it: [K], or [T, K] where each position is asked.
        num_train: training examples.
        num_held: examples of the other splits.
        itemsize: bytes of one input as the data set holds it.
        num_tokens: size of the vocabulary; 0 where the inputs are no tokens.
        task: what is asked.
    """

    input_shape: tuple[int, ...]
    output_shape: tuple[int, ...]
    num_train: int
    num_held: int
    itemsize: int
    num_tokens: int = 0
    task: Task = "classification"

    @classmethod
    def of(cls, data: Dataset) -> DataShape:
        """That of a data set that is loaded."""
        asked = data.train.y.shape[1:] if data.task == "classification" else ()
        return cls(
            input_shape=tuple(data.train.x.shape[1:]),
            output_shape=(*asked, data.num_outputs),
            num_train=len(data.train),
            num_held=sum(len(split) for split in (data.validation, data.test) if split is not None),
            itemsize=data.train.x.itemsize,
            num_tokens=data.num_tokens,
            task=data.task,
        )

    @property
    def num_outputs(self) -> int:
        """Classes, or targets."""
        return self.output_shape[-1]

    @property
    def num_answers(self) -> int:
        """Numbers that the data set holds of one example's answers: its labels, or targets."""
        return math.prod(self.output_shape[:-1]) if self.task == "classification" else self.num_outputs

    @property
    def example(self) -> int:
        """Numbers in one example."""
        return int(np.prod(self.input_shape))

    @property
    def num_bytes(self) -> int:
        """Of the data set's own arrays, answers included."""
        return (self.num_train + self.num_held) * (self.example * self.itemsize + 8 * self.num_answers)


BASIS = 32
"""Vectors that the search for the Hessian's ends keeps: `probes.curvature.extremes.BASIS`, in a room with torch."""

_SLOTS = {"adam": 2, "adamw": 2, "sgd": 1}
"""Numbers that torch's optimisers remember of each parameter."""


def torch_memory(spec: RunSpec, data: DataShape, model: Any, saved: int | None, largest: int) -> Memory:
    """Of one run in torch.

    Args:
        spec: the run.
        data: its data.
        model: the module.
        saved: bytes that one example's forward pass saves for the backward pass, in float32; None where unknown.
        largest: bytes of the largest of those tensors.
    """
    size = 8 if spec.precision == "float64" else 4
    parameters = sum(each.numel() for each in model.parameters())
    tensors = parameters + sum(each.numel() for each in model.buffers())
    slots = _SLOTS.get(spec.optimizer, 1)
    if spec.optimizer == "sgd" and not spec.optimizer_options.get("momentum"):
        slots = 0
    num = data.num_train + data.num_held
    # Behind autocast most of what is saved is half as wide; what stays in float32 makes this an upper bound.
    width = {"float64": 2.0, "float32": 1.0, "bfloat16": 1.0}[spec.precision]
    batch = min(spec.batch_size or data.num_train, data.num_train)
    per_example = width * ((saved or 0) + 2 * largest)  # in the backward pass a gradient comes in as one goes out
    layers, sharpness = "layers" in spec.measures, "sharpness" in spec.measures
    # An evaluation keeps nothing: a block's input, and the input and the output of the two layers at work.
    phases = [per_example * batch, width * 4 * largest * eval_batch(spec, num)]
    if layers:
        phases.append(2.0 * ((saved or 0) + 2 * largest) * probe_batch(spec, data.num_train))
    if sharpness:
        # The backward pass is kept to be differentiated again: 2.8 times what a training pass holds, measured.
        phases.append(3 * max(width, 1.0) * ((saved or 0) + 2 * largest) * probe_batch(spec, data.num_train))
    padded = 0
    if spec.augment == "crop_flip" and len(data.input_shape) == 3:
        channels, height, across = data.input_shape
        padded = data.num_train * channels * (height + 2 * spec.padding) * (across + 2 * spec.padding)
    return Memory(
        weights=tensors * size,
        gradients=parameters * size,
        optimizer=slots * parameters * size,
        activations=int(max(phases)),
        # Lanczos' vectors are float64 on whatever device.
        copies=8 * (tensors + parameters) * layers + 8 * (BASIS + 4) * parameters * sharpness,
        data=data.num_bytes + size * padded + num * _taken(data, size),
    )


def _taken(data: DataShape, size: int) -> int:
    """Bytes of one example as an engine takes it, with its answers: tokens and labels are integers of 8."""
    inputs = 8 if data.num_tokens else size
    return inputs * data.example + (8 if data.task == "classification" else size) * data.num_answers


def numpy_memory(
    spec: RunSpec, data: DataShape, shapes: Mapping[str, tuple[int, ...]], form: Any, group: int
) -> Memory:
    """Of `group` runs trained side by side in the laboratory.

    Args:
        spec: one of the runs.
        data: its data.
        shapes: parameter name -> shape.
        form: the network's form.
        group: seeds side by side.
    """
    from depthscope.lab.forms import as_input, init_params, make_network
    from depthscope.lab.measure import gradients

    size = 8 if spec.precision == "float64" else 4
    parameters = group * sum(int(np.prod(shape)) for shape in shapes.values())
    # Buffers are proportional to the examples: counted on two.
    params = init_params(form, [0], init=spec.init)
    x = np.zeros((1, 2, *data.input_shape), np.int64 if data.num_tokens else np.float64)
    kept, _ = gradients(form, params, x, np.zeros((1, 2, *data.output_shape[:-1]), np.int64))
    plain = make_network(form, 1, 2, np.float64)
    scores = plain.forward(params, as_input(form, x, np.float64))
    plain.backward(params, np.zeros_like(scores), {name: np.empty_like(value) for name, value in params.items()})
    num = data.num_train + data.num_held
    batch = min(spec.batch_size or data.num_train, data.num_train)
    training = plain.num_bytes // 8 * size * (group * batch // 2)
    measured = group * probe_batch(spec, data.num_train) // 2
    measuring = kept.num_bytes * measured if "layers" in spec.measures else 0
    evaluating = plain.num_bytes * group * eval_batch(spec, max(data.num_train, data.num_held)) // 2
    features_first = 0 if data.num_tokens else data.num_train * data.example * size
    return Memory(
        weights=2 * size * parameters,
        gradients=size * parameters,
        # Adam and momentum both work in a buffer of their own beside what they remember.
        optimizer=(3 if spec.optimizer == "adam" else 1) * size * parameters,
        activations=training + max(measuring, evaluating),
        copies=2 * 8 * parameters if "layers" in spec.measures else 0,
        data=group * (data.num_bytes + num * 8 * (data.example + data.num_answers) + features_first),
    )
