"""Networks of the catalogue, tried before anything is written: what does not go together is told as one clear line."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterable, Iterator

from depthscope.core.errors import UserError
from depthscope.core.streams import stream
from depthscope.study.run import RunSpec
from depthscope.train.shapes import data_shape
from depthscope.train.usercode import user_targets

_BUILT = (
    *("family", "width", "shortcut", "shortcut_options", "norm", "norm_options", "activation", "model_options"),
    *("data", "data_options"),
)
"""What, beside the depth, decides a network and what comes in."""

_STARTED = ("init", "init_options", "gain", "stem_gain", "zero_last_gamma")
"""What decides its first weights."""


def try_known(specs: Iterable[RunSpec]) -> None:
    """Build the torch networks of runs without code of the user's.

    Each is built on the meta device, where it has shapes and no memory; and, at the smallest of the depths at which
    it is wanted, with its first weights and on the CPU, where it is fed a few examples in training mode: whether
    layers and initialiser go together does not depend on the depth.

    Raises:
        UserError: names or sizes that do not go together.
    """
    built: dict[str, RunSpec] = {}
    started: dict[str, RunSpec] = {}
    for spec in sorted(specs, key=lambda each: each.depth):
        if spec.backend == "torch" and not user_targets(spec):
            built.setdefault(_key(spec, (*_BUILT, "depth")), spec)
            started.setdefault(_key(spec, (*_BUILT, *_STARTED)), spec)
    for spec in built.values():
        with _told_of(spec):
            _build(spec)
    for spec in started.values():
        with _told_of(spec):
            _start(spec)


def _key(spec: RunSpec, fields: Iterable[str]) -> str:
    return json.dumps(spec.model_dump(mode="json", include=set(fields)), sort_keys=True)


@contextlib.contextmanager
def _told_of(spec: RunSpec) -> Iterator[None]:
    """Say which of a study's networks is at fault; what torch refuses is the person's input, too."""
    try:
        yield
    except (UserError, ValueError, RuntimeError) as error:
        which = ", ".join(f"{field} {getattr(spec, field)}" for field in ("depth", "width", "shortcut", "norm", "init"))
        raise UserError(f"{spec.family} ({which}): {error}") from error


def _build(spec: RunSpec) -> None:
    from depthscope.train.count import network_of

    network_of(spec, data_shape(spec))


def _start(spec: RunSpec) -> None:
    import torch

    from depthscope.models.construct import seeded
    from depthscope.train.network import check_output, network_of_shape

    data = data_shape(spec)
    # In place of the data set, which need not be here yet.
    rng, shape = stream(spec.seed, "trial"), (_FEW, *data.input_shape)
    if data.num_tokens:
        x = torch.from_numpy(rng.integers(data.num_tokens, size=shape))
    else:
        x = torch.from_numpy(rng.standard_normal(shape)).float()
    model, _ = network_of_shape(
        spec, data.input_shape, num_outputs=data.num_outputs, num_tokens=data.num_tokens, examples=x
    )
    with torch.no_grad(), seeded(0):
        check_output(spec.family, model(x[:2]), (2, *data.output_shape), data.task)


_FEW = 32
"""Examples that an initialiser is tried with."""
