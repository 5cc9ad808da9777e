"""`probe` and `compare` of models named on the command line."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Collection, Sequence
from functools import partial
from typing import Any, Literal

from depthscope.api.compare import LR, Comparison, Progress, compare
from depthscope.api.model import Checkup, probe
from depthscope.core.errors import MissingDependencyError, UserError, unknown_name
from depthscope.train.usercode import TORCH_MISSING

UNHEALTHY = ("vanishing", "exploding", "branch-dominated", "unused layers", "rank collapse", "not depth", "cannot tell")
"""Verdicts that `--fail-on` takes."""


def _named() -> Any:
    try:
        from depthscope.api import named
    except ModuleNotFoundError as error:
        if error.name != "torch":
            raise
        raise MissingDependencyError(TORCH_MISSING.replace("this study", "this")) from error
    return named


def check_verdicts(names: Sequence[str]) -> tuple[str, ...]:
    """Names of verdicts, a hyphen taken for a space.

    Raises:
        UserError: one is none.

    >>> check_verdicts(["vanishing", "unused-layers"])
    ('vanishing', 'unused layers')
    """
    known = {name.replace(" ", "-"): name for name in UNHEALTHY}
    for name in names:
        if name.replace(" ", "-") not in known:
            raise UserError(f"--fail-on: {unknown_name('verdict', name, known)}")
    return tuple(known[name.replace(" ", "-")] for name in names)


def probe_named(
    target: str,
    *,
    shape: str | None = None,
    tokens: str | None = None,
    vocab: int | None = None,
    data: str | None = None,
    loss: str | None = None,
    classes: int | None = None,
    measure: Collection[str] = (),
    device: str | None = None,
    command: str = "",
    tell: Callable[[str], None] | None = None,
) -> Checkup:
    """Probe a model by name, on data of the user's or on made-up noise.

    Args:
        target: `package.module:factory`, which gives a model or (model, batch).
        shape: of noise input, such as `8x3x32x32`.
        tokens: shape of made-up tokens, such as `8x128`.
        vocab: of these: how many there are.
        data: `package.module:function`, of a seed or of nothing, which gives any of the forms of `probe`'s batch.
        loss: `cross_entropy`, `mse` or `package.module:function`.
        classes: of made-up targets; by default read off the output.
        measure: see `probe`.
        device: auto, cpu, cuda or mps; by default where the factory puts the model.
        command: what repeats it.
        tell: see `probe`.

    Raises:
        UserError: bad input, in one line.
    """
    if sum(each is not None for each in (shape, tokens, data)) > 1:
        raise UserError("--input, --tokens, --data: give one of them.")
    if (tokens is None) != (vocab is None):
        raise UserError("--tokens and --vocab go together: --tokens 8x128 --vocab 1000.")
    if vocab is not None and vocab < 1:
        raise UserError(f"--vocab: wanted an integer of 1 or more, got {vocab}.")
    if classes is not None and (loss != "cross_entropy" or classes < 2):
        raise UserError("--classes: wanted 2 or more, beside --loss cross_entropy.")
    named = _named()
    # What costs nothing is refused before the model is built.
    sizes = named.shape(shape, "--input") if shape is not None else None
    lengths = named.shape(tokens, "--tokens") if tokens is not None else None
    loss_fn = named.loss_named(loss) if loss is not None else None
    if measure:
        from depthscope.api.demand import check_tiers

        check_tiers(measure)
    model, batch = named.built(target, device)
    origin: Literal["given", "noise"] = "given"
    targets = None
    if sizes is not None or lengths is not None:
        batch = named.noise(sizes) if sizes is not None else named.tokens(lengths, vocab)
        batch, origin = named.moved(batch, model), "noise"
    elif data is not None:
        batch = named.moved(named.measured_data(data), model)
    elif batch is not None:
        batch = named.moved(batch, model)
    else:
        raise UserError(f"{target}: gives no batch: give --input 8x3x32x32, --tokens 8x128 --vocab 1000, or --data.")
    try:
        if origin == "noise" and loss is not None:
            targets = named.made_up_targets(model, batch, loss, classes)
        given = batch if targets is None else (batch, targets)
        found = probe(model, given, loss_fn, measure=measure, data=origin, tell=tell)
    except UserError as error:
        rows = named.table_asked(error.__cause__) if sizes is not None else None
        if sizes is None or rows is None:
            raise
        raise UserError(
            f"--input {shape}: noise is no index of a row in the model's table of {rows} tokens. Give "
            f"--tokens {shape if len(sizes) == 2 else '8x128'} --vocab {rows} in its place."
        ) from error
    return dataclasses.replace(found, command=command or found.command)


def compare_named(
    targets: Sequence[str],
    *,
    data: str,
    loss: str | None = None,
    validation: str | None = None,
    names: Sequence[str] = (),
    steps: int = 200,
    seeds: int | Sequence[int] = 3,
    batch_size: int = 64,
    lr: float = LR,
    device: str | None = None,
    command: str = "",
    progress: Progress | None = None,
) -> Comparison:
    """`compare` of factories by name.

    Args:
        targets: `package.module:factory`, two or more.
        data: `package.module:function`, which takes a seed or nothing and gives any of the forms of `compare`'s data.
        loss: as for `probe_named`.
        validation: as `data`.
        names: of the variants; by default the functions' own.
        steps: see `compare`, as for those that follow.
        seeds: likewise.
        batch_size: likewise.
        lr: likewise.
        device: as for `probe_named`.
        command: what repeats it.
        progress: see `compare`.

    Raises:
        UserError: bad input, in one line.
    """
    if len(targets) < 2:
        raise UserError("compare: wanted two factories or more, package.module:function each.")
    called = list(names) or [target.partition(":")[2] for target in targets]
    if names and len(names) != len(targets):
        raise UserError(f"--names: wanted {len(targets)} names, one a factory; got {len(names)}.")
    if len(set(called)) < len(called):
        if names:
            raise UserError("--names: wanted different names.")
        called = list(targets)
    if len(set(called)) < len(called):
        raise UserError("compare: the same factory twice; to compare it with itself, give --names.")
    named = _named()
    loss_fn = named.loss_named(loss) if loss is not None else None
    variants = {name: partial(named.fresh, target, device) for name, target in zip(called, targets, strict=True)}
    found = compare(
        variants,
        named.training_data(data),
        loss_fn,
        steps=steps,
        seeds=seeds,
        batch_size=batch_size,
        lr=lr,
        validation=named.training_data(validation, "--validation") if validation is not None else None,
        progress=progress,
    )
    return dataclasses.replace(found, command=command or found.command)
