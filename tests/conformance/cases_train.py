"""Clipping, on the gradients of a small network of every kind of tensor, against NumPy in float64, unit by unit."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from tests.conformance.case import Case
from torch import Tensor, nn

from depthscope.core.profile import Point
from depthscope.study.run import RunSpec
from depthscope.train import clip
from depthscope.train.clip import clipper

Array = NDArray[Any]


class Net(nn.Module):
    """Kernels, a linear weight, biases, scales, a scalar, gains kept as [out, 1, 1, 1], and a head of two tensors."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(3, 5, 3, bias=False)
        self.narrow = nn.Conv2d(5, 2, 1)
        self.bn = nn.BatchNorm2d(5)
        self.a = nn.Parameter(torch.zeros(()))
        self.gain = nn.Parameter(torch.ones(5, 1, 1, 1))
        self.linear = nn.Linear(7, 4)
        self.head = nn.Linear(4, 3)

    def points(self) -> tuple[Point, ...]:
        return tuple(
            Point(layer=each, kind="linear", weight=f"{each}.weight", output=each) for each in ("conv", "head")
        )


def made(scale: float) -> tuple[Net, dict[str, Array], dict[str, Array]]:
    """(the network, its weights, its gradients), drawn; units of the first kernel have weights of 0 to 1e-1."""
    rng = np.random.default_rng(5)
    net = Net()
    weights: dict[str, Array] = {}
    gradients: dict[str, Array] = {}
    for name, parameter in net.named_parameters():
        weights[name] = np.asarray(rng.normal(size=tuple(parameter.shape)), np.float32)
        # Some rows far below the bound and some far above it.
        rows = 10.0 ** rng.uniform(-6, 1, size=(*parameter.shape[:1], *[1] * (parameter.ndim - 1)))
        gradients[name] = np.asarray(scale * rows * rng.normal(size=tuple(parameter.shape)), np.float32)
    weights["conv.weight"] *= np.array([0, 1e-5, 1e-3, 1e-2, 1e-1], np.float32).reshape(-1, 1, 1, 1)
    weights["a"] = np.zeros_like(weights["a"])
    with torch.no_grad():
        for name, parameter in net.named_parameters():
            parameter.copy_(torch.from_numpy(weights[name]))
            parameter.grad = torch.tensor(gradients[name])
    return net, weights, gradients


def clipped(net: Net, name: str, **options: float) -> dict[str, Array]:
    fields = {"backend": "torch", "family": "cifar_resnet", "depth": 8, "width": 4, "activation": "relu"}
    fields |= {"norm": "batch", "init": "he_fan_in", "data": "images", "steps": 1}
    act = clipper(RunSpec.model_validate({**fields, "clip": name, "clip_options": options}), net)
    assert act is not None
    act()
    return {each: parameter.grad.numpy() for each, parameter in net.named_parameters() if parameter.grad is not None}


def close(measured: dict[str, Array], expected: dict[str, Array]) -> None:
    assert measured.keys() == expected.keys()
    for name, value in expected.items():
        np.testing.assert_allclose(measured[name], value, rtol=3e-6, err_msg=name)


def check_norm() -> None:
    """Together, in every tensor alike, and not at all where the joint norm is within bounds."""
    for scale, bound in ((1.0, 0.5), (1e-3, 1e3)):
        net, _, gradients = made(scale)
        joint = np.sqrt(sum((each.astype(np.float64) ** 2).sum() for each in gradients.values()))
        factor = min(1.0, bound / (joint + 1e-6))
        assert (factor < 1) == (bound == 0.5)
        close(clipped(net, "norm", max_norm=bound), {name: factor * each for name, each in gradients.items()})


def agc_naive(w: Array, g: Array, factor: float, eps: float) -> Array:
    """One unit."""
    w, g = w.astype(np.float64), g.astype(np.float64)
    most = factor * max(np.sqrt((w**2).sum()), eps)
    size = np.sqrt((g**2).sum())
    return g * (most / max(size, 1e-6)) if size > most else g


def check_adaptive() -> None:
    """Unit by unit; at gradients of 1e25 too, whose squares float32 does not hold."""
    whole = ("bn.weight", "bn.bias", "a", "gain", "narrow.bias", "linear.bias")
    for scale, factor, eps in ((1.0, 0.01, 1e-3), (1.0, 0.3, 0.05), (1e25, 0.01, 1e-3), (1e-4, 1e-4, 1e-3)):
        net, weights, gradients = made(scale)
        expected: dict[str, Array] = {}
        for name, gradient in gradients.items():
            w = weights[name]
            if name.startswith("head."):
                expected[name] = gradient
            elif name in whole:
                expected[name] = agc_naive(w, gradient, factor, eps)
            else:
                expected[name] = np.stack([agc_naive(a, b, factor, eps) for a, b in zip(w, gradient, strict=True)])
        changed = [expected[name] != gradients[name] for name in ("conv.weight", "linear.weight")]
        assert scale == 1e25 or not all(each.all() for each in changed), "some unit is within its bound"
        assert any(each.any() for each in changed), "some unit is not"
        close(clipped(net, "agc", factor=factor, eps=eps), expected)


def swapped(name: str, other: Callable[..., Any]) -> Callable[[pytest.MonkeyPatch], None]:
    return lambda patch: patch.setattr(clip, name, other)


def _each_alone(patch: pytest.MonkeyPatch) -> None:
    def clip_each(parameters: list[Tensor], max_norm: float) -> None:
        for each in parameters:
            if each.grad is not None:
                each.grad.mul_((max_norm / (each.grad.norm() + 1e-6)).clamp(max=1))

    patch.setattr(nn.utils, "clip_grad_norm_", clip_each)


def _norms(each: Tensor, dim: tuple[int, ...]) -> Tensor:
    whole = each.squeeze().ndim < 2
    found: Tensor = torch.linalg.vector_norm(each) if whole else torch.linalg.vector_norm(each, dim=dim, keepdim=True)
    return found


def _by_input(tensors: list[Tensor]) -> list[Tensor]:
    """Norms over all but the second axis, as for weights kept as [in, out]."""
    return [_norms(each, (0, *range(2, each.ndim))) for each in tensors]


def _in_float32(tensors: list[Tensor]) -> list[Tensor]:
    return [_norms(each, tuple(range(1, each.ndim))) for each in tensors]


CASES = [
    Case(kind="clip", name="norm", check=check_norm, alter=_each_alone),
    Case(kind="clip", name="agc", check=check_adaptive, alter=swapped("_unit_norms", _by_input)),
    Case(kind="clip", name="agc", check=check_adaptive, alter=swapped("_unit_norms", _in_float32)),
    Case(kind="clip", name="agc", check=check_adaptive, alter=swapped("_head", lambda model: None)),
]
