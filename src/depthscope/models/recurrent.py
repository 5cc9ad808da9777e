"""Recurrent networks, unrolled by hand: depth in time.

A linear map of each element (the stem), one of the state that is carried from step to step, a bias a gate; a linear
head reads the state. The same weights serve every step, so that a network of more steps has the same tensors.

| cell | one step | carried |
| --- | --- | --- |
| `rnn` | h = tanh(a) | h |
| `residual_rnn` | h = h' + tanh(a) | h |
| `gru` | n = tanh(x_n + r (U_n h' + b)), h = z h' + (1 - z) n | h |
| `lstm` | c = f c' + i g, h = o tanh(c) | c |
| `lstm_no_forget` | c = c' + i g, h = o tanh(c) | c |

A dash marks the step before; the state begins at 0. Of each gate a = W x + U h' + b; i, f, o, r, z are its sigmoid, g
its tanh. `gru` is PyTorch's form of it, which multiplies by r behind U. `lstm_no_forget` is the cell of 1997, with the
tanh that is usual today: along dc/dc' = 1 the error neither grows nor shrinks (the constant error carousel). Where c or
h is added to, the step has a plus sign, as a residual block has one.

Sources: Hochreiter & Schmidhuber 1997 (Neural Computation 9(8)); Gers et al. 2000 (the forget gate); Cho et al. 2014,
arXiv 1406.1078 (GRU).

Shape letters: B batch, T steps, I inputs, W width, G gates, K outputs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from depthscope.core.errors import UserError, unknown_name
from depthscope.core.profile import Addition, Point
from depthscope.models.site import check_counts

GATES: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "rnn": ("state",),
        "residual_rnn": ("state",),
        "gru": ("reset", "update", "candidate"),
        "lstm": ("input", "forget", "output", "candidate"),
        "lstm_no_forget": ("input", "output", "candidate"),
    }
)
"""Cell -> the maps that it holds one below the other, in this order: sigmoids first, then the tanh."""

ADDITIVE = ("residual_rnn", "lstm_no_forget")
"""Cells that add to what they carry, and do no more to it."""

READOUTS = ("last", "each")

_NONE: Mapping[str, Any] = MappingProxyType({})


def recurrent(
    *,
    depth: int,
    width: int = 64,
    cell: str = "lstm",
    readout: str = "last",
    forget_bias: float = 1.0,
    shortcut: str = "none",
    norm: str = "none",
    activation: str = "tanh",
    num_inputs: int = 2,
    num_classes: int = 1,
    length: int | None = None,
    shortcut_options: Mapping[str, Any] = _NONE,
    norm_options: Mapping[str, Any] = _NONE,
) -> Recurrent:
    """A recurrent network, on the current default device.

    The weights of a network for use are drawn by `models.init.build`; made by itself, it has torch's default ones.

    Args:
        depth: steps in time, T, where `length` says nothing else.
        width: units of the state, W.
        cell: see the module.
        readout: `last`: the head reads the state of the last step, [B, K]; `each`: that of every step, [B, T, K].
        forget_bias: what the bias of an `lstm`'s forget gate starts as. At 0 it forgets half at every step
            (Jozefowicz et al. 2015 recommend 1).
        shortcut: `none`: the cell itself says what is added.
        norm: `none`.
        activation: `tanh`.
        num_inputs: numbers that describe one element, I; of tokens, how many there are.
        num_classes: outputs of the head, K.
        length: elements of a sequence, where the data's is not `depth`.
        shortcut_options: none.
        norm_options: none.

    Raises:
        UserError: a value that no such network has.

    >>> model = recurrent(depth=100, cell="residual_rnn")
    >>> sum(parameter.numel() for parameter in model.parameters()), len(model.points()), len(model.additions())
    (4353, 101, 100)
    """
    steps = depth if length is None else length
    check_counts(depth=depth, width=width, num_inputs=num_inputs, num_classes=num_classes, length=steps)
    for what, name, known in (
        ("cell", cell, GATES),
        ("readout", readout, READOUTS),
        ("shortcut of recurrent", shortcut, ("none",)),
        ("norm of recurrent", norm, ("none",)),
        ("activation of recurrent", activation, ("tanh",)),
    ):
        if name not in known:
            raise UserError(unknown_name(what, name, known))
    shape = {"steps": steps, "width": width, "num_inputs": num_inputs, "num_outputs": num_classes}
    return Recurrent(cell, readout, forget_bias, **shape)


class Gates(nn.Linear):
    """The maps of all gates one below the other, [G W, in], without a bias; initialisers draw each by itself."""

    def __init__(self, num_in: int, num_out: int, parts: int) -> None:
        super().__init__(num_in, parts * num_out, bias=False)
        self.parts = parts


class Biases(nn.Module):
    """A bias a gate, [W] each.

    Args:
        initial: name of a gate -> what its bias starts as, in the order of the gates.
        width: W.
    """

    def __init__(self, initial: Mapping[str, float], width: int) -> None:
        super().__init__()
        self.initial = dict(initial)
        for name, value in self.initial.items():
            setattr(self, name, nn.Parameter(torch.full((width,), value)))

    def forward(self, gates: Sequence[str]) -> Tensor:
        """Those of these gates, one behind the other, [G W]."""
        return torch.cat([getattr(self, name) for name in gates])


class Sum(nn.Module):
    """The plus sign of one step: (what was carried, what is added) -> their sum, [B, W]."""

    def __init__(self) -> None:
        super().__init__()
        self.skip, self.branch = nn.Identity(), nn.Identity()

    def forward(self, carried_BW: Tensor, added_BW: Tensor) -> Tensor:
        """See the class."""
        total: Tensor = self.skip(carried_BW) + self.branch(added_BW)
        return total


class Recurrent(nn.Module):
    """See `recurrent`. x_BTI, or tokens x_BT -> [B, K], or [B, T, K].

    `times.{t}` is called once, at step t, and gives the state that is carried on.
    """

    def __init__(
        self, cell: str, readout: str, forget_bias: float, *, steps: int, width: int, num_inputs: int, num_outputs: int
    ) -> None:
        super().__init__()
        self.cell, self.readout = cell, readout
        gates = GATES[cell]
        self.stem = Gates(num_inputs, width, len(gates))
        self.recurrent = Gates(width, width, len(gates))
        initial = {gate: forget_bias if gate == "forget" else 0.0 for gate in gates}
        self.biases = Biases({**initial, "inner": 0.0} if cell == "gru" else initial, width)
        self.times = nn.ModuleList(Sum() if cell in ADDITIVE else nn.Identity() for _ in range(steps))
        self.head = nn.Linear(width, num_outputs)

    def forward(self, x: Tensor) -> Tensor:
        """See the class.

        Raises:
            UserError: sequences of another length.
        """
        if x.shape[1] != len(self.times):
            raise UserError(f"recurrent: wanted sequences of {len(self.times)} elements, got {x.shape[1]}.")
        projected_TBG = self._projected(x)
        zeros_BW = projected_TBG.new_zeros(x.shape[0], self.recurrent.in_features)
        # In one piece: the backward pass of T selections would fill T tensors of the size of all.
        states = _UNROLL[self.cell](self, projected_TBG.unbind(0), zeros_BW)
        output: Tensor = self.head(states[-1] if self.readout == "last" else torch.stack(states, dim=1))
        return output

    def _projected(self, x: Tensor) -> Tensor:
        """W x + b of all gates at all steps, [T, B, G W]."""
        bias: Tensor = self.biases(GATES[self.cell])
        if x.is_floating_point():
            return F.linear(x.transpose(0, 1), self.stem.weight, bias)
        return F.embedding(x.transpose(0, 1), self.stem.weight.t()) + bias

    def points(self) -> tuple[Point, ...]:
        """The steps, each with the carried state behind it, then the head.

        As in an unrolled network: into the first step goes the stem alone, since the state before it is 0.
        """
        steps = [f"times.{at}" for at in range(len(self.times))]
        weights = ["stem.weight", *["recurrent.weight"] * (len(steps) - 1)]
        inside = [
            Point(layer=step, kind="step", weight=weight, output=step)
            for step, weight in zip(steps, weights, strict=True)
        ]
        return (*inside, Point(layer="head", kind="linear", weight="head.weight", output="head"))

    def additions(self) -> tuple[Addition, ...]:
        """The plus signs along time, one a step, of cells that have them."""
        if self.cell not in ADDITIVE:
            return ()
        steps = [f"times.{at}" for at in range(len(self.times))]
        return tuple(Addition(block=at, layer=at, branch=f"{at}.branch", skip=f"{at}.skip") for at in steps)

    def branches(self) -> tuple[tuple[str, ...], ...]:
        """None that a rule for branches could fill: one weight serves all of them."""
        return ()

    def derived(self) -> dict[str, float]:
        """Nothing: no number depends on the steps."""
        return {}


def _rnn(model: Any, projected: Sequence[Tensor], h: Tensor) -> list[Tensor]:
    u_WG, states = model.recurrent.weight.t(), []
    for a, time in zip(projected, model.times, strict=True):
        h = time(torch.addmm(a, h, u_WG).tanh())
        states.append(h)
    return states


def _residual_rnn(model: Any, projected: Sequence[Tensor], h: Tensor) -> list[Tensor]:
    u_WG, states = model.recurrent.weight.t(), []
    for a, time in zip(projected, model.times, strict=True):
        h = time(h, torch.addmm(a, h, u_WG).tanh())
        states.append(h)
    return states


def _gru(model: Any, projected: Sequence[Tensor], h: Tensor) -> list[Tensor]:
    u_WG, states, width = model.recurrent.weight.t(), [], h.shape[1]
    bias = F.pad(model.biases.inner, (2 * width, 0))
    for a, time in zip(projected, model.times, strict=True):
        x_gates, x_candidate = torch.split_with_sizes(a, (2 * width, width), 1)
        h_gates, h_candidate = torch.split_with_sizes(torch.addmm(bias, h, u_WG), (2 * width, width), 1)
        reset, update = (x_gates + h_gates).sigmoid().chunk(2, dim=1)
        candidate = torch.addcmul(x_candidate, reset, h_candidate).tanh()
        h = time(torch.lerp(candidate, h, update))
        states.append(h)
    return states


def _lstm(model: Any, projected: Sequence[Tensor], h: Tensor) -> list[Tensor]:
    u_WG, states, width, c = model.recurrent.weight.t(), [], h.shape[1], h
    for a, time in zip(projected, model.times, strict=True):
        gates, candidate = torch.split_with_sizes(torch.addmm(a, h, u_WG), (3 * width, width), 1)
        enter, forget, leave = gates.sigmoid().chunk(3, dim=1)
        c = time(torch.addcmul(forget * c, enter, candidate.tanh()))
        h = leave * c.tanh()
        states.append(h)
    return states


def _lstm_no_forget(model: Any, projected: Sequence[Tensor], h: Tensor) -> list[Tensor]:
    u_WG, states, width, c = model.recurrent.weight.t(), [], h.shape[1], h
    for a, time in zip(projected, model.times, strict=True):
        gates, candidate = torch.split_with_sizes(torch.addmm(a, h, u_WG), (2 * width, width), 1)
        enter, leave = gates.sigmoid().chunk(2, dim=1)
        c = time(c, enter * candidate.tanh())
        h = leave * c.tanh()
        states.append(h)
    return states


_UNROLL: Mapping[str, Callable[[Any, Sequence[Tensor], Tensor], list[Tensor]]] = {
    "rnn": _rnn,
    "residual_rnn": _residual_rnn,
    "gru": _gru,
    "lstm": _lstm,
    "lstm_no_forget": _lstm_no_forget,
}
"""Cell -> (network, a of each step without the state's part, the state at first) -> h of each step."""
