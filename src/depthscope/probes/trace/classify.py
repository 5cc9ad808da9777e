"""What one operation does, told from its arguments while they are at hand: sort, weights and facts of a `Step`."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from torch import Tensor

from depthscope.probes.trace.facts import WeightFacts
from depthscope.probes.trace.graph import Step
from depthscope.probes.trace.ops import OpInfo

_NORMS = {"layer": ("layer_norm",), "group": ("group_norm",), "rms": ("rms_norm",), "instance": ("instance_norm",)}
_RECURRENT = ("LSTM", "GRU", "RNN", "LSTMCell", "GRUCell", "RNNCell")
_SELU_SCALE = 1.0507009873554805  # of Klambauer et al. 2017: torch runs SELU as an ELU with this scale


@dataclass(slots=True)
class Operand:
    """A tensor that an operation takes: its value, whether it is data, else the parameters that it is made of."""

    tensor: Tensor
    value: int
    data: bool = False
    parameters: frozenset[str] = field(default_factory=frozenset)


class Classifier:
    """Fills in what a step does. It keeps no tensor but the scalars of the facts, read once at the end."""

    def __init__(self) -> None:
        self.facts = WeightFacts()
        self._noise: dict[int, float] = {}  # tensor made by a random draw -> probability of a zero (nan: unknown)

    def __call__(
        self,
        step: Step,
        info: OpInfo,
        operands: list[Operand],
        args: tuple[Any, ...],
        kwargs: Mapping[str, Any],
        outs: list[Tensor],
        module: str,
    ) -> None:
        """Set sort, name, `weighted`, `partial` and facts of a step.

        Args:
            step: to fill in.
            info: of its operation.
            operands: its tensors in order.
            args: of the operation.
            kwargs: of the operation.
            outs: what it gave.
            module: class of the module that ran it.
        """
        data = [each for each in operands if each.data]
        if not data or info.sort == "fresh":
            self._follow_noise(info, operands, args, kwargs, outs)
            return
        if info.sort == "index":
            step.sort = "embedding" if operands[0].parameters and not operands[0].data else "part"
            step.partial = True
        if info.sort == "part":
            step.partial = _leaves_out(data[0].tensor, outs)
        weights = [each for each in operands if each.parameters and not each.data]
        matrices = [each for each in weights if each.tensor.dim() >= 2]
        if step.sort in ("product", "conv", "embedding", "recurrent", "attention") or not info.known:
            step.weighted = bool(matrices)
        if step.weighted:
            first = max(matrices, key=lambda each: each.tensor.numel())
            if module in _RECURRENT and step.sort == "product":
                step.sort, step.name = "recurrent", module.removesuffix("Cell").lower()
            self.facts.weight(step, first, [each for each in weights if each.tensor.dim() < 2], operands, args, info)
            if step.sort == "attention" and (p := info.argument("dropout_p", args, kwargs)):
                step.facts["p"] = float(p)
        elif step.sort == "norm":
            self._norm(step, info, args, kwargs, data[0].tensor, module)
        elif step.sort == "activation":
            self._activation(step, info, args, kwargs, weights)
        elif step.sort == "multiply":
            self._multiply(step, operands, args, info)
        elif step.sort == "add" and weights:
            self.facts.later(step.facts, "sb2", weights[0].tensor.detach().float().square().mean())
        elif step.sort == "dropout":
            step.facts["p"] = float(info.argument("p", args, kwargs, 0.5))
        elif step.sort == "pool":
            step.name = "max" if "max" in info.base else "upsample" if "upsample" in info.base else "mean"

    def _follow_noise(
        self,
        info: OpInfo,
        operands: list[Operand],
        args: tuple[Any, ...],
        kwargs: Mapping[str, Any],
        outs: list[Tensor],
    ) -> None:
        """Remember which constants are random draws: a product with one is a dropout."""
        if info.base == "bernoulli":
            keep = info.argument("p", args, kwargs)
            p = 1 - keep if isinstance(keep, int | float) else math.nan
        elif info.base in ("rand", "rand_like", "uniform"):
            p = math.nan
        else:
            found = [self._noise[each.tensor._cdata] for each in operands if each.tensor._cdata in self._noise]
            if not found:
                return
            p = found[0]
        for out in outs:
            self._noise[out._cdata] = p

    def _norm(
        self, step: Step, info: OpInfo, args: tuple[Any, ...], kwargs: Mapping[str, Any], data: Tensor, module: str
    ) -> None:
        step.name = next((name for name, keys in _NORMS.items() if any(key in info.base for key in keys)), "batch")
        if step.name == "batch" and module.startswith(("InstanceNorm", "LazyInstanceNorm")):
            step.name = "instance"  # torch runs it as a batch norm over examples times channels
        if step.name == "batch":
            training = info.argument("training", args, kwargs)
            if training is None:
                training = info.base in ("_batch_norm_with_update", "batch_norm_with_update")
            step.facts["training"] = float(training)
        if step.name == "group" and (groups := info.argument("group", args, kwargs)):
            step.facts["group_size"] = float(data.shape[1] // groups)
        gamma = info.argument("weight", args, kwargs)
        if isinstance(gamma, Tensor):
            self.facts.later(step.facts, "value", gamma.detach().float().mean())

    def _activation(
        self, step: Step, info: OpInfo, args: tuple[Any, ...], kwargs: Mapping[str, Any], weights: list[Operand]
    ) -> None:
        if info.base == "leaky_relu":
            step.facts["slope"] = float(info.argument("negative_slope", args, kwargs, 0.01))
        elif step.name == "prelu" and weights:
            self.facts.later(step.facts, "slope", weights[0].tensor.detach().float().mean())
        elif info.base == "elu":
            scale = float(info.argument("scale", args, kwargs, 1.0))
            step.name = "selu" if abs(scale - _SELU_SCALE) < 1e-6 else "elu"
        elif info.base == "hardtanh":
            low, high = (float(info.argument(key, args, kwargs, default)) for key, default in _BOUNDS)
            step.name = "relu6" if (low, high) == (0.0, 6.0) else "hardtanh"
        elif info.base.startswith("clamp"):
            low, high = (info.argument(key, args, kwargs) for key in ("min", "max"))
            step.name = "relu" if low == 0 and high is None else "relu6" if (low, high) == (0, 6) else "clamp"

    def _multiply(self, step: Step, operands: list[Operand], args: tuple[Any, ...], info: OpInfo) -> None:
        if info.base in ("neg", "negative"):
            step.facts["value"] = -1.0
            return
        others = [each for each in operands if not each.data]
        if others and (p := self._noise.get(others[0].tensor._cdata)) is not None:
            step.sort, step.name = "dropout", "dropout"
            if not math.isnan(p):
                step.facts["p"] = p
            return
        divides = info.base in ("div", "divide", "true_divide")
        if others:
            factor = others[0].tensor.detach().float()
            self.facts.later(step.facts, "value", (factor.reciprocal() if divides else factor).mean())
            return
        number = next((each for each in args[:2] if isinstance(each, int | float)), None)
        if number is not None:
            step.facts["value"] = (1 / number if number else math.inf) if divides else float(number)


_BOUNDS = (("min_val", -1.0), ("max_val", 1.0))


def _leaves_out(taken: Tensor, outs: list[Tensor]) -> bool:
    """Whether a part is another thing than the whole: one entry, one piece of a split, a narrow window.

    Every other position (the shortcut of option A) or a crop of the borders is still the same data.
    """
    if not outs or outs[0].numel() == taken.numel():
        return False
    out = outs[0]
    if out.dim() != taken.dim() or len(outs) > 1:
        return True
    for size, left, stride, base in zip(taken.shape, out.shape, out.stride(), taken.stride(), strict=True):
        if left < size and 2 * left <= size and stride <= base:
            return True
    return False
