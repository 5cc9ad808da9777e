"""Probe any PyTorch model: what is measured, what theory expects, what that means, in one object that shows itself."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Collection
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from depthscope.analysis.model import Expectation, Fault, ModelDiagnosis, diagnose, expected
from depthscope.api import checkup_text
from depthscope.api.document import Document, pandas_for, strict, written
from depthscope.api.reports import check_lang
from depthscope.core.errors import MissingDependencyError
from depthscope.core.readings import Course, ModelProfile
from depthscope.train.usercode import TORCH_MISSING

if TYPE_CHECKING:
    import pandas
    from torch import nn

    from depthscope.probes.measure.objective import LossFn

CHECKUP_SCHEMA = 1
"""Of `Checkup.to_json`: counted up when a field changes its meaning or goes."""
IN_PYTHON = "depthscope.probe(model, batch, loss_fn)"


@dataclass(frozen=True, kw_only=True, repr=False)
class Checkup(Document):
    """A model's profile with its diagnosis.

    `print` shows a table, a notebook the same in HTML.

    Attributes:
        profile: structure and readings.
        diagnosis: what they mean.
        expected: what theory expects where it is recognised.
        name: of the model's class.
        command: what repeats the measurement.
        costs: what the measurements on demand cost, one line each.
        course: of a watched training: all its steps.
    """

    profile: ModelProfile
    diagnosis: ModelDiagnosis
    expected: Expectation
    name: str
    command: str = IN_PYTHON
    costs: tuple[str, ...] = ()
    course: Course | None = None

    @property
    def verdict(self) -> str:
        """In a word or two: see `analysis.model.VERDICTS`."""
        return self.diagnosis.verdict

    def __str__(self) -> str:
        return checkup_text.table(self.name, self.profile, self.diagnosis, self.expected, self.costs, self.course)

    def _repr_html_(self) -> str:
        return checkup_text.html_table(self.name, self.profile, self.diagnosis, self.expected, self.course)

    def to_pandas(self) -> pandas.DataFrame:
        """A row a reading: step, place, name, quantity, value, and `expected` where theory gives one.

        Raises:
            UserError: pandas is not installed.
        """
        made: Any = pandas_for("The same rows: checkup.profile.readings.")
        theory = {
            ("block", "grad_multiplier"): self.expected.multipliers,
            ("addition", "residual_ratio"): self.expected.ratios,
        }
        rows = []
        for each in self.profile.readings:
            value = theory.get((each.place, each.quantity), {}).get(each.name)
            rows.append({**dataclasses.asdict(each), "expected": math.nan if value is None else value.value})
        table: pandas.DataFrame = made.DataFrame(
            rows, columns=["step", "place", "name", "quantity", "value", "expected"]
        )
        return table

    def document(self) -> dict[str, Any]:
        """All of it as plain data that strict JSON holds; docs/probe.md says what each field is.

        Numbers that are not finite are the strings `nan`, `inf` and `-inf`: JSON has no numbers for them.
        """
        found: dict[str, Any] = strict(
            {
                "schema": CHECKUP_SCHEMA,
                "depthscope": version("depthscope"),
                "model": self.name,
                "command": self.command,
                "diagnosis": self.diagnosis.model_dump(mode="json"),
                "conditions": [
                    {"step": step, **dataclasses.asdict(each)} for step, each in self.profile.conditions.items()
                ],
                "structure": dataclasses.asdict(self.profile.structure),
                "readings": [dataclasses.asdict(each) for each in self.profile.readings],
                "expected": dataclasses.asdict(self.expected),
                "statuses": dict(self.profile.statuses),
                "costs": list(self.costs),
            }
        )
        return found

    def page(self, path: str | Path | None = None, *, lang: str = "en") -> bytes:
        """One offline HTML file with the verdict, pictures and tables; written too where a path is given.

        Args:
            path: file to write.
            lang: en or zh.

        Raises:
            UserError: no such language; the file cannot be written.
        """
        from depthscope.report.model import Shown, render_model, tell
        from depthscope.report.words import Words

        chosen = check_lang(lang)
        faults: tuple[ModelDiagnosis | Fault, ...] = (self.diagnosis, *self.diagnosis.others)
        places = {name for fault in faults for name in fault.where}
        html = render_model(
            Shown(profile=self.profile, expectation=self.expected, places=frozenset(places), course=self.course),
            tell(self.diagnosis, Words(chosen)),
            title=self.name,
            command=self.command,
            version=version("depthscope"),
            lang=chosen,
        )
        return written(html, path)


def probe(
    model: nn.Module,
    batch: object,
    loss_fn: LossFn | None = None,
    *,
    measure: Collection[str] = (),
    step: int = 0,
    data: Literal["given", "noise"] = "given",
    seed: int = 0,
    tell: Callable[[str], None] | None = None,
) -> Checkup:
    """Measure any model on one batch and say what depth does to it; the model stays bitwise as found.

    Args:
        model: in the mode, dtype and on the device in which it is to be measured.
        batch: a tensor, (inputs, targets), or a mapping of the model's arguments. Tensors and generators are cloned;
            an object of another kind among them is passed as it is, and stays changed where the model changes it.
        loss_fn: `(output, targets) -> loss`. None: the model's own `output.loss`, else a random direction at the
            output and no loss.
        measure: what is measured on demand beside: any of `jacobian`, `rank`, `units`, `trust`.
        step: updates done before.
        data: `noise` where the batch is made up: the verdict then says so.
        seed: of random directions.
        tell: given each line about the cost of a measurement on demand, before it runs.

    Raises:
        UserError: bad input, in one line.

    >>> import depthscope, torch
    >>> net = torch.nn.Sequential(*(torch.nn.Linear(4, 4, bias=False) for _ in range(3)))
    >>> _ = [torch.nn.init.eye_(layer.weight) for layer in net]
    >>> checkup = depthscope.probe(net, torch.ones(8, 4))
    >>> checkup.verdict, [round(m, 6) for m in checkup.profile.values("block", "grad_multiplier").values()]
    ('healthy', [1.0, 1.0, 1.0])
    """
    try:
        from depthscope.api.batches import first_batch
        from depthscope.api.demand import measured
        from depthscope.probes.guard import unwrapped
    except ModuleNotFoundError as error:
        if error.name != "torch":
            raise
        raise MissingDependencyError(TORCH_MISSING.replace("this study", "`probe`")) from error
    given = first_batch(batch)
    profile, costs = measured(model, given, loss_fn, measure=measure, step=step, data=data, seed=seed, tell=tell)
    diagnosis = diagnose(profile)
    if note := _one_dimension(profile):
        diagnosis = diagnosis.model_copy(update={"notes": (note, *diagnosis.notes)})
    return Checkup(
        profile=profile,
        diagnosis=diagnosis,
        expected=expected(profile.structure, profile),
        name=type(unwrapped(model)).__name__,
        costs=costs,
    )


def _one_dimension(profile: ModelProfile) -> str:
    """What to say of an input that seems to lack its batch; tokens may well be one an example."""
    structure = profile.structure
    first = next((op.kind for block in structure.blocks for op in block.ops), "")
    if not structure.blocks or structure.boundaries[0].shape or first == "embedding":
        return ""
    num = profile.conditions[profile.steps()[-1]].batch
    return (
        f"the input has one dimension, taken for {num} examples: a batch of one example of {num} numbers is [1, {num}]"
    )
