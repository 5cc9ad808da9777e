"""How the layers of one network are made, in its normaliser and its activation."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from torch import nn

from depthscope.core.depth import tat_slope
from depthscope.core.errors import UserError, unknown_name
from depthscope.models.functions import name_of, public_functions
from depthscope.models.layers import activations, norms, weighted


@dataclass(frozen=True, kw_only=True)
class Norm:
    """What one name of the catalogue's kind `norm` makes.

    Attributes:
        normaliser: a function of `norms`.
        conv: its convolution.
        linear: its linear layer.
        bias: whether its weighted layers have a bias: where the normaliser has no shift of its own.
    """

    normaliser: Callable[..., nn.Module]
    conv: type[nn.Conv2d] = nn.Conv2d
    linear: type[nn.Linear] = nn.Linear
    bias: bool = False


MakeNorm = Callable[..., nn.Module]
"""`(num, *, spatial, ends_branch, **options)` -> a normaliser, as in `norms`."""

MakeActivation = Callable[..., nn.Module]
"""`(depth)` -> an activation, as in `activations`."""

NORMS: Mapping[str, Norm] = {
    **{name: Norm(normaliser=each) for name, each in public_functions(norms).items()},
    "none": Norm(normaliser=norms.none, bias=True),
    "rms": Norm(normaliser=norms.rms, bias=True),
    "ws": Norm(normaliser=norms.none, conv=weighted.StandardisedConv2d, linear=weighted.StandardisedLinear, bias=True),
    "ws_group": Norm(normaliser=norms.group, conv=weighted.StandardisedConv2d, linear=weighted.StandardisedLinear),
    "scaled_ws": Norm(normaliser=norms.none, conv=weighted.ScaledConv2d, linear=weighted.ScaledLinear, bias=True),
    "fixup": Norm(normaliser=norms.fixup, conv=weighted.ShiftedConv2d, linear=weighted.ShiftedLinear),
}
"""Name -> what it makes: each public function of `norms`, and a line for what makes its weighted layers otherwise."""

ACTIVATIONS: Mapping[str, MakeActivation] = public_functions(activations)
"""Name -> the function of the network's depth that makes it: each public function of `activations`."""


_PLACE = ("num", "spatial", "ends_branch")
"""What a function of `norms` is told of the place; further arguments are options."""


@dataclass(frozen=True, kw_only=True)
class Layers:
    """The makers of one network's layers.

    Attributes:
        norm: a name of `NORMS`; or a function of one's own, whose weighted layers are plain ones without a bias, as
            they are beside any normaliser that shifts.
        activation: a name of `ACTIVATIONS`, or a function of one's own.
        spatial: images (convolutions) or vectors (linear layers).
        depth: weighted layers on the longest path, from the stem to the head, which the slope of `tat` depends on.
        norm_options: options of `norm`.

    Raises:
        UserError: an unknown name or option; a function of one's own that makes no module.

    >>> layers = Layers(norm="layer", activation="silu", spatial=False)
    >>> layers.weighted(2, 3), type(layers.normaliser(3)).__name__, layers.act()
    (Linear(in_features=2, out_features=3, bias=False), 'LayerNorm', SiLU())
    """

    norm: str | MakeNorm = "batch"
    activation: str | MakeActivation = "relu"
    spatial: bool = True
    depth: int = 0
    norm_options: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        # A network keeps its makers, and a probe copies the network: a read-only view has no copy.
        object.__setattr__(self, "norm_options", dict(self.norm_options))
        for kind, name, known in (("norm", self.norm, NORMS), ("activation", self.activation, ACTIVATIONS)):
            if isinstance(name, str) and name not in known:
                raise UserError(unknown_name(kind, name, known))
        if not isinstance(self.norm, str):
            return
        options = [each for each in inspect.signature(NORMS[self.norm].normaliser).parameters if each not in _PLACE]
        for option in self.norm_options:
            if option not in options:
                raise UserError(unknown_name(f"option of norm {self.norm!r}", option, options))

    def weighted(
        self, num_in: int, num_out: int, *, kernel: int = 3, stride: int = 1, activated: bool = True
    ) -> nn.Module:
        """A convolution with padding kernel // 2, or a linear layer, as the normaliser wants it.

        It has a bias where no normaliser with a shift of its own goes with it.

        Args:
            num_in: channels (units) in.
            num_out: channels (units) out.
            kernel: size of the convolution's window.
            stride: of the convolution.
            activated: whether an activation feeds it (all but a stem), whose scale `scaled_ws` makes up for.
        """
        made = self._norm()
        options: dict[str, Any] = {"bias": made.bias}
        if self.norm == "scaled_ws" and activated:
            options["scale"] = self.activation_scale()
        if self.spatial:
            return made.conv(num_in, num_out, kernel, stride=stride, padding=kernel // 2, **options)
        return made.linear(num_in, num_out, **options)

    def normaliser(self, num: int, *, ends_branch: bool = False) -> nn.Module:
        """What goes with a weighted layer: a normaliser, or what stands in for one; `nn.Identity` without.

        Args:
            num: its channels.
            ends_branch: it is the last module of a residual branch (where Fixup has its multiplier).

        Raises:
            UserError: the normaliser is not to be had at this width, or for vectors.
        """
        make = self._norm().normaliser
        made = make(num=num, spatial=self.spatial, ends_branch=ends_branch, **self.norm_options)
        return _module("norm", self.norm, made)

    def _norm(self) -> Norm:
        return NORMS[self.norm] if isinstance(self.norm, str) else Norm(normaliser=self.norm)

    def branch_end(self, num: int) -> nn.Module:
        """What closes a branch that ends in a weighted layer (pre-activation): Fixup's scalars, else the identity."""
        return self.normaliser(num, ends_branch=True) if self.norm == "fixup" else nn.Identity()

    def head(self, num_in: int, num_out: int) -> nn.Linear:
        """The classifier: plain, whatever the normaliser, with a bias; under Fixup its input has a scalar too."""
        return weighted.ShiftedLinear(num_in, num_out) if self.norm == "fixup" else nn.Linear(num_in, num_out)

    def act(self) -> nn.Module:
        """A new module of the activation, not in place.

        Raises:
            UserError: `tat` has no slope at this depth.
        """
        make = ACTIVATIONS[self.activation] if isinstance(self.activation, str) else self.activation
        return _module("activation", self.activation, make(depth=self.depth))

    def activation_scale(self) -> float:
        """About 1/sd(act(z)) of a standard normal z, as NFNet has it.

        Raises:
            UserError: NFNet has none for this activation.
        """
        if not isinstance(self.activation, str) or self.activation not in weighted.ACTIVATION_SCALES:
            raise UserError(
                f"norm scaled_ws: has no scale for activation {name_of(self.activation)!r}. "
                f"Known: {', '.join(sorted(weighted.ACTIVATION_SCALES))}."
            )
        return weighted.ACTIVATION_SCALES[self.activation]

    def derived(self) -> dict[str, float]:
        """What the depth decided: `tat_slope`."""
        return {"tat_slope": tat_slope(self.depth)} if self.activation == "tat" else {}


def _module(kind: str, chosen: str | Callable[..., nn.Module], made: object) -> nn.Module:
    if not isinstance(made, nn.Module):
        raise UserError(f"{kind} {name_of(chosen)}: returned {made!r}; wanted a torch.nn.Module.")
    return made
