"""`landscape`: the loss of a model of the user's own around its weights."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from depthscope.cli.model import Html, Model, ModelDevice, command, say, their_output_aside
from depthscope.cli.options import Address, Json, Lang, Language
from depthscope.cli.pace import clock_words
from depthscope.core.files import check_named

if TYPE_CHECKING:
    from depthscope.api import MapProgress

_DATA, _MAP, _WHERE, _SHOWN = "What it is of", "The map", "Where and how it is done", "What is shown"
QUIET_S = 60.0
"""Without a terminal a line comes at every tenth of the points, and when none came for this long."""


def landscape(
    model: Model,
    data: Annotated[
        str | None,
        typer.Option(
            help="package.module:function, which gives examples: tensors, a Dataset, a DataLoader or batches; "
            "without it the batch that MODEL gives.",
            rich_help_panel=_DATA,
        ),
    ] = None,
    loss: Annotated[
        str | None,
        typer.Option(
            help="cross_entropy, mse or package.module:function(output, targets); without it the model's own.",
            rich_help_panel=_DATA,
        ),
    ] = None,
    examples: Annotated[
        int | None,
        typer.Option(
            help="The first so many of the data, the same at every point; by default 512, at most.",
            rich_help_panel=_DATA,
        ),
    ] = None,
    batch_size: Annotated[int, typer.Option(help="Examples a batch.", rich_help_panel=_DATA)] = 128,
    axes: Annotated[int, typer.Option(help="Directions: 2 for a plane, 1 for a curve.", rich_help_panel=_MAP)] = 2,
    points: Annotated[int, typer.Option(help="Along each direction; odd.", rich_help_panel=_MAP)] = 51,
    extent: Annotated[float, typer.Option(help="Coordinates run from -EXTENT to EXTENT.", rich_help_panel=_MAP)] = 1.0,
    normalise: Annotated[
        str, typer.Option(help="filter, or none for bare Gaussian directions.", rich_help_panel=_MAP)
    ] = "filter",
    seed: Annotated[int, typer.Option(help="Of the directions.", rich_help_panel=_MAP)] = 0,
    norm: Annotated[
        str,
        typer.Option(
            help="Batch norm: eval, with its running statistics; or batch, re-estimated at every point.",
            rich_help_panel=_MAP,
        ),
    ] = "eval",
    precision: Annotated[str, typer.Option(help="float32, bfloat16 or float64.", rich_help_panel=_MAP)] = "float32",
    hessian_points: Annotated[
        int,
        typer.Option(
            help="Along each direction of a coarser grid, where the Hessian's largest and smallest eigenvalue are "
            "found; odd, 0 for none.",
            rich_help_panel=_MAP,
        ),
    ] = 0,
    hessian_examples: Annotated[
        int, typer.Option(help="Examples that the Hessian is of, the first of these.", rich_help_panel=_MAP)
    ] = 128,
    out: Annotated[
        Path | None,
        typer.Option(
            help="Folder that keeps the points: the same command goes on where it was stopped.", rich_help_panel=_WHERE
        ),
    ] = None,
    device: ModelDevice = None,
    workers: Annotated[
        int | None, typer.Option(help="Processes; as many as cores on a CPU by default.", rich_help_panel=_WHERE)
    ] = None,
    executor: Annotated[
        str,
        typer.Option(help="serial (in this process), processes (on this machine) or ray.", rich_help_panel=_WHERE),
    ] = "processes",
    address: Address = None,
    html: Html = None,
    svg: Annotated[
        Path | None, typer.Option(help="Write the map to this file, as SVG.", rich_help_panel=_SHOWN)
    ] = None,
    png: Annotated[
        Path | None, typer.Option(help="Write the map to this file, as PNG.", rich_help_panel=_SHOWN)
    ] = None,
    lang: Language = Lang.en,
    as_json: Json = False,
) -> None:
    """Draw the loss of any PyTorch model on a plane through its weights."""
    from depthscope import api

    for path in (html, svg, png):
        if path is not None:
            check_named(path)
    with their_output_aside():
        found = api.landscape(
            model,
            data,
            loss,
            axes=axes,
            points=points,
            extent=extent,
            normalise=normalise,
            seed=seed,
            norm=norm,
            examples=examples,
            batch_size=batch_size,
            precision=precision,
            hessian_points=hessian_points,
            hessian_examples=hessian_examples,
            out=out,
            device=device,
            workers=workers,
            executor=executor,
            address=address,
            progress=None if as_json else progress(is_terminal=sys.stderr.isatty()),
            tell=lambda line: print(line, file=sys.stderr),
            command=command(),
        )
    if html is not None:
        found.page(html, lang=lang.value)
    for path, draw in ((svg, found.svg), (png, found.png)):
        if path is not None:
            draw(path, lang=lang.value)
    say(found.to_json().rstrip() if as_json else str(found), page=None if as_json else html)


def progress(*, is_terminal: bool, clock: Callable[[], float] = time.monotonic) -> Callable[[MapProgress], None]:
    """Who hears how many points there are, and tells it on stderr with the time that is left."""
    began = told = clock()
    tenth = -1

    def hear(at: MapProgress) -> None:
        nonlocal began, told, tenth
        now = clock()
        found = at.done - at.before
        if not found:
            began = now
        left = (at.total - at.done) / found * (now - began) if found else None
        words = f"{at.done:,} of {at.total:,} points"
        if at.before and not found:
            words += ", which were there already" if at.done == at.total else " are there already"
        if left:
            words += f", about {clock_words(left)} left"
        if is_terminal:
            print(f"\r{words:<60}", end="\n" if at.done == at.total else "", file=sys.stderr, flush=True)
        elif at.done * 10 // at.total > tenth or now - told >= QUIET_S:
            tenth, told = at.done * 10 // at.total, now
            print(words, file=sys.stderr, flush=True)

    return hear
