"""The arguments and options of the verbs, each defined once."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from depthscope.core.errors import UserError

_WHERE, _SHOWN = "Where and how it is done", "What is shown"


class Lang(StrEnum):
    """Languages of the page."""

    en = "en"
    zh = "zh"


Study = Annotated[str, typer.Argument(metavar="STUDY", help="A bundled study's name, or the path of a TOML file.")]
Folder = Annotated[Path, typer.Argument(metavar="DIR", help="The folder of a study.")]
Size = Annotated[str | None, typer.Option(help="smoke, quick or full; quick where the study has sizes.")]
Seeds = Annotated[str | None, typer.Option(help="A number of seeds (10), or the seeds themselves (0,3,7).")]
Data = Annotated[Path | None, typer.Option(help="Folder that holds the real data (or set DEPTHSCOPE_DATA).")]
Calibrate = Annotated[
    bool, typer.Option("--calibrate", help="Time a few real steps of each kind of run, and estimate the whole.")
]

Device = Annotated[str, typer.Option(help="auto, cpu, cuda or mps.", rich_help_panel=_WHERE)]
Workers = Annotated[
    int | None, typer.Option(help="Processes; as many as cores on a CPU by default.", rich_help_panel=_WHERE)
]

Executor = Annotated[
    str,
    typer.Option(help="serial (in this process), processes (on this machine) or ray.", rich_help_panel=_WHERE),
]
Address = Annotated[
    str | None,
    typer.Option(
        help="Of a running Ray cluster: HOST:PORT, or auto. Without it, --executor ray starts Ray on this machine.",
        rich_help_panel=_WHERE,
    ),
]
CheckpointMinutes = Annotated[
    float,
    typer.Option(
        help="A run is saved at the end of an epoch, and within a long epoch after so many minutes.",
        rich_help_panel=_WHERE,
    ),
]
Log = Annotated[
    list[str] | None,
    typer.Option(help="tensorboard: event files of all figures. May be given again.", rich_help_panel=_SHOWN),
]
Watch = Annotated[bool, typer.Option("--watch", help="Look again and again, until all runs are done.")]

Json = Annotated[
    bool, typer.Option("--json", help="Print JSON for programs instead of text for people.", rich_help_panel=_SHOWN)
]
Figures = Annotated[
    bool, typer.Option("--figures", help="Also write each figure as SVG and PNG.", rich_help_panel=_SHOWN)
]
Language = Annotated[Lang, typer.Option(help="Language of the page.", rich_help_panel=_SHOWN)]


def parsed_seeds(text: str | None) -> int | list[int] | None:
    """What `--seeds` means.

    Raises:
        UserError: neither a number of seeds nor a list of them.
    """
    if text is None:
        return None
    try:
        numbers = [int(part) for part in text.removesuffix(",").split(",")]
    except ValueError:
        numbers = []
    if not numbers or min(numbers) < 0 or ("," not in text and numbers[0] < 1):
        raise UserError(f"--seeds: wanted a number of seeds such as 10, or seeds such as 0,3,7; got {text!r}.")
    return numbers if "," in text else numbers[0]
