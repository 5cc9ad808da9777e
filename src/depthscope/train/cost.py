"""What a run costs: parameters, FLOPs and memory, counted on the network itself."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path

from depthscope.study.run import RunSpec
from depthscope.train.build import resolve, target_of
from depthscope.train.memory import DataShape, Memory, numpy_memory, torch_memory
from depthscope.train.shapes import data_shape


@dataclass(frozen=True, kw_only=True)
class Cost:
    """Counts of one run.

    Attributes:
        parameters: trained numbers.
        forward_flops: of one example's forward pass (a multiply and an add are two); None where not counted.
        examples: examples seen in training (updates x batch).
        num_steps: updates.
        memory: of the runs that are trained side by side.
        group: how many those are.
    """

    parameters: int
    forward_flops: int | None
    examples: int
    num_steps: int
    memory: Memory
    group: int = 1

    @property
    def train_flops(self) -> float | None:
        """Of the whole training: a backward pass costs about two forward passes."""
        return None if self.forward_flops is None else 3.0 * self.forward_flops * self.examples


def cost(spec: RunSpec, root: Path | None = None, *, group: int = 1) -> Cost:
    """The cost of a run.

    A network of the catalogue is built on the meta device, where it has shapes and no memory, and counts
    itself; one of the user's is built and fed two examples. Data of the user's is loaded, for its shapes.

    Args:
        spec: the run.
        root: folder of the real data, for data sets of the user's that want it.
        group: runs that differ only in their seed.

    Raises:
        MissingDependencyError: the run needs torch, and it is not installed.
        UserError: user code that cannot be found or does not fit.
    """
    data = data_shape(spec, root)
    return _torch_cost(spec, data) if spec.backend == "torch" else _numpy_cost(spec, data, group)


def _torch_cost(spec: RunSpec, data: DataShape) -> Cost:
    resolve(target_of("family", spec.family, "torch"))
    from depthscope.train.count import count_passes, network_of

    model, x = network_of(spec, data)
    passes = count_passes(model, x)
    num_steps, examples = _length(spec, data)
    return Cost(
        parameters=sum(parameter.numel() for parameter in model.parameters()),
        forward_flops=passes.flops,
        examples=examples,
        num_steps=num_steps,
        memory=torch_memory(spec, data, model, passes.saved, passes.largest),
    )


def _numpy_cost(spec: RunSpec, data: DataShape, group: int) -> Cost:
    from depthscope.lab.forms import forward_flops, parameter_shapes
    from depthscope.train.laboratory import form_of

    form = form_of(spec, data)
    shapes = parameter_shapes(form)
    num_steps, examples = _length(spec, data)
    return Cost(
        parameters=sum(math.prod(shape) for shape in shapes.values()),
        forward_flops=forward_flops(form),
        examples=examples,
        num_steps=num_steps,
        memory=numpy_memory(spec, data, shapes, form, group),
        group=group,
    )


def _length(spec: RunSpec, data: DataShape) -> tuple[int, int]:
    """(updates, examples seen) of the whole training."""
    batch = min(spec.batch_size or data.num_train, data.num_train)
    if spec.steps is not None:
        return spec.steps, spec.steps * batch
    epochs = spec.epochs or 0
    return epochs * -(-data.num_train // batch), epochs * data.num_train
