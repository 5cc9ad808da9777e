"""`curvature`: the Hessian of the loss of a model of the user's own."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Annotated

import typer

from depthscope.cli.model import Loss, Model, ModelDevice, command, say, their_output_aside
from depthscope.cli.options import Json

_DATA, _MEASURED = "What it is of", "What is measured"


def curvature(
    model: Model,
    data: Annotated[
        str | None,
        typer.Option(
            help="package.module:function, which gives examples: tensors, a Dataset, a DataLoader or batches; "
            "without it the batch that MODEL gives.",
            rich_help_panel=_DATA,
        ),
    ] = None,
    loss: Loss = None,
    examples: Annotated[int, typer.Option(help="The first so many of the data, at most.", rich_help_panel=_DATA)] = 512,
    batch_size: Annotated[
        int, typer.Option(help="Examples in memory at a time; all at once is fastest.", rich_help_panel=_DATA)
    ] = 128,
    what: Annotated[
        str, typer.Option(help="extremes, trace, density (commas between).", rich_help_panel=_MEASURED)
    ] = "extremes,trace",
    norm: Annotated[
        str,
        typer.Option(
            help="Batch norm: eval, with its running statistics; or batch, with each batch's own.",
            rich_help_panel=_MEASURED,
        ),
    ] = "eval",
    precision: Annotated[
        str, typer.Option(help="float64, or float32 (faster, rougher).", rich_help_panel=_MEASURED)
    ] = "float64",
    tol: Annotated[
        float, typer.Option(help="Of the eigenvalues, relative to the spread.", rich_help_panel=_MEASURED)
    ] = 1e-4,
    samples: Annotated[
        int, typer.Option(help="Products with the Hessian that the trace may take.", rich_help_panel=_MEASURED)
    ] = 60,
    seed: Annotated[int, typer.Option(help="Of random vectors.", rich_help_panel=_MEASURED)] = 0,
    device: ModelDevice = None,
    as_json: Json = False,
) -> None:
    """Find the largest and smallest eigenvalue, trace and density of the Hessian of any PyTorch model's loss."""
    from depthscope import api

    with their_output_aside():
        found = api.curvature(
            model,
            data,
            loss,
            what=[part.strip() for part in what.split(",") if part.strip()],
            examples=examples,
            batch_size=batch_size,
            norm=norm,
            precision=precision,
            tol=tol,
            samples=samples,
            seed=seed,
            device=device,
            progress=_hear() if sys.stderr.isatty() and not as_json else None,
            command=command(),
        )
    say(found.to_json().rstrip() if as_json else str(found), page=None)


def _hear() -> Callable[[str, int], None]:
    def hear(part: str, num: int) -> None:
        print(f"\r{part}: {num} products   ", end="", file=sys.stderr, flush=True)

    return hear
