"""Train variants of the user's own side by side, paired by construction, and judge what differs."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING, Any

from depthscope.analysis.fates import Fate, fates
from depthscope.analysis.finding import Finding
from depthscope.analysis.model import ModelDiagnosis, diagnose
from depthscope.analysis.variants import headline, judge_variants
from depthscope.api.document import Document, strict, written
from depthscope.api.reports import check_lang
from depthscope.core.errors import MissingDependencyError, UserError, shown
from depthscope.record.variants import Setup, VariantRun
from depthscope.train.usercode import TORCH_MISSING

if TYPE_CHECKING:
    from depthscope.probes.measure.objective import LossFn
    from depthscope.train.variants.arm import Factory, MakeOptimizer

COMPARISON_SCHEMA = 1
"""Of `Comparison.to_json`."""
LR = 1e-3
IN_PYTHON = "depthscope.compare(variants, data, loss_fn, steps={steps}, seeds={seeds})"

Progress = Callable[[str, int, int, float], None]
"""`(variant, seed, updates done, loss)`, after each update."""


@dataclass(frozen=True, kw_only=True, repr=False)
class Comparison(Document):
    """Trained variants with the findings on them. `print` tells them.

    Attributes:
        runs: every variant with every seed, also those that diverged or failed.
        setup: what they had in common.
        findings: the first variant is what the others are compared with.
        diagnoses: (variant, seed, `first` or `last`) -> what its profile means.
        command: what repeats it.
    """

    runs: tuple[VariantRun, ...]
    setup: Setup
    findings: tuple[Finding, ...]
    diagnoses: Mapping[tuple[str, int, str], ModelDiagnosis]
    command: str

    @property
    def fates(self) -> tuple[Fate, ...]:
        """How the runs of each variant ended."""
        return fates(self.runs)

    @property
    def lost(self) -> tuple[str, ...]:
        """Variants of which a run failed, or every run diverged: of them too little was seen."""
        return tuple(each.arm for each in self.fates if each.failed or len(each.diverged) == each.num_runs)

    @property
    def headline(self) -> str:
        """What was found, in a sentence or two."""
        return " ".join(headline(self.findings, self.fates, "en"))

    def __str__(self) -> str:
        lines = [self.headline, ""]
        for each in self.findings:
            role = "confirmatory" if each.confirmatory else "exploratory"
            lines += [f"{each.verdict} ({role}): {each.text['en']}", f"  {each.reason}"]
        lines += self._starts()
        for fate in self.fates:
            for kind, seeds in (("diverged", fate.diverged), ("failed", fate.failed)):
                if seeds:
                    lines.append(f"{fate.arm} {kind} on seeds {', '.join(map(str, seeds))}: {fate.reason}")
        for (arm, seed, when), found in self.diagnoses.items():
            if seed == self.setup.seeds[0]:
                lines.append(f"{arm}, {'start' if when == 'first' else 'end'}: {found.verdict}. {found.sentence}")
        num = len(self.setup.seeds)
        lines += ["", f"{self.setup.steps} updates, {num} seed{'s' if num > 1 else ''}; {self.setup.optimizer}."]
        return "\n".join(lines)

    def _starts(self) -> list[str]:
        """What the variants share at the start, and at which level several are judged."""
        decided = [each for each in self.findings if each.confirmatory]
        told = []
        for pair in (each.pairing[0] for each in decided if each.pairing[0].seeds):
            alone = len(pair.only_a) + len(pair.only_b)
            more = f"; {alone} more are in one of them" if alone else ""
            told.append(
                f"start: {pair.num_shared} of the {pair.num_common} tensors that “{pair.a}” and “{pair.b}” both have "
                f"are equal{more}. Batches and draws are the same."
            )
        if len(decided) > 1:
            told.append("Intervals that decide are Holm's: all comparisons together err in at most 5% of such trials.")
        return told

    def document(self) -> dict[str, Any]:
        """All of it as plain data that strict JSON holds: see `Checkup.document`."""
        found: dict[str, Any] = strict(
            {
                "schema": COMPARISON_SCHEMA,
                "depthscope": version("depthscope"),
                "command": self.command,
                "headline": self.headline,
                "setup": dataclasses.asdict(self.setup),
                "findings": [each.model_dump(mode="json") for each in self.findings],
                "runs": [_run(run, self.diagnoses) for run in self.runs],
            }
        )
        return found

    def page(self, path: str | Path | None = None, *, lang: str = "en") -> bytes:
        """One offline HTML file; written too where a path is given.

        Raises:
            UserError: no such language; the file cannot be written.
        """
        from depthscope.report.model import render_comparison

        html = render_comparison(
            self.runs,
            self.setup,
            self.findings,
            self.fates,
            dict(self.diagnoses),
            command=self.command,
            version=version("depthscope"),
            lang=check_lang(lang),
        )
        return written(html, path)


def compare(
    variants: Mapping[str, Factory],
    data: Any,
    loss_fn: LossFn | None = None,
    *,
    steps: int = 200,
    seeds: int | Sequence[int] = 3,
    batch_size: int = 64,
    optimizer: MakeOptimizer | None = None,
    lr: float = LR,
    validation: Any = None,
    progress: Progress | None = None,
) -> Comparison:
    """Train variants on the same batches from the same seeds, and judge the differences seed by seed.

    The first variant is the one that the others are compared with. Generators, modes and data stay as they were.

    Args:
        variants: name -> function without arguments that builds the model anew, on its device.
        data: (inputs, targets) tensors, a mapping of tensors, a Dataset, a DataLoader or other iterable of batches,
            or a function seed -> iterable of batches.
        loss_fn: `(output, targets) -> loss`, a mean over examples; None: the model's own `output.loss`.
        steps: updates.
        seeds: how many (0, 1, ...), or which.
        batch_size: of tensors and data sets; loaders have their own.
        optimizer: parameters -> torch optimizer. AdamW with torch's defaults by default, the same for all.
        lr: of the default optimizer.
        validation: held-out data, in any of the forms of `data`.
        progress: called after each update with (variant, seed, updates done, loss).

    Raises:
        UserError: bad input; or no run could be trained at all, with the first reason.
    """
    try:
        import torch

        from depthscope.train.variants import train_variants
        from depthscope.train.variants.data import Source
    except ModuleNotFoundError as error:
        if error.name != "torch":
            raise
        raise MissingDependencyError(TORCH_MISSING.replace("this study", "`compare`")) from error
    chosen = _checked(variants, steps, seeds, batch_size, lr)
    make = optimizer or (lambda parameters: torch.optim.AdamW(parameters, lr=lr))
    source = Source(data, batch_size=batch_size)
    held_out = Source(validation, batch_size=batch_size, what="validation") if validation is not None else None
    trained = train_variants(
        variants,
        source,
        loss_fn,
        steps=steps,
        seeds=chosen,
        make_optimizer=make,
        validation=held_out,
        progress=progress,
    )
    setup = Setup(
        steps=steps,
        seeds=chosen,
        optimizer=f"AdamW, lr {lr:g}, torch's defaults" if optimizer is None else f"the caller's: {_name(optimizer)}",
        data=str(source),
        evaluated=trained.evaluated,
        validated=trained.validated,
        loss=_name(loss_fn) if loss_fn is not None else "the model's own (output.loss)",
        device=trained.device,
        versions={name: found for name in ("depthscope", "torch") if (found := _version(name))},
        unrepeated=trained.unrepeated,
    )
    diagnoses = {
        (run.arm, run.seed, when): diagnose(profile)
        for run in trained.runs
        for when, profile in (("first", run.first), ("last", run.last))
        if profile is not None
    }
    seeds_said = repr(seeds if isinstance(seeds, int) else list(chosen))
    return Comparison(
        runs=trained.runs,
        setup=setup,
        findings=judge_variants(trained.runs),
        diagnoses=diagnoses,
        command=IN_PYTHON.format(steps=steps, seeds=seeds_said),
    )


def _checked(
    variants: Mapping[str, Factory], steps: int, seeds: int | Sequence[int], batch_size: int, lr: float
) -> tuple[int, ...]:
    if not isinstance(variants, Mapping) or len(variants) < 2:
        raise UserError(
            f"compare: wanted two variants or more, name -> function that builds it; got {shown(variants)}."
        )
    for name in variants:
        if not isinstance(name, str) or not name.strip():
            raise UserError(f"compare: wanted names as the keys of variants, got {shown(name)}.")
    for what, value in (("steps", steps), ("batch_size", batch_size)):
        if not isinstance(value, int) or isinstance(value, bool) or value < 1:
            raise UserError(f"compare: {what}: wanted an integer of 1 or more, got {shown(value)}.")
    if not isinstance(lr, int | float) or not 0 < lr < float("inf"):
        raise UserError(f"compare: lr: wanted a number above 0, got {shown(lr)}.")
    given = range(seeds) if isinstance(seeds, int) and not isinstance(seeds, bool) else seeds
    chosen = tuple(given) if isinstance(given, Iterable) else ()
    wrong = [seed for seed in chosen if not isinstance(seed, int) or isinstance(seed, bool) or seed < 0]
    if not chosen or wrong or len(set(chosen)) < len(chosen):
        raise UserError(
            f"compare: seeds: wanted a number of seeds, or different seeds of 0 or more; got {shown(seeds)}."
        )
    return chosen


def _run(run: VariantRun, diagnoses: Mapping[tuple[str, int, str], ModelDiagnosis]) -> dict[str, Any]:
    found = dataclasses.asdict(dataclasses.replace(run, first=None, last=None, outcome=run.outcome))
    found["outcome"] = run.outcome.model_dump(mode="json")
    for when, profile in (("first", run.first), ("last", run.last)):
        found[when] = None
        if profile is not None:
            found[when] = {
                "diagnosis": diagnoses[run.arm, run.seed, when].model_dump(mode="json"),
                "readings": [dataclasses.asdict(each) for each in profile.readings],
            }
    return found


def _name(function: Any) -> str:
    return str(getattr(function, "__qualname__", "") or type(function).__name__)


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return ""
