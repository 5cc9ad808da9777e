"""A training, watched: what a `Tap` tells is made into steps, what a step holds into records."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import TracebackType
from typing import Any, Self

import torch
from torch import Tensor, nn
from torch.optim import Optimizer

from depthscope.core.errors import UserError, shown
from depthscope.core.readings import ModelProfile, Reading
from depthscope.core.structure import Structure
from depthscope.probes.guard import unwrapped
from depthscope.probes.norms import to_host
from depthscope.probes.watching.attempt import Attempt
from depthscope.probes.watching.boundaries import Boundaries
from depthscope.probes.watching.choice import chooser, parsed
from depthscope.probes.watching.history import History
from depthscope.probes.watching.parameters import Parameters
from depthscope.probes.watching.passes import Pass
from depthscope.probes.watching.record import Record, make_record
from depthscope.probes.watching.schedule import is_scheduled
from depthscope.probes.watching.steps import Steps
from depthscope.probes.watching.tap import Tap
from depthscope.probes.watching.writers import as_write

PREFIX = "depth"


class Watching:
    """Watches one training between `start` and `stop`, or in a `with` block. See `depthscope.watch`.

    Args:
        model: as the loop calls it, wrapped or not.
        optimizer: one, several, or None.
        every: the boundaries are measured at steps 0, 1, 2, 4, 8, ... and then at each multiple of it.
        scaler: the loop's GradScaler.
        writer: see `watching.writers`.
        filter: which layers are written; see `watching.choice`. The profile holds all.
        every_step: record and write the parameters' norms of every step; else those of scheduled and skipped ones.
        every_rank: write from every process of a distributed training; else from rank 0 alone.
        first_step: number of the first step.

    Raises:
        UserError: an argument is not what is wanted.
    """

    def __init__(
        self,
        model: nn.Module,
        optimizer: Optimizer | Sequence[Optimizer] | None = None,
        every: int = 100,
        *,
        scaler: Any = None,
        writer: object = None,
        filter: object = None,
        every_step: bool = False,
        every_rank: bool = False,
        first_step: int = 0,
    ) -> None:
        if not isinstance(model, nn.Module):
            raise UserError(f"watch: model: wanted a torch.nn.Module, got {shown(model)}.")
        if isinstance(every, bool) or not isinstance(every, int) or every < 1:
            raise UserError(f"watch: every: wanted a whole number of steps, 1 or more; got {shown(every)}.")
        if isinstance(first_step, bool) or not isinstance(first_step, int) or first_step < 0:
            raise UserError(f"watch: first_step: wanted a whole number, 0 or more; got {shown(first_step)}.")
        if scaler is not None and not callable(getattr(scaler, "unscale_", None)):
            raise UserError(f"watch: scaler: wanted a torch.amp.GradScaler, got {shown(scaler)}.")
        optimizers = _optimizers(optimizer)
        inner = unwrapped(model)
        self._parameters = Parameters(inner)
        held = self._parameters.indices_of(
            each for one in optimizers for group in one.param_groups for each in group["params"]
        )
        if optimizers and not held:
            raise UserError(
                "watch: optimizer: it holds no parameter of the model. Give the one that trains it, made after the "
                "model was moved or wrapped."
            )
        self._inner = inner
        self._every = every
        self._every_step = every_step
        self._has_optimizer = bool(optimizers)
        self._filter = parsed(filter)
        self._write = as_write(writer if every_rank or _rank() == 0 else None)
        self._chosen: Callable[[Reading], bool] | None = None
        self._boundaries = Boundaries(model, inner)
        self._steps = Steps(self._parameters, optimizers, scaler, begin=self._begin, done=self._done)
        self._steps.step = first_step
        self._tap = Tap(model, inner, follow=self._boundaries.possible, optimizers=optimizers, listener=self)
        self._history = History()
        self._waiting: list[Attempt] = []
        self._last: Attempt | None = None
        self._curves: dict[str, list[tuple[int, float | Tensor]]] = {"loss": [], "validation": []}
        self._open = False

    def start(self) -> Self:
        """Begin to watch, or go on after a `stop`. `with` does it too."""
        if self._open:
            raise UserError("watch: it is watching already.")
        self._open = True
        self._tap.open()
        return self

    def stop(self) -> None:
        """End it: the last record is made and every hook taken away. The records stay."""
        if self._open:
            self._open = False
            self._tap.close()
            self._steps.close()
            self._bring(self._waiting)

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def step(self) -> None:
        """Say that a step is over, in a loop whose optimiser is not known here.

        Without an optimiser and without this, a step is all backward passes between two clearings of the gradients.

        Raises:
            UserError: the optimiser is known, or nothing is watched.
        """
        if self._has_optimizer:
            raise UserError("watch: step() is for a loop whose optimizer was not given; with it, steps are seen.")
        if not self._open:
            raise UserError("watch: step() outside of the with block: nothing is watched.")
        self._steps.mark()

    def loss(self, value: float | Tensor) -> None:
        """Tell the training loss of the step under way (or just over); a tensor is not waited for."""
        self._tell("loss", self._steps.current, value)

    def validation(self, value: float | Tensor) -> None:
        """Tell a validation loss, taken after the steps so far."""
        self._tell("validation", self._steps.step, value)

    @property
    def num_steps(self) -> int:
        """The number of the next step: of those seen so far, skipped ones too, where the first was 0."""
        return self._steps.step

    @property
    def structure(self) -> Structure:
        """What was recognised in the model at its first training pass; before it, its parameters alone."""
        return self._boundaries.structure

    @property
    def profile(self) -> ModelProfile:
        """All records."""
        self._bring(self._waiting)
        return self._history.profile(self.structure, dict(self.curve("loss")))

    def records(self) -> tuple[Record, ...]:
        """One a step that was recorded, in order."""
        self._bring(self._waiting)
        return self._history.records()

    def last(self) -> Record | None:
        """The last step that is over, recorded or not; it waits for the device."""
        return None if self._last is None else self._record(self._last)

    def curve(self, name: str) -> list[tuple[int, float]]:
        """`(step, value)` of what was told: `loss` or `validation`."""
        told = self._curves[name]
        tensors = [value for _, value in told if isinstance(value, Tensor)]
        numbers = iter(to_host(tensors))
        told[:] = [(step, next(numbers)[0] if isinstance(value, Tensor) else value) for step, value in told]
        return [(step, value) for step, value in told if not isinstance(value, Tensor)]

    def pass_begins(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Pass | None:
        """See `Listener`."""
        this = Pass(args, kwargs)
        attempt = self._steps.pass_begins(this)
        if not self._boundaries.possible:
            self._recognise(args, kwargs)
        return None if attempt is None else this

    def follow(self, ahead: Pass, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
        """See `Listener`."""
        self._recognise(args, kwargs)
        return self._boundaries.follow(ahead) if self._steps.is_scheduled else None

    def pass_ends(self, ahead: Pass, output: object, tensors: Sequence[Tensor]) -> None:
        """See `Listener`."""
        ahead.ends(output)
        self._boundaries.pass_ends(ahead)

    def gradient_begins(self, ahead: Pass) -> bool:
        """See `Listener`."""
        return self._steps.gradient_begins(ahead)

    def backward_over(self) -> None:
        """See `Listener`."""
        self._steps.backward_over()

    def step_begins(self, optimizer: Optimizer, closure: bool) -> None:
        """See `Listener`."""
        self._steps.step_begins(optimizer, closure)

    def step_ends(self, optimizer: Optimizer) -> None:
        """See `Listener`."""
        self._steps.step_ends(optimizer)

    def _recognise(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> None:
        self._boundaries.recognise(args, kwargs, scheduled=self._steps.is_scheduled)
        if self._chosen is None and self._boundaries.is_known:
            self._chosen = chooser(self._filter, self.structure)

    def _begin(self, step: int) -> Attempt:
        scheduled = is_scheduled(step, self._every)
        if scheduled:
            self._parameters.refresh()
        return Attempt(step=step, scheduled=scheduled, names=self._parameters.names)

    def _done(self, attempt: Attempt) -> None:
        self._last = attempt
        if attempt.scheduled or attempt.skipped or self._every_step or attempt.found_inf is not None:
            self._waiting.append(attempt)
        # Whether a fused optimiser has skipped is known on the device alone: that waits for the next scheduled step.
        if attempt.scheduled or attempt.skipped:
            self._bring(self._waiting)

    def _bring(self, attempts: list[Attempt]) -> None:
        for attempt in attempts:
            record = self._record(attempt)
            if attempt.scheduled or self._every_step or record.conditions.skipped:
                self._history.add(record)
                self._write_out(record)
        attempts.clear()
        for name in self._curves:
            self.curve(name)  # numbers of earlier steps need not stay on the device

    def _record(self, attempt: Attempt) -> Record:
        return make_record(
            attempt,
            self._parameters,
            self.structure,
            silent=self._boundaries.why_silent(attempt),
            changes=self._boundaries.changes,
            training=self._inner.training,
        )

    def _write_out(self, record: Record) -> None:
        chosen = self._chosen or (lambda _reading: True)
        self._write({metric(each): each.value for each in record.readings if chosen(each)}, record.step)

    def _tell(self, name: str, step: int, value: float | Tensor) -> None:
        if isinstance(value, Tensor):
            if value.numel() != 1:
                raise UserError(f"watch: {name}: wanted one number, got a tensor of shape {tuple(value.shape)}.")
            self._curves[name].append((step, value.detach().clone().reshape(1)))
        elif isinstance(value, int | float) and not isinstance(value, bool):
            self._curves[name].append((step, float(value)))
        else:
            raise UserError(f"watch: {name}: wanted one number, got {shown(value)}.")


def metric(reading: Reading) -> str:
    """The name that a reading is written under.

    >>> metric(Reading(step=0, place="boundary", name="h.0#1", quantity="grad_norm", value=1.0))
    'depth/grad_norm/h.0#1'
    >>> metric(Reading(step=0, place="model", name="", quantity="grad_norm", value=1.0))
    'depth/model/grad_norm'
    """
    if reading.place == "model":
        return f"{PREFIX}/model/{reading.quantity}"
    return f"{PREFIX}/{reading.quantity}/{reading.name}"


def _optimizers(given: object) -> tuple[Optimizer, ...]:
    """Plain optimisers, each once: those of Accelerate and Lightning wrap one."""
    listed = list(given) if isinstance(given, list | tuple) else [] if given is None else [given]
    found: dict[int, Optimizer] = {}
    for each in listed:
        inner: Any = each
        while isinstance(getattr(inner, "optimizer", None), Optimizer):  # a wrapper may be an Optimizer by name alone
            inner = inner.optimizer
        if not isinstance(inner, Optimizer):
            raise UserError(f"watch: optimizer: wanted a torch.optim.Optimizer or a list of them; got {shown(each)}.")
        found[id(inner)] = inner
    return tuple(found.values())


def _rank() -> int:
    ready = torch.distributed.is_available() and torch.distributed.is_initialized()
    return torch.distributed.get_rank() if ready else 0
