"""A probe of the user's: called with a model as it stands, which must be left as it was found.

Shape letters: N examples.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from depthscope.core.streams import stream
from depthscope.study.catalog import is_user_code
from depthscope.study.metrics import PROBE
from depthscope.study.run import RunSpec
from depthscope.train.usercode import ProbeError, call

Row = tuple[int, str, str, float]
"""(step, split, quantity, value) of the metrics table."""

TORCH_ARGUMENTS = ("model", "x", "y", "step")
NUMPY_ARGUMENTS = ("stack", "params", "x", "y", "step")
"""What a probe is offered."""


def own_probes(spec: RunSpec) -> tuple[str, ...]:
    """The probes of the user's that a run is measured by."""
    return tuple(name for name in spec.measures if is_user_code(name))


def rows_of(target: str, found: object, step: int) -> list[Row]:
    """What a probe returned, as rows of the metrics table; the quantity is `function.name`.

    Raises:
        ProbeError: no mapping of names to numbers.
    """
    wanted = "wanted a mapping of names to numbers, such as {'sparsity': 0.5}"
    if not isinstance(found, Mapping):
        raise ProbeError(f"{target}: returned {type(found).__name__}; {wanted}.")
    function = target.partition(":")[2]
    rows: list[Row] = []
    for name, value in found.items():
        if not isinstance(name, str) or not name or not all(each.isalnum() or each in "_-." for each in name):
            raise ProbeError(f"{target}: {name!r} names no quantity; use letters, digits, '_', '-' and '.'.")
        try:
            number = float(value.detach() if hasattr(value, "detach") else value)
        except (TypeError, ValueError, RuntimeError) as error:
            raise ProbeError(f"{target}: {name!r} is {type(value).__name__}; {wanted}.") from error
        rows.append((step, "probe", f"{function}.{name}", number))
    return rows


def keep_last(summary: dict[str, float], rows: list[Row]) -> None:
    """The latest value of each quantity stands in the summary, as `probe:function.name`."""
    summary |= {f"{PROBE}{quantity}": value for _, _, quantity, value in rows}


def probe_stack(
    targets: tuple[str, ...],
    stack: Any,
    params: Mapping[str, NDArray[Any]],
    x: NDArray[Any],
    y: NDArray[Any],
    step: int,
) -> list[Row]:
    """Call probes on one run of the laboratory.

    Args:
        targets: the probes.
        stack: the network's form.
        params: parameter name -> its value, without the seed axis.
        x: training inputs [N, I].
        y: labels [N].
        step: updates done.

    Raises:
        ProbeError: see `rows_of`. What a probe raises is passed on; the arrays are copies that cannot be written.
    """
    rows: list[Row] = []
    for target in targets:
        offered = {"stack": stack, "params": _frozen(params), "x": _copy(x), "y": _copy(y), "step": step}
        with _numpy_undisturbed():
            found = call(target, offered)
        rows += rows_of(target, found, step)
    return rows


def _copy(array: NDArray[Any]) -> NDArray[Any]:
    copied = array.copy()
    copied.flags.writeable = False
    return copied


def _frozen(params: Mapping[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
    return {name: _copy(value) for name, value in params.items()}


@contextlib.contextmanager
def _numpy_undisturbed() -> Iterator[None]:
    state = np.random.get_state()  # noqa: NPY002 - somebody's probe may draw from it
    try:
        yield
    finally:
        np.random.set_state(state)  # noqa: NPY002 - see above


def probe_model(targets: tuple[str, ...], model: Any, x: Any, y: Any, *, spec: RunSpec, step: int) -> list[Row]:
    """Call probes on a torch model, in evaluation mode, and see that each left it as it was.

    Generators, modes and gradients are put back; torch's generator stands, for each probe, where
    `stream(seed, "probe", target, step)` puts it, so that its draws depend on nothing else.

    Args:
        targets: the probes.
        model: the model that is being trained.
        x: inputs of the probe's batch; each probe gets a copy.
        y: their labels.
        spec: the run.
        step: updates done.

    Raises:
        ProbeError: see `rows_of`; or a tensor, a flag or a hook of the model is not what it was.
    """
    from depthscope.train.guarded import left_as_found

    rows: list[Row] = []
    for target in targets:
        with left_as_found(target, model, x.device, int(stream(spec.seed, "probe", target, step).integers(2**63))):
            found = call(target, {"model": model, "x": x.clone(), "y": y.clone(), "step": step})
        rows += rows_of(target, found, step)
    return rows
