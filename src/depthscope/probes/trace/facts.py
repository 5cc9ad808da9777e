"""Numbers recognised about weights: fan, variance, bias, orthogonality. Scalars stay on their device until the end."""

from __future__ import annotations

import math
from typing import Any, Protocol

import torch
from torch import Tensor

from depthscope.probes.trace.graph import Step
from depthscope.probes.trace.ops import OpInfo

_PRODUCT_LIMIT = 300_000_000
"""Multiply-adds of the Gram matrix of one weight above which its orthogonality is not asked for: .1 s on one core."""
_TOTAL_LIMIT = 20_000_000_000
"""The same for all weights of a model together."""


class Weight(Protocol):
    """An operand that is made of parameters."""

    tensor: Tensor
    value: int
    parameters: frozenset[str]


class WeightFacts:
    """Facts of weights; each weight is looked at once, however often it is used."""

    def __init__(self) -> None:
        self._later: list[tuple[dict[str, float], str, Tensor]] = []
        self._known: dict[Any, dict[str, Tensor | float]] = {}
        self._spent = 0

    def later(self, facts: dict[str, float], key: str, scalar: Tensor) -> None:
        """Put a scalar into facts when all are read."""
        self._later.append((facts, key, scalar))

    def settle(self) -> None:
        """Read all scalars: one transfer a device."""
        by_device: dict[torch.device, list[tuple[dict[str, float], str, Tensor]]] = {}
        for each in self._later:
            by_device.setdefault(each[2].device, []).append(each)
        for entries in by_device.values():
            numbers = torch.stack([scalar.reshape(()).float() for _, _, scalar in entries]).tolist()
            for (facts, key, _), number in zip(entries, numbers, strict=True):
                facts[key] = number
        self._later.clear()
        self._known.clear()

    def weight(
        self, step: Step, weight: Weight, biases: list[Any], operands: list[Any], args: tuple[Any, ...], info: OpInfo
    ) -> None:
        """Facts of the weight matrix or kernel of a step.

        Args:
            step: whose facts to fill.
            weight: the operand that is its weight.
            biases: operands made of parameters with fewer than two dimensions.
            operands: all tensors of the operation.
            args: of the operation.
            info: of the operation.
        """
        tensor = weight.tensor.detach()
        key = (weight.parameters, tuple(tensor.shape), tensor.stride(), tensor.storage_offset(), info.base)
        if key not in self._known:
            self._known[key] = self._of(step, weight, tensor, operands, args, info)
        for name, number in self._known[key].items():
            if isinstance(number, Tensor):
                self.later(step.facts, name, number)
            else:
                step.facts[name] = number
        if biases and step.sort in ("product", "conv"):
            self.later(step.facts, "sb2", biases[0].tensor.detach().float().square().mean())
        elif step.sort in ("product", "conv"):
            step.facts["sb2"] = 0.0

    def _of(
        self, step: Step, weight: Weight, tensor: Tensor, operands: list[Any], args: tuple[Any, ...], info: OpInfo
    ) -> dict[str, Tensor | float]:
        if not tensor.is_floating_point() or tensor.numel() == 0:
            return {}
        fans = _fans(step, weight, tensor, operands, args, info)
        if fans is None:
            return {}
        fan_in, fan_out = fans
        wide = tensor if tensor.dtype == torch.float64 else tensor.float()
        found: dict[str, Tensor | float] = {
            "fan_in": float(fan_in),
            "fan_out": float(fan_out),
            "sw2": wide.var(unbiased=False) * fan_in,
        }
        if step.sort in ("product", "conv"):
            orthogonality = self._orthogonality(wide)
            if orthogonality is not None:
                found["orthogonality"] = orthogonality
        return found

    def _orthogonality(self, weight: Tensor) -> Tensor | None:
        """|G - c I| / |G| of the smaller Gram matrix G, c = tr G / n.

        A kernel whose taps are zero but for the centre acts as that one matrix (delta-orthogonal).
        """
        if weight.dim() > 2:
            if weight.shape[0] == 1 and weight.dim() == 3:
                weight = weight[0]
            else:
                taps = weight.flatten(2)
                centre = taps[:, :, taps.shape[2] // 2]
                if taps.shape[2] > 1 and math.isclose(
                    float(centre.square().sum()), float(taps.square().sum()), rel_tol=1e-12
                ):
                    weight = centre
                else:
                    weight = weight.flatten(1)
        short, long = sorted(weight.shape)
        cost = short * short * long
        if short == 0 or cost > _PRODUCT_LIMIT or self._spent + cost > _TOTAL_LIMIT:
            return None
        self._spent += cost
        gram = weight @ weight.T if weight.shape[0] == short else weight.T @ weight
        norm = gram.norm()
        rest = gram.clone()
        rest.diagonal().sub_(gram.diagonal().mean())
        ratio: Tensor = rest.norm() / norm.clamp_min(torch.finfo(gram.dtype).tiny)
        return ratio


def _fans(
    step: Step, weight: Weight, tensor: Tensor, operands: list[Any], args: tuple[Any, ...], info: OpInfo
) -> tuple[int, int] | None:
    """Inputs and outputs of one unit, from the layout in which the operation takes its weight."""
    shape = tensor.shape
    if step.sort == "conv":
        taps = math.prod(shape[2:])
        transposed = bool(info.argument("transposed", args, {}, "transpose" in info.base))
        if transposed:  # [in, out / groups, *taps]
            groups = int(info.argument("groups", args, {}, 1))
            return shape[0] // groups * taps, shape[1] * groups * taps
        return shape[1] * taps, shape[0] * taps  # [out, in / groups, *taps]
    if step.sort == "embedding":
        return 1, shape[-1]  # one row is picked: a one-hot input of which one entry counts
    if step.sort in ("product", "recurrent"):
        if "linear" in info.base or "rnn" in info.base or "lstm" in info.base or "gru" in info.base:
            return shape[-1], shape[-2]  # [out, in]
        first_data = next((at for at, each in enumerate(operands) if each.data), 0)
        matrices = operands[-2:]
        if matrices and matrices[0].value == weight.value and first_data == len(operands) - 1:
            return shape[-1], shape[-2]  # W x
        return shape[-2], shape[-1]  # x W
    return None
