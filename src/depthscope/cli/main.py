"""`depthscope`: one command a verb, each the twin of a function in `depthscope`.

Heavy modules are imported inside the commands, so that `--help` loads neither torch nor altair.
"""

from __future__ import annotations

import contextlib
import json
import sys
from pathlib import Path
from typing import Annotated

import typer

from depthscope.cli.curvature import curvature
from depthscope.cli.landscape import landscape
from depthscope.cli.model import compare, probe
from depthscope.cli.options import (
    Address,
    Calibrate,
    CheckpointMinutes,
    Data,
    Device,
    Executor,
    Figures,
    Folder,
    Json,
    Lang,
    Language,
    Log,
    Seeds,
    Size,
    Study,
    Watch,
    Workers,
    parsed_seeds,
)
from depthscope.cli.process import prepare, to_nowhere, usage
from depthscope.core.errors import UserError

INTERRUPTED = 130
"""128 + SIGINT, as shells have it."""

RUNS_FAILED = 1

app = typer.Typer(
    name="depthscope",
    help="Show what depth does to a neural network.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
)


@app.command()
def run(
    study: Study,
    out: Annotated[
        Path | None, typer.Option(help="Folder of the results; results/STUDY (or STUDY-SIZE) by default.")
    ] = None,
    size: Size = None,
    seeds: Seeds = None,
    data: Data = None,
    device: Device = "auto",
    workers: Workers = None,
    executor: Executor = "processes",
    address: Address = None,
    checkpoint_minutes: CheckpointMinutes = 5.0,
    log: Log = None,
    lang: Language = Lang.en,
    figures: Figures = False,
    as_json: Json = False,
) -> None:
    """Do what is missing of a study, judge its claims, write its page."""
    from depthscope import api
    from depthscope.cli import progress, tables

    _find_code_beside(study)
    with progress.progress(quiet=as_json) as watcher:
        report = api.run(
            study,
            out=out,
            size=size,
            seeds=parsed_seeds(seeds),
            data=data,
            device=device,
            workers=workers,
            executor=executor,
            address=address,
            checkpoint_minutes=checkpoint_minutes,
            logs=log or (),
            lang=lang.value,
            figures=figures,
            watcher=watcher,
        )
    tables.report(report, lang.value, as_json=as_json)
    if report.failed:
        raise typer.Exit(RUNS_FAILED)


@app.command()
def plan(
    study: Study,
    size: Size = None,
    seeds: Seeds = None,
    calibrate: Calibrate = False,
    data: Data = None,
    device: Device = "auto",
    workers: Workers = None,
    as_json: Json = False,
) -> None:
    """Show the runs of a study, with their parameters, FLOPs and memory, before anything starts."""
    from depthscope import api
    from depthscope.cli import planview

    _find_code_beside(study)
    planned = api.plan(study, size=size, seeds=parsed_seeds(seeds))
    costs, estimate = api.costs(planned, data=data), None
    if calibrate:
        with planview.timing(quiet=as_json) as on_kind:
            estimate = api.calibrate(planned, data=data, device=device, workers=workers, on_kind=on_kind)
    planview.plan(planned, costs, estimate, as_json=as_json)


@app.command()
def tune(
    study: Study,
    size: Size = None,
    grid: Annotated[str | None, typer.Option(help="Values to try, such as 0.01,0.03,0.1.")] = None,
    seeds: Annotated[str | None, typer.Option(help="Selection seeds: how many, or which (101,102).")] = None,
    validation: Annotated[int | None, typer.Option(help="Examples held out of each training set.")] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            help="Folder of the runs that the choice is made on; results/STUDY-tuning by default. "
            "With --run the study's own results lie beside it, in STUDY-tuned."
        ),
    ] = None,
    write: Annotated[
        Path | None, typer.Option(help="The study file to write; STUDY-tuned.toml beside it by default.")
    ] = None,
    then_run: Annotated[
        bool, typer.Option("--run", help="Run the study with the chosen values too, and write its page.")
    ] = False,
    data: Data = None,
    device: Device = "auto",
    workers: Workers = None,
    executor: Executor = "processes",
    address: Address = None,
    checkpoint_minutes: CheckpointMinutes = 5.0,
    log: Log = None,
    lang: Language = Lang.en,
    as_json: Json = False,
) -> None:
    """Choose the lr of each arm on seeds and examples of their own, and write the study that uses it (and run it)."""
    from depthscope import api
    from depthscope.cli import progress, tables, tuning

    _find_code_beside(study)
    with progress.progress(quiet=as_json) as watcher:
        result = api.tune(
            study,
            size=size,
            grid=tuning.numbers(grid),
            seeds=parsed_seeds(seeds),
            validation=validation,
            out=out,
            write=write,
            then_run=then_run,
            data=data,
            device=device,
            workers=workers,
            executor=executor,
            address=address,
            checkpoint_minutes=checkpoint_minutes,
            logs=log or (),
            lang=lang.value,
            watcher=watcher,
        )
    tuning.result(result, as_json=as_json)
    if result.report and not as_json:
        tables.report(result.report, lang.value, as_json=False)
    if any(report.failed for report in (result.selection, result.report) if report):
        raise typer.Exit(RUNS_FAILED)


@app.command()
def schema() -> None:
    """Print the JSON Schema of a study file, for editors."""
    from depthscope import api

    typer.echo(json.dumps(api.study_schema(), indent=2, ensure_ascii=False))


@app.command()
def status(folder: Folder, watch: Watch = False, as_json: Json = False) -> None:
    """Show where a study's folder stands, also while another process or machine is filling it."""
    from depthscope import api
    from depthscope.cli import standing, tables

    if watch and as_json:
        raise UserError("--watch is for people, --json for programs: choose one; a program can call status again.")
    if watch:
        with contextlib.suppress(KeyboardInterrupt):  # the way to leave
            standing.watch(lambda: api.status(folder), tables.console())
    elif as_json:
        print(standing.as_json(api.status(folder)))
    else:
        tables.console().print(standing.drawn(api.status(folder)))


@app.command()
def report(folder: Folder, lang: Language = Lang.en, figures: Figures = False, as_json: Json = False) -> None:
    """Judge a folder's claims again and write its findings, table, figures and page."""
    from depthscope import api
    from depthscope.cli import tables

    tables.report(api.make_report(folder, lang=lang.value, figures=figures), lang.value, as_json=as_json)


@app.command()
def studies(as_json: Json = False) -> None:
    """List the studies that come with Depthscope."""
    from depthscope import api
    from depthscope.cli import tables

    tables.studies(api.studies(), as_json=as_json)


app.command()(probe)
app.command()(compare)
app.command()(landscape)
app.command()(curvature)


def _find_code_beside(study: str) -> None:
    """User code by name is also found beside the study file. Last, as in `main`."""
    folder = str(Path(study).absolute().parent)
    if study.endswith(".toml") and folder not in sys.path:
        sys.path.append(folder)


def _version(value: bool) -> None:
    if value:
        from importlib.metadata import version

        typer.echo(f"depthscope {version('depthscope')}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    del version


def main() -> None:
    """Entry point. Exit codes: 0 done; 1 runs failed; 2 bad input, told in one line on stderr; 130 interrupted."""
    prepare()
    try:
        code = app(standalone_mode=False)
        sys.stdout.flush()
    except UserError as error:
        as_json = "--json" in sys.argv[1:]
        print(json.dumps({"error": str(error)}) if as_json else f"depthscope: {error}", file=sys.stderr)
        sys.exit(2)
    except SystemExit as error:
        if isinstance(error.__context__, BrokenPipeError):  # click's answer to one, with a code of its own
            to_nowhere()
        # None of ours, and its code would say that all went well: code of the user's, where nobody caught it.
        print(f"depthscope: the study's own code ended the process (SystemExit: {error.code}).", file=sys.stderr)
        sys.exit(RUNS_FAILED)
    except (KeyboardInterrupt, typer.Abort):  # which of the two, or the code 130, depends on typer's version
        code = INTERRUPTED
    except BrokenPipeError:
        to_nowhere()
    except OSError as error:
        print(f"depthscope: the output cannot be written ({error.strerror or error}).", file=sys.stderr)
        sys.exit(RUNS_FAILED)
    except Exception as error:
        # Typer's own errors (an unknown option, a missing argument) carry an exit code and a message.
        if getattr(error, "exit_code", None) is None or not hasattr(error, "format_message"):
            raise
        if told := usage(error):  # none where no command was given: the help has been shown
            print(f"depthscope: {told}", file=sys.stderr)
        sys.exit(2)
    if code == INTERRUPTED:
        verb = next((each for each in sys.argv[1:] if not each.startswith("-")), "")
        keeps = verb in ("run", "tune") or (verb == "landscape" and any(each.startswith("--out") for each in sys.argv))
        kept = " What is finished is kept; the same command continues." if keeps else ""
        print(f"\nInterrupted.{kept}", file=sys.stderr)
    sys.exit(code or 0)
