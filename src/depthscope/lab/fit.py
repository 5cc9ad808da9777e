"""Training a group of seeds side by side, full batch, one generator of reports.

Shape letters: S seeds still in training, N examples, I inputs, P parameters of one seed.

The promise: a seed trained alone gives the same bits as the same seed in a group, whoever else is in
the group and whenever they leave it. It holds because (a) every matrix product is one BLAS call a seed,
of the same shape; (b) every other operation is entry by entry, or sums along an axis that lies
contiguous within one seed; (c) no decision about a seed looks at another. Nor does reporting change
anything: early stopping keeps its own calendar, and reports hold read-only views.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import DTypeLike, NDArray

from depthscope.core.errors import UserError
from depthscope.lab import layers
from depthscope.lab.network import Network
from depthscope.lab.optimizers import Optimizer
from depthscope.lab.stacks import Stack, parameter_shapes

Array = NDArray[Any]
Schedule = Callable[[int], float] | Sequence[float] | NDArray[np.floating[Any]]
Reason = Literal["completed", "stopped", "diverged"]


@dataclass(frozen=True, kw_only=True)
class StopRule:
    """When a seed has learnt its task and may stop; a declared part of the recipe.

    A seed stops at the `checks`-th check in a row at which its train accuracy is at least `accuracy` and
    its train loss at most `loss`. Checks fall on steps 0, every, 2*every, ...; they are apart from the
    steps of reports, so that watching a run more closely does not change it.

    Attributes:
        loss: bound of the train loss, in nats.
        accuracy: bound of the train accuracy, as a fraction.
        checks: number of checks in a row, 1 or more.
        every: steps between checks, 1 or more.
    """

    loss: float
    accuracy: float = 1.0
    checks: int = 3
    every: int = 10

    def __post_init__(self) -> None:
        if self.checks < 1 or self.every < 1:
            raise UserError(f"stop rule: wanted checks and every of 1 or more, got {self.checks} and {self.every}.")


@dataclass(frozen=True, kw_only=True)
class Departure:
    """A seed leaves training; every seed of a group does so exactly once.

    Attributes:
        member: its position in the group.
        step: the step at whose report it leaves.
        reason: `completed` all steps, `stopped` by the stop rule, or `diverged`.
    """

    member: int
    step: int
    reason: Reason


@dataclass(frozen=True, kw_only=True)
class Memory:
    """What training remembers beside the parameters, between the report of a step and the next update.

    Attributes:
        step: updates done.
        optimizer: the optimiser's arrays by name, one row a seed.
        streak: of each seed, the checks in a row that the stop rule has seen passed, this step's included, int64.
    """

    step: int
    optimizer: Mapping[str, Array]
    streak: NDArray[np.int64]


@dataclass(frozen=True, kw_only=True)
class Report:
    """The group at one step. Step t is the state after t updates.

    Attributes:
        step: t.
        lr: learning rate of the update that led here; None at step 0.
        members: positions in the group of the seeds still in training, ascending; those that leave now included.
        loss: train loss of each member, float64, in nats.
        accuracy: train accuracy of each member, float64, as a fraction.
        params: parameter name to array with one row a member. Read-only views of the state that training
            goes on with: good until the generator is resumed. Copy what is to be kept.
        departures: the members that leave after this report.
        memory: what training goes on with beside the parameters: views with the rows of `members`, good until
            the generator is resumed. With the parameters' rows it makes a start for `fit`.
    """

    step: int
    lr: float | None
    members: tuple[int, ...]
    loss: NDArray[np.float64]
    accuracy: NDArray[np.float64]
    params: Mapping[str, Array]
    departures: tuple[Departure, ...]
    memory: Memory


def views(flat_SP: Array, shapes: Mapping[str, tuple[int, ...]]) -> dict[str, Array]:
    """Each tensor as a view [S, *shape] of the flat array that holds them one after another."""
    found, start = {}, 0
    for name, shape in shapes.items():
        size = int(np.prod(shape))
        found[name] = flat_SP[:, start : start + size].reshape(len(flat_SP), *shape)
        start += size
    return found


def feature_major(x_SNI: Array, dtype: DTypeLike) -> Array:
    """Examples last, contiguous: [S, I, N], as `layers` wants them."""
    return np.ascontiguousarray(np.swapaxes(x_SNI, -1, -2), dtype=dtype)


def accuracy(scores_SCN: Array, y_SN: Array) -> NDArray[np.float64]:
    """Share of the examples whose label has the highest score, [S]; the first class wins a tie."""
    hits_SN = scores_SCN.argmax(axis=-2) == y_SN
    return np.asarray(hits_SN.sum(axis=-1) / hits_SN.shape[-1], np.float64)


def evaluate(
    stack: Stack, params: Mapping[str, Array], x: Array, y: Array
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Loss and accuracy of each seed on any data, in float64.

    Batch norm uses the statistics of the batch at hand, as everywhere in the laboratory.

    Args:
        stack: the network.
        params: one row a seed.
        x: inputs [S, N, I].
        y: labels [S, N].

    Returns:
        Loss [S] in nats, accuracy [S] as a fraction.
    """
    wide = {name: np.asarray(value, np.float64) for name, value in params.items()}
    net = Network(stack, x.shape[0], x.shape[1], np.float64)
    logits_SCN = net.forward(wide, feature_major(x, np.float64))
    loss_S, _ = layers.cross_entropy_forward(logits_SCN, y)
    return np.asarray(loss_S, np.float64), accuracy(logits_SCN, y)


class _Group:
    """The seeds still in training, with their flat parameters, gradients, data and buffers."""

    def __init__(self, stack: Stack, params: Mapping[str, Array], x: Array, y: Array) -> None:
        self.stack = stack
        self.shapes = parameter_shapes(stack)
        num_seeds = len(y)
        for name, shape in self.shapes.items():
            got = params[name].shape if name in params else "nothing"
            if got != (num_seeds, *shape):
                raise UserError(f"params[{name!r}]: wanted shape {(num_seeds, *shape)}, got {got}.")
        dtype = params["stem.weight"].dtype
        self.w_SP = np.concatenate([params[name].reshape(num_seeds, -1) for name in self.shapes], axis=1)
        self.x_SIN, self.y_SN = feature_major(x, dtype), np.array(y)
        self.members = np.arange(num_seeds)
        self._build()

    def _build(self) -> None:
        self.g_SP = np.empty_like(self.w_SP)
        self.params, self.grads = views(self.w_SP, self.shapes), views(self.g_SP, self.shapes)
        frozen = self.w_SP.view()
        frozen.flags.writeable = False
        self.shown = views(frozen, self.shapes)
        self.net = Network(self.stack, len(self.w_SP), self.y_SN.shape[1], self.w_SP.dtype)

    def keep(self, rows: Array) -> None:
        self.w_SP, self.x_SIN, self.y_SN = self.w_SP[rows], self.x_SIN[rows], self.y_SN[rows]
        self.members = self.members[rows]
        self._build()

    def forward(self) -> tuple[Array, Array, Array]:
        """Loss [S], accuracy [S], probabilities [S, C, N]."""
        # A diverging seed overflows: that is data, told by its loss, and no reason for a warning.
        with np.errstate(all="ignore"):
            logits_SCN = self.net.forward(self.params, self.x_SIN)
            loss_S, p_SCN = layers.cross_entropy_forward(logits_SCN, self.y_SN)
        return np.asarray(loss_S, np.float64), accuracy(logits_SCN, self.y_SN), p_SCN

    def backward(self, p_SCN: Array) -> None:
        with np.errstate(all="ignore"):
            self.net.backward(self.params, layers.cross_entropy_backward(p_SCN, self.y_SN), self.grads)


def fit(
    stack: Stack,
    params: Mapping[str, Array],
    x: Array,
    y: Array,
    *,
    optimizer: Optimizer,
    lr: Schedule,
    num_steps: int,
    every: int = 10,
    at: Collection[int] = (),
    stop: StopRule | None = None,
    diverged_above: float = 100.0,
    memory: Memory | None = None,
) -> Iterator[Report]:
    """Train a group of seeds and report on the way.

    With the parameters and the memory of seeds at one step, it goes on from there: what it yields is, bit for
    bit, what it would have yielded of these seeds after that step.

    Args:
        stack: the network.
        params: the start, one row a seed, in the precision to train in (float32, usually). Not changed.
        x: inputs [S, N, I].
        y: labels [S, N], integers from 0.
        optimizer: `Adam(...)`, `Momentum(...)`, or another `Optimizer`.
        lr: learning rate of update t = 0, 1, ..., as a function or an array of `num_steps` values.
        num_steps: updates.
        every: a report at every multiple of this step.
        at: further steps to report.
        stop: when a seed may stop early; None: never.
        diverged_above: a seed whose train loss is above this, or not finite, has diverged and leaves. 100
            nats give the right label a probability of e^-100: no step from there is a training run any more.
        memory: of seeds that go on from a step below `num_steps`; None starts at step 0.

    Yields:
        A report at step 0, at the steps asked for, at every step at which a seed leaves, and at the last; none at
        the step of `memory`, which had its own.

    Raises:
        UserError: parameters of other shapes than the stack has, or a schedule of another length (at the first `next`).
    """
    if not callable(lr) and len(lr) != num_steps:
        raise UserError(f"lr: wanted {num_steps} values, one a step, got {len(lr)}.")
    if every < 1:
        raise UserError(f"every: wanted 1 or more, got {every}.")
    if memory and not memory.step < num_steps:
        raise UserError(f"memory: wanted a step below num_steps ({num_steps}), got {memory.step}.")
    group = _Group(stack, params, x, y)
    begin = memory.step if memory else 0
    state = optimizer.start(group.w_SP, begin, memory.optimizer if memory else None)
    streak_S = memory.streak.copy() if memory else np.zeros(len(y), np.int64)
    asked, rate = set(at), None
    for step in range(begin, num_steps + 1):
        loss_S, accuracy_S, p_SCN = group.forward()
        bad_S = ~(loss_S <= diverged_above)
        done_S = np.zeros_like(bad_S)
        told = memory is not None and step == begin
        if stop and step % stop.every == 0 and not told:
            passed_S = (accuracy_S >= stop.accuracy) & (loss_S <= stop.loss)
            streak_S = np.where(passed_S, streak_S + 1, 0)
            done_S = streak_S >= stop.checks
        last = step == num_steps
        leaving_S = bad_S | done_S | last
        if not told and (leaving_S.any() or step % every == 0 or step in asked):
            departures = tuple(
                Departure(
                    member=int(group.members[row]),
                    step=step,
                    reason="diverged" if bad_S[row] else "stopped" if done_S[row] else "completed",
                )
                for row in np.flatnonzero(leaving_S)
            )
            yield Report(
                step=step,
                lr=rate,
                members=tuple(int(member) for member in group.members),
                loss=loss_S,
                accuracy=accuracy_S,
                params=group.shown,
                departures=departures,
                memory=Memory(step=step, optimizer=state.arrays(), streak=streak_S),
            )
        if leaving_S.all():
            return
        # The gradient belongs to the whole group's forward pass, so it is taken before anyone leaves.
        group.backward(p_SCN)
        rate = float(lr(step) if callable(lr) else lr[step])
        if leaving_S.any():
            rows = np.flatnonzero(~leaving_S)
            g_SP, streak_S = group.g_SP[rows], streak_S[rows]
            group.keep(rows)
            group.g_SP[...] = g_SP
            state.keep(rows)
        with np.errstate(all="ignore"):
            state.update(group.w_SP, group.g_SP, rate)
