"""One variant with one seed: built, stepped, evaluated; what goes wrong in it is its outcome."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import torch
from torch import Tensor, nn

from depthscope.core.errors import UserError, shown, words_of
from depthscope.core.readings import ModelProfile
from depthscope.probes.guard import unwrapped
from depthscope.probes.measure.batch import read_batch
from depthscope.probes.measure.objective import LossFn, start_of
from depthscope.probes.measure.profile import profile_model
from depthscope.probes.numbers import tensor_digest
from depthscope.record.schema import Outcome
from depthscope.record.variants import VariantRun
from depthscope.train.measure import diverged, divergence_bound
from depthscope.train.usercode import asked_to_end, told
from depthscope.train.variants.generators import seed_all

Factory = Callable[[], nn.Module]
MakeOptimizer = Callable[[Iterable[nn.Parameter]], torch.optim.Optimizer]


def build(name: str, factory: Factory, seed: int) -> nn.Module:
    """A model from its factory, the global generators put at the seed's start before.

    Raises:
        UserError: the factory raised, or gave no model.
    """
    if not callable(factory):
        raise UserError(f"compare: {name}: wanted a function that builds the model, got {shown(factory)}.")
    if isinstance(factory, nn.Module):
        raise UserError(f"compare: {name}: wanted a function that builds the model, got a model. Give `lambda: ...`.")
    seed_all(seed, "init", "variants")
    try:
        model: Any = factory()
    except BaseException as error:
        if asked_to_end(error):
            raise
        if isinstance(error, UserError):  # says all itself
            raise
        raise UserError(f"compare: {name}: the factory raised {told(error)}") from error
    if isinstance(model, tuple) and model and isinstance(model[0], nn.Module):
        model = model[0]  # (model, batch), as `depthscope probe` takes it
    if not isinstance(model, nn.Module):
        raise UserError(f"compare: {name}: the factory gave {shown(model)}; wanted a torch.nn.Module.")
    for key, tensor in (*model.named_parameters(), *model.named_buffers()):
        if nn.parameter.is_lazy(tensor):
            raise UserError(
                f"compare: {name}: {key} has no values yet (a lazy layer). Run the model on one batch in the factory."
            )
    return model


def initial(model: nn.Module) -> dict[str, Tensor]:
    """Parameters and buffers under all names that a state dict has."""
    return dict(unwrapped(model).state_dict())


class Arm:
    """A variant in training.

    Attributes:
        outcome: None while it goes on.
        losses: so far.
    """

    def __init__(
        self, name: str, seed: int, model: nn.Module, loss_fn: LossFn | None, make_optimizer: MakeOptimizer
    ) -> None:
        self.name, self.seed, self.model, self.loss_fn = name, seed, model, loss_fn
        self.outcome: Outcome | None = None
        self.losses: list[float] = []
        tensors = initial(model)
        self.init = {key: tensor_digest(value) for key, value in tensors.items()}
        self.shapes = {key: tuple(value.shape) for key, value in tensors.items()}
        self.num_parameters = sum(each.numel() for each in model.parameters())
        self.first: ModelProfile | None = None
        self.last: ModelProfile | None = None
        self.unprofiled = ""
        self.figures: dict[str, float] = {}
        self._bound = math.inf
        self._optimizer: torch.optim.Optimizer | None = None
        self._guarded(lambda: self._make_optimizer(make_optimizer))

    def _make_optimizer(self, make: MakeOptimizer) -> None:
        made: Any = make([each for each in self.model.parameters() if each.requires_grad])
        if not callable(getattr(made, "step", None)):
            raise UserError(f"compare: optimizer: wanted a torch optimizer from it, got {shown(made)}.")
        self._optimizer = made

    def profile(self, batch: Any, *, step: int) -> ModelProfile | None:
        """What the probe sees; None where it cannot, and `unprofiled` says why."""
        try:
            return profile_model(self.model, batch, self.loss_fn, step=step)
        except UserError as error:
            self.unprofiled = words_of(error)
            return None

    def step(self, batch: Any) -> None:
        """One update, in train mode. The caller has put the generators where this step's draws start."""
        if self.outcome is None:
            self._guarded(lambda: self._step(batch))

    def _step(self, batch: Any) -> None:
        assert self._optimizer is not None
        self._optimizer.zero_grad(set_to_none=True)
        loss, _, _ = self._loss(batch)
        value = float(loss.detach())
        self.losses.append(value)
        if not value <= self._bound or not math.isfinite(value):
            self.outcome = diverged(len(self.losses) - 1, value, model=self.model)
            return
        loss.backward()  # type: ignore[no-untyped-call]
        self._optimizer.step()

    def evaluate(self, batches: Iterable[Any], split: str) -> None:
        """Clean figures: eval mode, no gradient, means over examples."""

        def run() -> None:
            losses: list[tuple[float, int]] = []
            hits: list[tuple[int, int]] = []
            modes = {each: each.training for each in self.model.modules()}
            self.model.eval()
            try:
                with torch.no_grad():
                    for batch in batches:
                        loss, count, right = self._loss(batch, backward=False)
                        losses.append((float(loss), count))
                        hits += [right] if right is not None else []
            finally:
                for module, mode in modes.items():
                    module.training = mode
            total = sum(count for _, count in losses)
            loss_mean = sum(value * count for value, count in losses) / total
            if not math.isfinite(loss_mean) or loss_mean > self._bound:
                self.outcome = self.outcome or diverged(len(self.losses), loss_mean, model=self.model)
                return
            self.figures[f"{split}_loss"] = loss_mean
            if hits:
                self.figures[f"{split}_accuracy"] = sum(right for right, _ in hits) / sum(of for _, of in hits)

        if self.outcome is None:
            self._guarded(run)

    def finished(self) -> VariantRun:
        """The record of it."""
        outcome = self.outcome or Outcome(status="completed", step=len(self.losses))
        return VariantRun(
            arm=self.name,
            seed=self.seed,
            outcome=outcome,
            losses=tuple(self.losses),
            figures=self.figures if outcome.status == "completed" else {},
            init=self.init,
            shapes=self.shapes,
            first=self.first,
            last=self.last,
            unprofiled=self.unprofiled,
            num_parameters=self.num_parameters,
        )

    def _loss(self, batch: Any, *, backward: bool = True) -> tuple[Tensor, int, tuple[int, int] | None]:
        inner = unwrapped(self.model)
        home = next((each.device for each in inner.parameters()), torch.device("cpu"))
        given = read_batch(_moved(batch, home), inner, with_loss=self.loss_fn is not None)
        own = given.converted(torch.clone)  # a variant that writes its input must not change the next one's
        output = self.model(*own.args, **own.kwargs)
        if not backward:
            loss, classes = _plain_loss(output, own.targets, self.loss_fn)
        else:
            start = start_of(output, own.targets, self.loss_fn, seed=0)
            if start.objective == "cotangent":
                raise UserError("compare: training needs a loss: give loss_fn, or a model that gives output.loss.")
            loss, classes = start.tensors[0], start.num_classes
            if classes and math.isinf(self._bound):
                self._bound = divergence_bound(math.log(max(classes, 2)))
        return loss, given.num_examples, _hits(output, own.targets)

    def _guarded(self, work: Callable[[], None]) -> None:
        try:
            work()
        except BaseException as error:
            if asked_to_end(error):
                raise
            reason = words_of(error) if isinstance(error, UserError) else told(error)
            self.outcome = Outcome(status="failed", step=len(self.losses), reason=reason)


def _plain_loss(output: Any, targets: Any, loss_fn: LossFn | None) -> tuple[Tensor, int | None]:
    if loss_fn is not None:
        return loss_fn(output, targets), None
    own = output.get("loss") if isinstance(output, Mapping) else getattr(output, "loss", None)
    assert isinstance(own, Tensor)  # the training step saw it
    return own, None


def _hits(output: Any, targets: Any) -> tuple[int, int] | None:
    """(right, of how many) where the targets are classes of the scores, else None."""
    scores = output if isinstance(output, Tensor) else getattr(output, "logits", None)
    if not (isinstance(scores, Tensor) and isinstance(targets, Tensor)) or scores.ndim < 2:
        return None
    if targets.dtype not in (torch.int64, torch.int32, torch.uint8):
        return None
    if targets.shape == scores.shape[:1] + scores.shape[2:]:
        chosen = scores.argmax(dim=1)
    elif targets.shape == scores.shape[:-1]:
        chosen = scores.argmax(dim=-1)
    else:
        return None
    counted = targets >= 0  # -100 and the like are left out of a loss
    return int(((chosen == targets) & counted).sum()), int(counted.sum())


def _moved(value: Any, device: torch.device) -> Any:
    if isinstance(value, Tensor):
        return value.to(device)
    if isinstance(value, Mapping):
        return {name: _moved(item, device) for name, item in value.items()}
    if isinstance(value, tuple | list):
        return type(value)(_moved(item, device) for item in value) if not hasattr(value, "_fields") else value
    return value
