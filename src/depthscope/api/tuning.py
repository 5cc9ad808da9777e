"""The verb `tune`: choose a number for each arm on runs of their own, write the study that uses it, and run it."""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from depthscope.api.study import run
from depthscope.core.errors import FaultsError, UserError, unknown_name
from depthscope.core.files import read_text, write_bytes
from depthscope.record.folder import check_folder, default_folder
from depthscope.study.catalog import is_user_code
from depthscope.study.expand import Plan, expand
from depthscope.study.faults import found_in, in_order
from depthscope.study.selection import is_selection, selection_study, with_choices
from depthscope.study.study import StudySpec
from depthscope.study.toml import MAX_CHARACTERS, bundled, dump, load, parse
from depthscope.study.tuning import Choice, Tuned, Tuning
from depthscope.train.build import Context, load_data
from depthscope.train.usercode import as_user_error, takes

if TYPE_CHECKING:
    from depthscope.analysis.table import Results
    from depthscope.api.reports import Report


WRITTEN = "# Written by `depthscope tune`: each arm sets what was chosen for it, and [tuned] says from what."


@dataclass(frozen=True, kw_only=True)
class TuneResult:
    """What was chosen.

    Attributes:
        study: the study with the chosen values, as it was written; `study.tuned` says where they come from.
        path: the study file.
        selection: the findings of the runs that the choice was made on, and where their page is.
        report: the findings of the study itself and where its page is; None where it was not run.
    """

    study: StudySpec
    path: Path
    selection: Report
    report: Report | None = None

    @property
    def tuned(self) -> Tuned:
        """The choices and what they were made from."""
        assert self.study.tuned is not None
        return self.study.tuned


def tune(
    study: str | Path,
    *,
    size: str | None = None,
    grid: Sequence[float] | None = None,
    seeds: int | Sequence[int] | None = None,
    validation: int | None = None,
    out: str | Path | None = None,
    write: str | Path | None = None,
    then_run: bool = False,
    **how: Any,
) -> TuneResult:
    """Choose a number (the learning rate, unless `[tuning]` says otherwise) for each arm of a study.

    Every arm is run at every value of the grid, at all places of its part's axes, on selection seeds, with
    `validation` examples held out of the training set and the test set unopened. For each arm the value with the
    best mean of the metric on those examples wins; with `by` in `[tuning]`, for each arm at each value of those axes,
    so that a deep network is not run at what suits a shallow one. A value at which a run diverged or failed stands
    behind all at which fewer did, whatever its mean: the study would lose runs to it. Of equal ones the smaller wins,
    also of values at all of which every run was lost.

    The runs lie in a folder of their own, and the same call continues where it was interrupted, in the choice or in
    the study. The study that is written runs on seeds that the choice has not seen, trains on the whole training set,
    and is called NAME-tuned.

    Args:
        study: a bundled name, or the path of a TOML file; what it says under `[tuning]` holds where nothing is given.
        size: see `plan`.
        grid: values to try, two or more.
        seeds: selection seeds; a number of them counts from 10,000 on.
        validation: examples to hold out of each training set.
        out: folder of the selection's runs; None takes `default_folder`. Beside it, with `then_run`, lies the folder
            of the study, which has its default name.
        write: the study file to write; None takes NAME-tuned.toml beside the study file (for a bundled study: here),
            with the size in its name where it is not quick. A file is written over only if it is an earlier result of
            tuning this study.
        then_run: whether to run the study that is written too.
        how: further arguments of `run`, such as data, device, workers or watcher.

    Raises:
        UserError: bad input, nothing has been written; or no run of any arm ended with a figure.
    """
    _check_further(how)
    asked = _asked(load(study, size), str(study), grid=grid, seeds=seeds, validation=validation)
    expand(asked, source=str(study))  # its own faults, and those of [tuning]
    chosen_by = selection_study(asked)
    path = Path(write).expanduser() if write is not None else _beside(study, asked)
    at = path.absolute()  # before code of the user's runs, which may change the working directory
    _check_path(path, _named(asked))
    folder = Path(out).expanduser() if out is not None else default_folder(chosen_by)
    beside = folder.absolute().parent / default_folder(_named(asked)).name
    if then_run:
        if beside == folder.absolute():
            raise UserError(f"{folder} is where the tuned study's own results go. Choose another folder with --out.")
        check_folder(beside, _named(asked))  # now, and not when the runs of the choice are done
    _check_held_out(_expanded(chosen_by, str(study)), how.get("data"))
    selection = run(chosen_by, out=folder, **how)
    result = with_choices(asked, _tuned(asked, chosen_by, selection.results))
    write_bytes(at, f"{WRITTEN}\n{dump(result)}".encode())
    report = run(result, out=beside, **how) if then_run else None
    return TuneResult(study=result, path=path, selection=selection, report=report)


def _check_further(how: Mapping[str, Any]) -> None:
    """Refuse, before anything is looked at, arguments that neither this verb nor `run` takes."""
    own = [name for name in inspect.signature(tune).parameters if name != "how"]
    known = dict.fromkeys((*own, *inspect.signature(run).parameters))
    for name in how:
        if name not in known:
            said = " It is said in the study file, under [tuning]." if name in Tuning.model_fields else ""
            raise UserError(f"tune: {unknown_name('argument', name, known)}{said}")


def _asked(study: StudySpec, source: str, **given: Any) -> StudySpec:
    """The study with a `[tuning]` of what it says and, over that, what was given."""
    if is_selection(study):
        raise UserError(f"{source}: holds the runs of a choice already made. Tune the study that it was made from.")
    said = study.tuning.model_dump() if study.tuning else {}
    said |= {
        key: list(value) if isinstance(value, Sequence) else value for key, value in given.items() if value is not None
    }
    for key, option in (("grid", "--grid 0.01,0.03,0.1"), ("validation", "--validation 500")):
        if key not in said:
            raise UserError(f"{source}: no {key} to tune with. Give {option}, or a [tuning] table in the study file.")
    try:
        tuning = Tuning.model_validate(said)
    except ValidationError as error:
        faults = [(".".join(("tuning", *fault.path)), fault.message) for fault in found_in(error)]
        raise FaultsError(source, in_order(faults)) from error
    return study.model_copy(update={"tuning": tuning})


def _expanded(study: StudySpec, source: str) -> Plan:
    """The plan of the selection; what only its runs get wrong is told at `[tuning]`, which they come from."""
    try:
        return expand(study)
    except FaultsError as error:
        raise FaultsError(source, [("tuning", f"{path}: {message}") for path, message in error.faults]) from error


def _check_held_out(plan: Plan, root: str | Path | None) -> None:
    """See, before hours of runs, that data sets of the user's own hold out what they are told to, and nothing else."""
    context = Context(data_root=Path(root).absolute() if root is not None else None)
    for spec in (task.specs[0] for task in plan.tasks if is_user_code(task.specs[0].data)):
        for option in ("validation", "num_test"):
            if not takes(spec.data, option):
                raise UserError(
                    f"{spec.data}: takes no argument {option!r}, so no examples can be held out to choose on. With "
                    "validation it is told how many to return as x_validation and y_validation, with num_test = 0 to "
                    "return no test set."
                )
        with as_user_error(spec.data):
            data = load_data(spec, context)
        asked = spec.data_options["validation"]
        if data.validation is None or len(data.validation) != asked:
            came = "none" if data.validation is None else f"one of {len(data.validation)} examples"
            raise UserError(f"{spec.data}: gave {came} for validation = {asked}; wanted a split of {asked} examples.")
        if data.test is not None:
            raise UserError(f"{spec.data}: gave a test set for num_test = 0, so that the choice is not blind to it.")


def _beside(source: str | Path, study: StudySpec) -> Path:
    """The file to write where none is named."""
    folder = Path() if str(source) in bundled() else Path(source).parent
    return folder / f"{default_folder(_named(study)).name}.toml"


def _named(study: StudySpec) -> StudySpec:
    return study.model_copy(update={"name": f"{study.name}-tuned"})


def _check_path(path: Path, study: StudySpec) -> None:
    """Refuse to write over anything but an earlier result of tuning this study, before a run is made."""
    try:
        if not path.exists():
            if not path.absolute().parent.is_dir():
                raise UserError(f"{path}: its folder does not exist. Name another file with --write.")
            return
        held = parse(read_text(path, MAX_CHARACTERS), source=str(path))
    except (OSError, UnicodeDecodeError, FaultsError) as error:
        raise UserError(f"{path} is there and no tuned study. Name another file with --write.") from error
    if held.tuned is None or held.name != study.name:
        raise UserError(f"{path} holds the study {held.name!r}, no tuned {study.name!r}. Name another with --write.")


def _tuned(study: StudySpec, selection: StudySpec, results: Results) -> Tuned:
    tuning = study.tuning
    assert tuning is not None
    # Analysis is loaded here: a study that is refused needs none.
    from depthscope.analysis.choosing import candidates

    found = candidates(results)
    if any(each.num_missing for each in found):
        raise UserError(f"{results.study.name}: not all runs are done; the same call continues.")
    if not any(each.choice for each in found):
        raise UserError(
            f"no value of {tuning.field} is fit for any arm: of all {len(tuning.grid)} that were tried, no run ended "
            f"with a {tuning.metric}. Try smaller ones with --grid."
        )
    # An arm that diverges at every value is a finding, and no reason to keep the others from running: of values that
    # all failed, too, the smaller wins.
    choices = [
        each.choice
        or Choice(part=each.part, arm=each.arm.name, at=dict(each.at), value=tuning.grid[0], scores=each.scores)
        for each in found
    ]
    return Tuned(
        field=tuning.field,
        grid=tuning.grid,
        metric=tuning.metric,
        seeds=tuning.selection_seeds,
        validation=tuning.validation,
        num_runs=len(results.plan.runs),
        digest=selection.digest,
        choices=tuple(choices),
    )
