"""`depthscope.watch`: a training loop measured from outside, and what its numbers mean."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from depthscope.core.errors import UserError, shown

if TYPE_CHECKING:
    from torch import Tensor, nn
    from torch.optim import Optimizer

    from depthscope.analysis.model import ModelDiagnosis
    from depthscope.api.model import Checkup
    from depthscope.core.readings import ModelProfile
    from depthscope.core.structure import Structure
    from depthscope.probes.watching import Record, Watching


def watch(
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
) -> Watch:
    """Watch a training: `with depthscope.watch(model, optimizer) as w:` around the loop, which stays as it is.

    The training ends bit for bit as it would without: weights, buffers, random generators, the optimiser's state.
    After the block nothing is left on the model.

    - **Every step**: by parameter the norm of its gradient before any clipping, its ratio to the weight's norm, the
      norm that the optimiser got where clipping changed it, and whether a gradient came at all. The numbers stay on the
      device. Those of scheduled steps, of skipped ones and of the last are kept; all with `every_step`.
    - **On scheduled steps** (0, 1, 2, 4, 8, ..., then each multiple of `every`): of the loop's own forward pass the
      boundary tensors, their gradients, the blocks' multipliers and the residual additions. The first training pass is
      preceded by one more forward pass, which finds the model's structure, on copies of its arguments, and leaves
      everything as found. A model that runs other operations from pass to pass has one before each scheduled pass.

    What one more forward pass changes where neither torch nor the modules' attributes show it, nobody puts back: a
    global variable, a file, the attributes of an object that the model holds. Where the model holds an iterator or
    an optimiser, or is given an iterator or what cannot be copied, there is no such pass: the boundaries are missing,
    and the record's `conditions.silent` says why.

    One step is one `optimizer.step()`, however many backward passes went before it: of several micro-batches norms are
    summed by their squares. Several optimisers that step after one backward pass make one step. Without an optimiser, a
    step is all backward passes between two clearings of the gradients, or what `w.step()` says. A step that was skipped
    because a gradient was not finite is a step and has its record, which names the layer. Passes under `no_grad` or
    in eval mode are none.

    Written are `depth/{quantity}/{name}`, as `depth/grad_norm/layer3.0` (|dL/dh| at a boundary),
    `depth/grad_multiplier/h.4`, `depth/residual_ratio/h.4:add`, `depth/weight_grad_norm/fc.weight`, and
    `depth/model/{quantity}`; a module's second call is `{name}#1`.

    Args:
        model: as the loop calls it, compiled, DataParallel and DDP included.
        optimizer: its optimiser, or several.
        every: steps between two measurements of the boundaries.
        scaler: the loop's GradScaler, so that all gradients are told without its factor.
        writer: a TensorBoard SummaryWriter, a W&B run, mlflow, anything with `log(values, step)` or
            `log_metrics(values, step)`, a function of the two, or a list of these. One that fails warns once.
        filter: which layers are written (all are kept): indices of blocks (0, 1, -2, -1), "mid", or glob patterns.
        every_step: keep and write the parameters' norms of every step.
        every_rank: write from every process of a distributed training, not from rank 0 alone.
        first_step: number of the first step, of a training that goes on from a checkpoint.

    Raises:
        UserError: an argument is not what is wanted.
        MissingDependencyError: PyTorch is not installed.
    """
    from depthscope.probes.guard import unwrapped
    from depthscope.probes.watching import Watching

    return Watch(
        Watching(
            model,
            optimizer,
            every,
            scaler=scaler,
            writer=writer,
            filter=filter,
            every_step=every_step,
            every_rank=every_rank,
            first_step=first_step,
        ),
        type(unwrapped(model)).__name__,
    )


class Watch:
    """A watched training; see `watch`. `print` shows what `checkup` says."""

    def __init__(self, watching: Watching, name: str) -> None:
        self._watching = watching
        self._name = name

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def __repr__(self) -> str:
        steps = [record.step for record in self.records()]
        return f"Watch({self.num_steps:,} steps, {len(steps):,} recorded{f': {_short(steps)}' if steps else ''})"

    def __str__(self) -> str:
        return str(self.checkup()) if self.records() else repr(self)

    def _repr_html_(self) -> str:
        return self.checkup()._repr_html_() if self.records() else f"<pre>{self!r}</pre>"

    def start(self) -> None:
        """Begin, where no `with` block fits."""
        self._watching.start()

    def stop(self) -> None:
        """End, and take every hook away. What was recorded stays."""
        self._watching.stop()

    def step(self) -> None:
        """Say that a step is over, where no optimiser was given."""
        self._watching.step()

    def loss(self, value: float | Tensor) -> None:
        """Tell the training loss of the step under way or just over. A model that gives its own `loss` need not."""
        self._watching.loss(value)

    def validation(self, value: float | Tensor) -> None:
        """Tell a validation loss after the steps so far: without, a diagnosis cannot tell overfitting from depth."""
        self._watching.validation(value)

    @property
    def num_steps(self) -> int:
        """The number of the next step."""
        return self._watching.num_steps

    @property
    def structure(self) -> Structure:
        """What was recognised in the model."""
        return self._watching.structure

    @property
    def profile(self) -> ModelProfile:
        """Everything recorded, as `depthscope.probe` gives it of one step."""
        return self._watching.profile

    @property
    def losses(self) -> list[tuple[int, float]]:
        """`(step, training loss)`: as told, else as the model gave it on recorded steps."""
        told = self._watching.curve("loss")
        return told or [(each.step, each.value) for each in self.profile.readings if each.quantity == "loss"]

    @property
    def validations(self) -> list[tuple[int, float]]:
        """`(step, validation loss)` as told."""
        return self._watching.curve("validation")

    def records(self) -> tuple[Record, ...]:
        """One a recorded step: readings, conditions, statuses of parameters."""
        return self._watching.records()

    def last(self) -> Record | None:
        """The last step that is over, recorded or not."""
        return self._watching.last()

    def diagnose(self, *, step: int | None = None) -> ModelDiagnosis:
        """What the numbers mean: where and why depth hinders this training, or what does instead.

        The curves told by `loss` and `validation` are taken in.

        Args:
            step: which record; by default the last with a boundary profile.

        Raises:
            UserError: nothing was recorded, or not that step.
        """
        from depthscope.analysis.model import diagnose

        profile = self.profile
        at = self._step(step, "diagnose")
        found = diagnose(profile, step=at, train_curve=self.losses, validation_curve=self.validations)
        if self.losses and not self.validations:
            note = "no validation loss was told (w.validation): overfitting was not judged"
            return found.model_copy(update={"notes": (*found.notes, note)})
        return found

    def checkup(self, *, step: int | None = None) -> Checkup:
        """One recorded step as `depthscope.probe` gives it, with the course of the training beside it.

        Args:
            step: which record; by default the last with a boundary profile.

        Raises:
            UserError: nothing was recorded, or not that step.
        """
        from depthscope.analysis.model import Expectation, expected
        from depthscope.api.model import Checkup
        from depthscope.core.readings import Course, ModelProfile

        diagnosis = self.diagnose(step=step)
        at, whole = diagnosis.step, self.profile
        record = next(each for each in self.records() if each.step == at)
        own = ModelProfile(
            structure=whole.structure,
            readings=tuple(each for each in whole.readings if each.step == at),
            conditions={at: record.conditions},
            statuses=record.statuses,
        )
        return Checkup(
            profile=own,
            diagnosis=diagnosis,
            # Theory speaks of weights as they are drawn, not of trained ones.
            expected=expected(own.structure, own) if at == 0 else Expectation(),
            name=f"{self._name} at step {at:,}",
            command="with depthscope.watch(model, optimizer) as w: ...",
            course=Course(profile=whole, losses=tuple(self.losses), validations=tuple(self.validations)),
        )

    def page(self, path: str | Path | None = None, *, step: int | None = None, lang: str = "en") -> bytes:
        """One offline HTML file: the losses, multipliers and ratios over the steps, and one step in full.

        Args:
            path: file to write.
            step: which record is shown in full; by default the last with a boundary profile.
            lang: en or zh.

        Raises:
            UserError: nothing was recorded, or not that step; no such language; the file cannot be written.
        """
        return self.checkup(step=step).page(path, lang=lang)

    def _step(self, step: int | None, verb: str) -> int:
        steps = self.profile.steps()
        if not steps:
            raise UserError(f"watch: {verb}: nothing was recorded yet: no training step was seen.")
        if step is None:
            return max((each.step for each in self.profile.readings if each.place == "boundary"), default=steps[-1])
        if step not in steps:
            raise UserError(f"watch: {verb}: step {shown(step)} was not recorded; recorded: {_short(list(steps))}.")
        return step

    def to_pandas(self) -> Any:
        """A DataFrame with one row a reading: step, place, name, quantity, value.

        Raises:
            MissingDependencyError: pandas is not installed.
        """
        from depthscope.probes.watching.history import to_pandas

        return to_pandas(self.profile.readings)


def _short(steps: list[int]) -> str:
    numbers = [f"{each:,}" for each in steps]
    return ", ".join(numbers if len(numbers) < 9 else [*numbers[:6], "...", *numbers[-2:]])
