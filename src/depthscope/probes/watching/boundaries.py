"""The scheduled tier: the user's own forward pass followed operation by operation, once its structure is known."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

import torch
from torch import nn

from depthscope.core.errors import words_of
from depthscope.core.structure import Parameter, Structure
from depthscope.probes.measure.listener import Recorder
from depthscope.probes.trace import Follow, Traced, trace
from depthscope.probes.watching.arguments import Uncopyable, copied
from depthscope.probes.watching.attempt import Attempt
from depthscope.probes.watching.passes import Pass

UNSEEN = (
    "no training pass of the model was seen to end in a backward pass: its forward is not called through the module "
    "itself, or it is compiled around it, or in eval mode, or the loss is of a gradient alone; gradients are those at "
    "the optimiser, after any clipping"
)
BETWEEN = "a step between the scheduled ones: parameters only"
OTHER = "the model runs other operations from pass to pass"
_IN_A_ROW = 3
"""Failures to trace, or to follow what was traced just before, after which no more is tried."""
_AGAIN = 100
"""Traces of a model that changes from pass to pass: each costs one more forward pass."""
LAZY = "the weights of a lazy layer came with this pass: boundaries are measured from the next one on"
LATE = "the forward pass began before the step before it was known to be over, so that it was not measured"


class Boundaries:
    """Traces a model once and follows its passes from then on; one that changes from pass to pass, before each.

    Args:
        outer: the model as the loop calls it.
        inner: without its wrappers.
    """

    def __init__(self, outer: nn.Module, inner: nn.Module) -> None:
        self._inner = inner
        self._why_not = _why_not(outer, inner)
        self._failed = ""
        self._in_a_row = 0
        self._traced: Traced | None = None
        self._stale = False
        self._fresh = False
        self._num_again = 0
        self._structure: Structure | None = None

    @property
    def possible(self) -> bool:
        """Whether passes can be followed: not where compiled code runs or threads do."""
        return not self._why_not

    @property
    def changes(self) -> bool:
        """Whether a pass did other operations than one before it."""
        return self._stale

    @property
    def is_known(self) -> bool:
        """Whether `structure` is what it will be: a lazy layer has no weights yet, and a failed trace is repeated."""
        return self._structure is not None or self._in_a_row >= _IN_A_ROW

    @property
    def structure(self) -> Structure:
        """That of the first trace, or of a later one with more blocks; the parameters alone where there is none."""
        return self._structure or _parameters_alone(self._inner)

    def recognise(self, args: tuple[Any, ...], kwargs: Mapping[str, Any], *, scheduled: bool) -> None:
        """Trace the model with the arguments of a training pass, where that is still to be done.

        The pass itself is still to come, and the model and the arguments are left for it as found. A model that cannot
        be traced is trained all the same.
        """
        self._fresh = False
        again = self._traced is not None
        if self._in_a_row >= _IN_A_ROW or (again and not (self._stale and scheduled and self._num_again < _AGAIN)):
            return
        self._num_again += again
        if any(nn.parameter.is_lazy(each) for each in self._inner.parameters()):
            self._failed = LAZY
            return
        try:
            if why := _without_way_back(self._inner):
                raise Uncopyable(why)
            with copied(self._inner, args, kwargs) as (own_args, own_kwargs):
                self._traced = trace(self._inner, own_args, own_kwargs)
        except Uncopyable as error:
            self._fails(words_of(error))
        except Exception as error:
            self._fails(f"the model's structure was not recognised: {type(error).__name__}: {words_of(error)}")
        else:
            self._failed, self._fresh = "", True
            self._structure = _fuller(self._structure, self._traced.structure)

    def follow(self, this: Pass) -> Follow | None:
        """The mode that measures a pass; `pass_ends` says when it is over."""
        traced, known = self._traced, self._structure
        if self._failed or self._why_not or traced is None or known is None:
            this.silent = self._failed
            return None
        if not self._fresh and self._stale:
            this.silent = f"{OTHER}, and after {self._num_again} traces no more are made"
            return None
        if not _alike(known, traced.structure):
            this.silent = f"{OTHER}: this one has blocks that the one known has not"
            return None
        left_out = len(known.blocks) - len(traced.structure.blocks)
        if left_out:
            blocks = "block" if left_out == 1 else "blocks"
            this.silent = f"{OTHER}: {left_out} {blocks} of {len(known.blocks)} did not run in this one"
        this.structure = traced.structure
        this.recorder = Recorder(this.num_examples)
        this.mode = Follow(traced, this.recorder)
        return this.mode

    def pass_ends(self, this: Pass) -> None:
        """A pass that did other operations than the trace has half of its readings: none of them is kept.

        From then on each scheduled pass is traced anew just before it runs. Both begin with the same generators, so
        that they drop the same layers.
        """
        if this.mode is None:
            return
        if this.mode.departed:
            this.silent = this.mode.departed
            this.recorder = None
            self._stale = True
            if self._fresh:
                self._fails(f"{OTHER}, from its trace just before too: {this.mode.departed}")
        elif self._fresh:
            self._in_a_row = 0
        this.mode = None

    def why_silent(self, attempt: Attempt) -> str:
        """Why an attempt has no readings of boundaries, or not all; empty where it has, or could have."""
        if not attempt.scheduled:
            return BETWEEN
        if self._why_not:
            return self._why_not + (f"; {UNSEEN}" if attempt.unseen else "")
        passes = [each for each in attempt.passes if each.reached]
        if attempt.unseen or not passes:
            return UNSEEN
        silent = next((each.silent for each in passes if each.silent), "")
        missing = any(each.recorder is None for each in passes)
        return silent or (LATE if missing else "")

    def _fails(self, why: str) -> None:
        """Nothing is followed on this pass; the next tries again, up to a number of failures in a row."""
        self._failed = why
        self._in_a_row += 1


def _fuller(known: Structure | None, found: Structure) -> Structure:
    """The structure with more blocks; the known one of two alike. A parameter that any pass took is used.

    The known one is kept since what theory expects is read off weights as they are at initialisation.
    """
    if known is None:
        return found
    base, other = (found, known) if len(found.blocks) > len(known.blocks) and _alike(found, known) else (known, found)
    used = {each.name for each in other.parameters if each.used}
    if all(each.used or each.name not in used for each in base.parameters):
        return base
    parameters = tuple(replace(each, used=each.used or each.name in used) for each in base.parameters)
    return replace(base, parameters=parameters)


def _alike(known: Structure, found: Structure) -> bool:
    """Whether each place of a found structure is, by its name, a place of the known one."""
    blocks = {each.name: (each.role, each.weights) for each in known.blocks}
    additions = {each.name for each in known.additions}
    return all(blocks.get(each.name) == (each.role, each.weights) for each in found.blocks) and all(
        each.name in additions for each in found.additions
    )


def _without_way_back(model: nn.Module) -> str:
    """What a model holds that a further pass would change for good; empty where nothing is known of."""
    for module in model.modules():
        for name, value in vars(module).items():
            if isinstance(value, Iterator | torch.optim.Optimizer):
                what = "iterator" if isinstance(value, Iterator) else "optimizer"
                return (
                    f"the model holds an {what} ({name}), and the pass that finds the structure would move it for "
                    "good: boundaries, blocks and additions are missing"
                )
    return ""


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
                shape=() if nn.parameter.is_lazy(found[name]) else tuple(found[name].shape),
                aliases=tuple(names[1:]),
                trainable=found[name].requires_grad,
            )
            for name, names in aliases.items()
        ),
    )
