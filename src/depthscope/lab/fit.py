"""Training a group of seeds side by side, one generator of reports.

Shape letters: S seeds still in training, N examples, B examples of a batch, I inputs, T positions, P parameters of one
seed.

The full batch is the case of one batch that is always the same. With batches of its own at each step, a seed's loss is
that of the batch at hand, and what is reported is its mean over the batches since the last regular report.

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
from numpy.typing import NDArray

from depthscope.core.errors import UserError
from depthscope.lab.forms import Form
from depthscope.lab.group import Batches, Group
from depthscope.lab.optimizers import Optimizer

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
        tally: with batches, of each seed the sums of loss and accuracy over the batches since the last regular
            report, float64 [S, 2]; None with the full batch.
    """

    step: int
    optimizer: Mapping[str, Array]
    streak: NDArray[np.int64]
    tally: NDArray[np.float64] | None = None


@dataclass(frozen=True, kw_only=True)
class Report:
    """The group at one step. Step t is the state after t updates.

    Attributes:
        step: t.
        lr: learning rate of the update that led here; None at step 0.
        members: positions in the group of the seeds still in training, ascending; those that leave now included.
        loss: train loss of each member, float64, in nats. With batches, the mean over those of the updates since
            the last regular report, each before its update; at step 0 of the first batch; of a member that
            diverged, of the batch that told so.
        accuracy: train accuracy of each member, float64, as a fraction; with batches likewise.
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


def fit(
    form: Form,
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
    batches: Batches | None = None,
) -> Iterator[Report]:
    """Train a group of seeds and report on the way.

    With the parameters and the memory of seeds at one step, it goes on from there: what it yields is, bit for
    bit, what it would have yielded of these seeds after that step.

    Args:
        form: the network.
        params: the start, one row a seed, in the precision to train in (float32, usually). Not changed.
        x: inputs [S, N, I], or tokens [S, N, T].
        y: labels [S, N], or [S, N, T], integers from 0; below 0 where nothing is asked.
        optimizer: `Adam(...)`, `Momentum(...)`, or another `Optimizer`.
        lr: learning rate of update t = 0, 1, ..., as a function or an array of `num_steps` values.
        num_steps: updates.
        every: a report at every multiple of this step.
        at: further steps to report.
        stop: when a seed may stop early; None: never.
        diverged_above: a seed whose train loss is above this, or not finite, has diverged and leaves. 100
            nats give the right label a probability of e^-100: no step from there is a training run any more.
        memory: of seeds that go on from a step below `num_steps`; None starts at step 0.
        batches: the examples of each step, also of step `num_steps`, at which no update follows; rows as those of
            `x`. None: all of them, at every step. A stop rule wants all.

    Yields:
        A report at step 0, at the steps asked for, at every step at which a seed leaves, and at the last; none at
        the step of `memory`, which had its own.

    Raises:
        UserError: data or parameters that the form does not have; a schedule of another length (at the first `next`).
    """
    if not callable(lr) and len(lr) != num_steps:
        raise UserError(f"lr: wanted {num_steps} values, one a step, got {len(lr)}.")
    if every < 1:
        raise UserError(f"every: wanted 1 or more, got {every}.")
    if memory and not memory.step < num_steps:
        raise UserError(f"memory: wanted a step below num_steps ({num_steps}), got {memory.step}.")
    if stop and batches:
        raise UserError("stop: wanted the full batch, since one batch cannot tell that all is learnt.")
    group = Group(form, params, x, y, batches)
    begin = memory.step if memory else 0
    state = optimizer.start(group.w_SP, begin, memory.optimizer if memory else None)
    streak_S = memory.streak.copy() if memory else np.zeros(len(y), np.int64)
    tally_S2 = np.zeros((len(y), 2)) if memory is None or memory.tally is None else memory.tally.copy()
    asked, rate = set(at), None
    for step in range(begin, num_steps + 1):
        loss_S, p_SCN = group.forward(step)
        bad_S = ~(loss_S <= diverged_above)
        done_S = np.zeros_like(bad_S)
        told = memory is not None and step == begin
        if stop and step % stop.every == 0 and not told:
            passed_S = (group.accuracy() >= stop.accuracy) & (loss_S <= stop.loss)
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
            shown_S2 = np.stack([loss_S, group.accuracy()], axis=-1)
            if batches and step:
                shown_S2 = np.where(bad_S[:, None], shown_S2, tally_S2 / ((step - 1) % every + 1))
            if step % every == 0:
                tally_S2 = np.zeros_like(tally_S2)
            yield Report(
                step=step,
                lr=rate,
                members=tuple(int(member) for member in group.members),
                loss=shown_S2[:, 0],
                accuracy=shown_S2[:, 1],
                params=group.shown,
                departures=departures,
                memory=Memory(
                    step=step, optimizer=state.arrays(), streak=streak_S, tally=tally_S2 if batches else None
                ),
            )
        if leaving_S.all():
            return
        if batches:
            tally_S2 = tally_S2 + np.stack([loss_S, group.accuracy()], axis=-1)
        # The gradient belongs to the whole group's forward pass, so it is taken before anyone leaves.
        group.backward(p_SCN)
        rate = float(lr(step) if callable(lr) else lr[step])
        if leaving_S.any():
            rows = np.flatnonzero(~leaving_S)
            g_SP, streak_S, tally_S2 = group.g_SP[rows], streak_S[rows], tally_S2[rows]
            group.keep(rows)
            group.g_SP[...] = g_SP
            state.keep(rows)
        with np.errstate(all="ignore"):
            state.update(group.w_SP, group.g_SP, rate)
