"""`probe` and `compare`: models of the user's own, by name."""

from __future__ import annotations

import dataclasses
import os
import shlex
import sys
from collections.abc import Callable
from contextlib import AbstractContextManager, redirect_stdout
from pathlib import Path
from typing import Annotated

import typer

from depthscope.cli.options import Json, Lang, Language, parsed_seeds
from depthscope.core.files import check_named

_DATA, _MEASURED, _SHOWN = "What it is measured on", "What is measured", "What is shown"
VERDICT_MET, RUNS_LOST = 1, 1

Model = Annotated[
    str,
    typer.Argument(
        metavar="MODEL", help="package.module:factory, found from here; it gives a model, or (model, batch)."
    ),
]
Input = Annotated[
    str | None, typer.Option("--input", help="Shape of made-up noise, such as 8x3x32x32.", rich_help_panel=_DATA)
]
Tokens = Annotated[
    str | None, typer.Option(help="Shape of made-up tokens, such as 8x128; with --vocab.", rich_help_panel=_DATA)
]
Vocab = Annotated[int | None, typer.Option(help="How many different tokens there are.", rich_help_panel=_DATA)]
Loader = Annotated[
    str | None,
    typer.Option(
        "--data", help="package.module:function, which gives a batch or batches of your own.", rich_help_panel=_DATA
    ),
]
Loss = Annotated[
    str | None,
    typer.Option(
        help="cross_entropy, mse or package.module:function(output, targets); without it the model's own, or none.",
        rich_help_panel=_DATA,
    ),
]
Classes = Annotated[int | None, typer.Option(help="Classes of made-up targets.", rich_help_panel=_DATA)]
Measure = Annotated[
    str | None,
    typer.Option(
        help="What is measured on demand beside: jacobian, rank, units, trust (commas between).",
        rich_help_panel=_MEASURED,
    ),
]
ModelDevice = Annotated[
    str | None,
    typer.Option("--device", help="auto, cpu, cuda or mps; by default where the factory puts the model."),
]
Html = Annotated[Path | None, typer.Option(help="Write the page to this file.", rich_help_panel=_SHOWN)]


def probe(
    model: Model,
    shape: Input = None,
    tokens: Tokens = None,
    vocab: Vocab = None,
    data: Loader = None,
    loss: Loss = None,
    classes: Classes = None,
    measure: Measure = None,
    device: ModelDevice = None,
    fail_on: Annotated[
        str | None, typer.Option(help="Verdicts that make the exit code 1, such as vanishing,exploding.")
    ] = None,
    html: Html = None,
    lang: Language = Lang.en,
    as_json: Json = False,
) -> None:
    """Measure any PyTorch model, say what depth does to it, name the block and the cause."""
    from depthscope import api

    wanted = api.check_verdicts(_parts(fail_on))
    if html is not None:
        check_named(html)
    with their_output_aside():
        found = api.probe_named(
            model,
            shape=shape,
            tokens=tokens,
            vocab=vocab,
            data=data,
            loss=loss,
            classes=classes,
            measure=_parts(measure),
            device=device,
            command=command(),
            tell=lambda line: print(line, file=sys.stderr),
        )
    if html is not None:
        found.page(html, lang=lang.value)
    shown = dataclasses.replace(found, costs=())  # each was told on stderr before it ran
    say(found.to_json().rstrip() if as_json else str(shown), page=None if as_json else html)
    faults = {found.verdict, *(each.verdict for each in found.diagnosis.others)}
    if faults & set(wanted):
        raise typer.Exit(VERDICT_MET)


def compare(
    models: Annotated[
        list[str], typer.Argument(metavar="MODEL...", help="Two package.module:factory or more; the first is the base.")
    ],
    data: Annotated[
        str,
        typer.Option(
            help="package.module:function(), or (seed): tensors, a Dataset, a DataLoader or batches.",
            rich_help_panel=_DATA,
        ),
    ],
    loss: Loss = None,
    validation: Annotated[
        str | None, typer.Option(help="package.module:function, held-out data.", rich_help_panel=_DATA)
    ] = None,
    names: Annotated[str | None, typer.Option(help="Names of the variants, commas between.")] = None,
    steps: Annotated[int, typer.Option(help="Updates.")] = 200,
    seeds: Annotated[str, typer.Option(help="A number of seeds (3), or the seeds themselves (0,3,7).")] = "3",
    batch_size: Annotated[int, typer.Option(help="Of tensors and data sets; a loader has its own.")] = 64,
    lr: Annotated[float, typer.Option(help="Of AdamW, the same for all.")] = 1e-3,
    device: ModelDevice = None,
    html: Html = None,
    lang: Language = Lang.en,
    as_json: Json = False,
) -> None:
    """Train variants of your own on the same batches from the same seeds, and judge the differences."""
    from depthscope import api

    if html is not None:
        check_named(html)
    with their_output_aside():
        found = api.compare_named(
            models,
            data=data,
            loss=loss,
            validation=validation,
            names=_parts(names),
            steps=steps,
            seeds=parsed_seeds(seeds) or 3,
            batch_size=batch_size,
            lr=lr,
            device=device,
            command=command(),
            progress=_progress(steps) if sys.stderr.isatty() and not as_json else None,
        )
    if html is not None:
        found.page(html, lang=lang.value)
    say(found.to_json().rstrip() if as_json else str(found), page=None if as_json else html)
    if found.lost:
        raise typer.Exit(RUNS_LOST)


def say(text: str, *, page: Path | None) -> None:
    """Print; a reader that went away (`| head`) takes nothing from the exit code."""
    try:
        print(text, *([f"page: {page}"] if page is not None else []), sep="\n", flush=True)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # nor is it told at exit


def _parts(text: str | None) -> list[str]:
    return [part.strip() for part in text.split(",") if part.strip()] if text else []


def their_output_aside() -> AbstractContextManager[object]:
    """What the user's code prints goes to stderr: stdout is the result's, which may be JSON."""
    return redirect_stdout(sys.stderr)


def command() -> str:
    """What repeats this call."""
    return shlex.join(["depthscope", *sys.argv[1:]])


def _progress(steps: int) -> Callable[[str, int, int, float], None]:
    def show(arm: str, seed: int, done: int, loss: float) -> None:
        if done == steps or done % max(steps // 50, 1) == 0:
            end = "\n" if done == steps else ""
            print(f"\r{arm}, seed {seed}: {done} of {steps}, loss {loss:.4g}   ", end=end, file=sys.stderr, flush=True)

    return show
