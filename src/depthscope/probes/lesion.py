"""The lesion study: one residual branch, or one whole block, taken out at a time, and what a trained network loses.

Sources: Srivastava et al. 2015 (arXiv 1507.06228, section 4.2), who shut one gate of a highway network at a time; Veit
et al. 2016 (arXiv 1605.06431, section 4.1), who took out one branch of a residual network.

Shape letters: B batch.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from depthscope.core.errors import UserError, unknown_name
from depthscope.core.profile import Addition, Point, Row
from depthscope.probes.guard import undisturbed
from depthscope.probes.shadow import bare_copy

Judge = Callable[[Any, Any], Mapping[str, float]]
"""`(output, targets) -> figures`: the `loss` over the batch, and the `accuracy` where there is one."""


@dataclass(frozen=True, kw_only=True)
class Lesions:
    """What a network loses with each of its branches.

    Attributes:
        intact: figures of the intact network on the batch, by name.
        rows: of the network without one branch, `lesion_loss` and the like, one a figure, at the layer of that
            addition; without one block of several branches, `block_lesion_loss`, at that of its last.
    """

    intact: Mapping[str, float]
    rows: tuple[Row, ...]


def lesions(
    model: nn.Module,
    inputs: Tensor,
    targets: Tensor,
    judge: Judge,
    *,
    points: Sequence[Point],
    additions: Sequence[Addition],
    step: int = 0,
) -> Lesions:
    """Figures without each residual branch in turn, in evaluation mode, on a copy of the model.

    A block that has a `join` with a method `without_branch(s)` says itself what is left of it (a highway's gate is
    shut: T = 0 and y = s); of any other the branch's output F is taken for zeros. What follows the addition, as a ReLU
    does, stays. Where a block has several branches (`blocks.3.attention` and `blocks.3.mlp` are both of `blocks.3`),
    the whole block is taken out too. The model is only read.

    Args:
        model: what `judge` judges.
        inputs: [B, ...], as the model takes them.
        targets: [B, ...], as `judge` takes them.
        judge: figures of an output.
        points: the model's layers, whose positions the rows have.
        additions: the branches; each names one of the points' layers.
        step: written into the rows.

    Raises:
        UserError: a name that the model or the points do not have; a `without_branch` that gives no tensor of
            y's shape; see also `shadow.bare_copy`.
    """
    positions = {point.layer: index for index, point in enumerate(points)}
    for addition in additions:
        if addition.layer not in positions:
            raise UserError(unknown_name("layer of an addition", addition.layer, positions))
    with undisturbed(inputs.device), torch.no_grad():
        copy = bare_copy(model).eval()
        intact = judge(copy(inputs), targets)
        rows: list[Row] = []
        for addition in additions:
            with _without(copy, addition):
                found = judge(copy(inputs), targets)
            at = positions[addition.layer]
            for name, value in found.items():
                rows.append(Row(step=step, layer=at, quantity=f"lesion_{name}", value=value))
        for block in _blocks(additions):
            with ExitStack() as stack:
                for addition in block:
                    stack.enter_context(_without(copy, addition))
                loss = judge(copy(inputs), targets)["loss"]
            at = positions[block[-1].layer]
            rows.append(Row(step=step, layer=at, quantity="block_lesion_loss", value=loss))
    return Lesions(intact=intact, rows=tuple(rows))


def _blocks(additions: Sequence[Addition]) -> list[list[Addition]]:
    """The additions of each block that has several, in the order of the additions.

    A block is what is counted: the name of an addition's place up to its last number.
    """
    found: dict[tuple[str, ...], list[Addition]] = {}
    for addition in additions:
        parts = addition.block.split(".")
        while parts and not parts[-1].isdecimal():
            parts.pop()
        if parts:
            found.setdefault(tuple(parts), []).append(addition)
    return [block for block in found.values() if len(block) > 1]


@contextmanager
def _without(model: nn.Module, addition: Addition) -> Iterator[None]:
    modules: dict[str, Any] = dict(model.named_modules())
    join: Any = modules.get(f"{addition.block}.join")
    if hasattr(join, "without_branch"):
        hook = join.register_forward_hook(partial(_shut, f"{addition.block}.join"))
    elif addition.branch in modules:
        hook = modules[addition.branch].register_forward_hook(lambda _module, _inputs, f: torch.zeros_like(f))
    else:
        raise UserError(unknown_name("module", addition.branch, [each for each in modules if each]))
    try:
        yield
    finally:
        hook.remove()


def _shut(name: str, join: Any, operands: tuple[Tensor, ...], y: Tensor) -> Tensor:
    left = join.without_branch(operands[0])
    # A hook that gives None changes nothing: the branch would count for nothing, unseen.
    if not isinstance(left, Tensor) or left.shape != y.shape:
        what = f"shape {list(left.shape)}" if isinstance(left, Tensor) else type(left).__name__
        raise UserError(f"{name}.without_branch(s): gave {what}; wanted a tensor of shape {list(y.shape)}.")
    return left
