"""The every-step tier: norms of the weights and of their gradients, kept on the device until a record is made."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from depthscope.core.structure import Status
from depthscope.probes.norms import norms


@dataclass(frozen=True, kw_only=True)
class Gradients:
    """Gradients at one moment.

    Attributes:
        indices: of the parameters that had one, in the model's order.
        values: [N], their norms, on the device.
        marks: of each, the tensor's identity and its version: equal marks are equal values, as far as torch's own
            operations go (a write through `.data` leaves no mark).
    """

    indices: tuple[int, ...]
    values: Tensor
    marks: tuple[tuple[int, int], ...]


class Parameters:
    """A model's parameters, each under the first of its names.

    Args:
        model: unwrapped, so that no name carries a prefix.
    """

    def __init__(self, model: nn.Module) -> None:
        self._model = model
        self.names: tuple[str, ...] = ()
        self.aliases: dict[str, str] = {}
        self._tensors: list[nn.Parameter] = []
        self._places: dict[int, int] = {}
        self.refresh()

    def refresh(self) -> None:
        """Look through the model again: a layer may have come or gone since."""
        first: dict[int, str] = {}
        self.aliases = {}
        self._tensors = []
        for name, parameter in self._model.named_parameters(remove_duplicate=False):
            if id(parameter) in first:
                self.aliases[name] = first[id(parameter)]
            else:
                first[id(parameter)] = name
                self._tensors.append(parameter)
        self.names = tuple(first.values())
        self._places = {id(parameter): index for index, parameter in enumerate(self._tensors)}

    @property
    def dtype(self) -> str:
        """Of the parameters; that of most where they differ."""
        kinds = [str(each.dtype).removeprefix("torch.") for each in self._tensors]
        return max(set(kinds), key=kinds.count) if kinds else "float32"

    @property
    def device(self) -> torch.device:
        """Of the first parameter."""
        return self._tensors[0].device if self._tensors else torch.device("cpu")

    def indices_of(self, tensors: Iterable[Tensor]) -> set[int]:
        """Indices of those of `tensors` that are this model's."""
        return {self._places[id(each)] for each in tensors if id(each) in self._places}

    def gradients(self, among: Collection[int] | None = None) -> Gradients | None:
        """The gradients as they are now, of all parameters or of some; None where there is none."""
        held = [
            (index, parameter.grad)
            for index, parameter in enumerate(self._tensors)
            if parameter.grad is not None and (among is None or index in among)
        ]
        if not held:
            return None
        return Gradients(
            indices=tuple(index for index, _ in held),
            values=norms([grad for _, grad in held]),
            marks=tuple((id(grad), grad._version) for _, grad in held),
        )

    def marks(self) -> tuple[object, ...]:
        """Of all gradients, see `Gradients`; None where there is none."""
        return tuple(self._mark(index) for index in range(len(self._tensors)))

    def changed(self, since: Gradients, among: Collection[int]) -> bool:
        """Whether a gradient bears another mark than it did."""
        return any(
            self._mark(index) != mark for index, mark in zip(since.indices, since.marks, strict=True) if index in among
        )

    def cleared(self, since: Gradients) -> bool:
        """Whether those gradients are gone: None, or set to zero.

        It waits for the device only where there are gradients that were written since, as by `zero_grad(
        set_to_none=False)` or by clipping.
        """
        now = [self._mark(index) for index in since.indices]
        if any(mark == before for mark, before in zip(now, since.marks, strict=True)):
            return False
        left = [grad for index in since.indices if (grad := self._tensors[index].grad) is not None]
        return not left or not bool(norms(left).any())

    def weights(self) -> Tensor:
        """[number of parameters], their norms."""
        return norms(self._tensors)

    def statuses(self, reached: Collection[str], unused: Collection[str]) -> dict[str, Status]:
        """What became of each parameter, by its first name and by its aliases.

        Args:
            reached: names of those that had a gradient.
            unused: names of those that no operation of the forward pass took.
        """
        found: dict[str, Status] = {}
        for name, parameter in zip(self.names, self._tensors, strict=True):
            if not parameter.requires_grad:
                found[name] = "frozen"
            elif name in unused:
                found[name] = "unused"  # also where its gradient was set to zero once and stays so
            else:
                found[name] = "ok" if name in reached else "no grad"
        found.update((alias, "shared") for alias in self.aliases)
        return found

    def _mark(self, index: int) -> tuple[int, int] | None:
        grad = self._tensors[index].grad
        return None if grad is None else (id(grad), grad._version)
