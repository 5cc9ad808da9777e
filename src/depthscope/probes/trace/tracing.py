"""One forward pass, traced."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from depthscope.core.structure import Structure
from depthscope.probes.guard import as_found
from depthscope.probes.trace.graph import Graph
from depthscope.probes.trace.mode import Recorder
from depthscope.probes.trace.outputs import main_outputs, results_of, tensors_of
from depthscope.probes.trace.settings import unfused
from depthscope.probes.trace.structure import Positions, structure_of


@dataclass(frozen=True, kw_only=True)
class Traced:
    """A traced pass.

    Attributes:
        structure: what was recognised.
        positions: where in the pass its boundaries and additions stand.
        funcs: the operations of torch in order, `detach` left out (autograd calls it as it likes).
    """

    structure: Structure
    positions: Positions
    funcs: tuple[Any, ...]


class _Needed(BaseException):
    """The forward pass differentiates something itself. Nothing inside it that bears failures may bear this one."""


def trace(model: nn.Module, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Traced:
    """Run one forward pass of a model as it stands, and read its structure.

    The pass runs with gradients on, since models take other ways without (the fast path of `nn.TransformerEncoder`),
    but what autograd would save for a backward pass is let go at once: the memory is that of a pass without. A model
    that differentiates in its own forward pass, or uses `torch.func`, is run again with everything saved.

    Args:
        model: without wrappers (`probes.guard.unwrapped`); left bitwise as found.
        args: its arguments. Tensors among them are the data. The model may write into them: pass clones.
        kwargs: likewise, by name.
    """
    for keep in (False, True):
        try:
            with as_found(model), torch.enable_grad(), unfused():
                recorder = _record(model, args, kwargs, keep=keep)
                recorder.graph.finish()
                recorder.classify.facts.settle()
                structure, positions = structure_of(recorder.graph, model, recorder.used)
                return Traced(structure=structure, positions=positions, funcs=tuple(recorder.funcs))
        except _Needed:
            if keep:  # of a trace around this one
                raise
        except RuntimeError as error:
            if keep or "saved tensor" not in str(error):
                raise
    raise AssertionError("the second pass saves everything")


def _let_go(saved: None) -> Tensor:
    raise _Needed


def _record(model: nn.Module, args: tuple[Any, ...], kwargs: Mapping[str, Any], *, keep: bool) -> Recorder:
    recorder = Recorder(model, tensors_of((args, kwargs)))
    saving = nullcontext() if keep else torch.autograd.graph.saved_tensors_hooks(_nothing, _let_go)
    with recorder.named(), saving, recorder:
        output = model(*args, **kwargs)
    recorder.graph.outputs = [recorder.value_of(tensor) for tensor in results_of(output)]
    recorder.graph.output = _output(recorder, output)
    return recorder


def _nothing(tensor: Tensor) -> None:
    return None


def _output(recorder: Recorder, output: Any) -> int:
    """The first tensor of the output, by importance, to which data flows."""
    graph: Graph = recorder.graph
    values = [recorder.value_of(tensor) for tensor in main_outputs(output)]
    return next((each for each in values if graph.data[each]), values[0] if values else -1)
