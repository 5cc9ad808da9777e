"""The scheduled tier: the user's own forward pass followed operation by operation, once its structure is known."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from torch import nn

from depthscope.core.errors import words_of
from depthscope.core.structure import Parameter, Structure
from depthscope.probes.measure.listener import Recorder
from depthscope.probes.trace import Follow, Traced, trace
from depthscope.probes.watching.attempt import Attempt
from depthscope.probes.watching.passes import Pass

UNSEEN = (
    "no training pass of the model was seen to end in a backward pass: its forward is not called through the module "
    "itself, or it is compiled around it, or in eval mode; gradients are those at the optimiser, after any clipping"
)
BETWEEN = "a step between the scheduled ones: parameters only"
LATE = "the forward pass began before the step before it was known to be over, so that it was not measured"


class Boundaries:
    """Traces a model once and follows its passes from then on.

    Args:
        outer: the model as the loop calls it.
        inner: without its wrappers.
    """

    def __init__(self, outer: nn.Module, inner: nn.Module) -> None:
        self._inner = inner
        self._why_not = _why_not(outer, inner)
        self._failed = ""
        self._traced: Traced | None = None
        self._stale = False
        self._structure: Structure | None = None

    @property
    def possible(self) -> bool:
        """Whether passes can be followed: not where compiled code runs or threads do."""
        return not self._why_not

    @property
    def structure(self) -> Structure:
        """That of the first trace; the parameters alone where there is none."""
        return self._structure or _parameters_alone(self._inner)

    def recognise(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> None:
        """Trace the model with the arguments of a training pass, where that is still to be done.

        The pass itself is still to come, and the model is left for it as found. A model that cannot be traced is
        trained all the same.
        """
        if self._failed or (self._traced is not None and not self._stale):
            return
        try:
            self._traced = trace(self._inner, args, dict(kwargs))
        except Exception as error:
            self._failed = f"the model's structure was not recognised: {type(error).__name__}: {words_of(error)}"
            return
        self._stale = False
        if self._structure is None:
            # Kept: what theory expects is read off the weights as they are at initialisation.
            self._structure = self._traced.structure
        elif _names(self._structure) != _names(self._traced.structure):
            self._failed = "the model does other operations than at its first pass: it was changed in between"

    def follow(self, this: Pass) -> Follow | None:
        """The mode that measures a pass; `pass_ends` says when it is over."""
        if self._traced is None or self._failed or self._why_not:
            return None
        this.recorder = Recorder(this.num_examples)
        this.mode = Follow(self._traced, this.recorder)
        return this.mode

    def pass_ends(self, this: Pass) -> None:
        """A pass that did other operations than the trace has half of its readings: none of them is kept.

        The next is traced anew, since a model may have been changed (layers unfrozen, a branch switched on).
        """
        if this.mode is not None and this.mode.departed:
            this.departed = this.mode.departed
            this.recorder = None
            self._stale = True
        this.mode = None

    def why_silent(self, attempt: Attempt) -> str:
        """Why an attempt has no readings of boundaries; empty where it has, or could have."""
        if not attempt.scheduled:
            return BETWEEN
        if self._why_not:
            return self._why_not + (f"; {UNSEEN}" if attempt.unseen else "")
        passes = [each for each in attempt.passes if each.reached]
        if attempt.unseen or not passes:
            return UNSEEN
        departed = next((each.departed for each in passes if each.departed), "")
        missing = any(each.recorder is None for each in passes)
        return departed or self._failed or (LATE if missing else "")


def _why_not(outer: nn.Module, inner: nn.Module) -> str:
    wrappers = [outer]
    while wrappers[-1] is not inner:
        wrappers.append(getattr(wrappers[-1], "_orig_mod", None) or wrappers[-1].module)  # type: ignore[arg-type]
    for module in [*wrappers, *inner.modules()]:
        if hasattr(module, "_orig_mod") or getattr(module, "_compiled_call_impl", None) is not None:
            return (
                "the model is compiled, and inside of compiled code nothing can be read: boundaries, blocks and "
                "additions are missing. Probe the uncompiled model (depthscope.probe), or train some steps uncompiled"
            )
    if any(len(getattr(each, "device_ids", None) or ()) > 1 for each in wrappers):
        return (
            "DataParallel runs copies of the model in threads: boundaries, blocks and additions are missing. "
            "DistributedDataParallel shows them"
        )
    return ""


def _parameters_alone(model: nn.Module) -> Structure:
    first: dict[int, str] = {}
    aliases: dict[str, list[str]] = {}
    found = dict(model.named_parameters(remove_duplicate=False))
    for name, parameter in found.items():
        aliases.setdefault(first.setdefault(id(parameter), name), []).append(name)
    return Structure(
        boundaries=(),
        blocks=(),
        parameters=tuple(
            Parameter(
                name=name,
                shape=tuple(found[name].shape),
                aliases=tuple(names[1:]),
                trainable=found[name].requires_grad,
            )
            for name, names in aliases.items()
        ),
    )


def _names(structure: Structure) -> tuple[object, ...]:
    return (
        tuple(each.name for each in structure.boundaries),
        tuple(each.name for each in structure.additions),
    )
