"""What a run costs: parameters and FLOPs, counted on the network itself."""

from __future__ import annotations

from dataclasses import dataclass

from depthscope.study.run import RunSpec
from depthscope.train.build import resolve, target_of


@dataclass(frozen=True, kw_only=True)
class Cost:
    """Counts of one run.

    Attributes:
        parameters: trained numbers.
        forward_flops: of one example's forward pass (a multiply and an add are two); None where not counted.
        examples: examples seen in training (updates x batch).
    """

    parameters: int
    forward_flops: int | None
    examples: int

    @property
    def train_flops(self) -> float | None:
        """Of the whole training: a backward pass costs about two forward passes."""
        return None if self.forward_flops is None else 3.0 * self.forward_flops * self.examples


def cost(spec: RunSpec) -> Cost | None:
    """The cost of a run; None where it cannot be told without loading a data set of the user's own.

    A torch network is built on the meta device, where it has shapes and no memory, and counts itself.

    Raises:
        MissingDependencyError: the run needs torch, and it is not installed.
    """
    if spec.data not in ("cifar10", "images", "spiral"):
        return None
    return _torch_cost(spec) if spec.backend == "torch" else _numpy_cost(spec)


_CHANNELS, _CLASSES = 3, 10
"""Of the built-in image sets."""


def _torch_cost(spec: RunSpec) -> Cost:
    family = resolve(target_of("family", spec.family, "torch"))
    import torch
    from torch.utils.flop_counter import FlopCounterMode

    size, num_train, held_out = (_option(spec, name) for name in ("image_size", "num_train", "validation"))
    with torch.device("meta"):
        model = family(
            depth=spec.depth,
            width=spec.width,
            shortcut=spec.shortcut,
            num_inputs=_CHANNELS,
            num_classes=_CLASSES,
            **spec.model_options,
        )
        counter = FlopCounterMode(display=False)
        with counter, torch.no_grad():
            model(torch.empty(2, _CHANNELS, size, size))
    return Cost(
        parameters=sum(parameter.numel() for parameter in model.parameters()),
        forward_flops=counter.get_total_flops() // 2,
        examples=_examples(spec, num_train - held_out),
    )


def _numpy_cost(spec: RunSpec) -> Cost:
    from depthscope.lab.stacks import parameter_shapes
    from depthscope.train.numpy_loop import stack_of

    arms = _option(spec, "arms")
    shapes = parameter_shapes(stack_of(spec, num_inputs=2, num_classes=arms)).values()
    sizes = [shape[0] * (shape[1] if len(shape) == 2 else 1) for shape in shapes]
    products = 2 * sum(shape[0] * shape[1] for shape in shapes if len(shape) == 2)
    num_train = arms * _option(spec, "points_per_arm") - _option(spec, "validation")
    return Cost(parameters=sum(sizes), forward_flops=products, examples=_examples(spec, num_train))


def _option(spec: RunSpec, name: str) -> int:
    return int(str(spec.data_options.get(name, 0)))


def _examples(spec: RunSpec, num_train: int) -> int:
    if spec.steps is not None:
        return spec.steps * min(spec.batch_size or num_train, num_train)
    return (spec.epochs or 0) * num_train
