"""A checkup as a table of text and, for a notebook, of HTML: the verdict in words first."""

from __future__ import annotations

import html
import math
import textwrap
from collections.abc import Sequence

from depthscope.analysis.model import Expectation, Fault, ModelDiagnosis
from depthscope.analysis.model.verdict import WIDTH
from depthscope.analysis.model.words import figure
from depthscope.core.readings import Course, ModelProfile, Place

LONGEST_NAME = 34
MOST_ROWS = 60
"""Rows shown; of a longer model the ends, and the blocks that the verdict names."""
ON_DEMAND: tuple[tuple[str, Place, str], ...] = (
    ("rank", "boundary", "rank"),
    ("dead", "boundary", "dead"),
    ("saturated", "boundary", "saturated"),
    ("max s.v.", "block", "jacobian_max"),
    ("|J-I|/|I|", "block", "identity_distance"),
)
"""Columns of what is measured on demand: head, place, quantity."""
HEADS = (
    *("block", "|h|", "|dL/dh|", "multiplier", "expected", "|F|/|x|", "expected"),
    *(head for head, _, _ in ON_DEMAND),
    "",
)
_OBJECTIVES = {
    "loss": "gradients of the loss given",
    "model loss": "gradients of the model's own loss",
    "cotangent": "no loss was given: gradients of a random direction at the output",
}


def table(
    name: str,
    profile: ModelProfile,
    diagnosis: ModelDiagnosis,
    expectation: Expectation,
    costs: Sequence[str] = (),
    course: Course | None = None,
) -> str:
    """Words and table for a terminal."""
    lines = [f"{name}: {diagnosis.verdict}", *diagnosis.lines(_losses(profile, course))]
    rows = block_rows(profile, diagnosis, expectation)
    shown = [row for row, kept in zip(rows, _kept(rows), strict=True) if kept]
    columns = [column for column in range(len(HEADS)) if column == 0 or any(row[column] for row in rows)]
    cells = [[HEADS[column] for column in columns]] + [[_cut(row[column]) for column in columns] for row in shown]
    widths = [max(len(row[at]) for row in cells) for at in range(len(columns))]
    lines.append("")
    for row in cells:
        texts = [
            cell.ljust(width) if columns[at] in (0, len(HEADS) - 1) else cell.rjust(width)
            for at, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]
        lines.append("  ".join(texts).rstrip())
    if len(shown) < len(rows):
        lines.append(f"... {len(rows) - len(shown)} blocks more: checkup.to_pandas(), checkup.page(path)")
    lines += ["", *textwrap.wrap(_facts(profile), WIDTH)]
    trust = profile.value("trust")
    if not math.isnan(trust):
        lines.append(f"trust: the cosine of this gradient with that in float64 is {figure(trust)}")
    lines += [f"on demand: {cost}" for cost in costs]
    return "\n".join(lines)


def html_table(
    name: str,
    profile: ModelProfile,
    diagnosis: ModelDiagnosis,
    expectation: Expectation,
    course: Course | None = None,
) -> str:
    """The same for a notebook, without script or style sheet."""
    rows = block_rows(profile, diagnosis, expectation)
    shown = [row for row, kept in zip(rows, _kept(rows), strict=True) if kept]
    columns = [column for column in range(len(HEADS)) if column == 0 or any(row[column] for row in rows)]
    head = "".join(f"<th>{html.escape(HEADS[column])}</th>" for column in columns)
    body = "".join(
        "<tr>" + "".join(f"<td>{html.escape(row[column])}</td>" for column in columns) + "</tr>" for row in shown
    )
    words = "".join(f"<p>{html.escape(text)}</p>" for text in diagnosis.told(_losses(profile, course)))
    more = f"<p>... {len(rows) - len(shown)} blocks more</p>" if len(shown) < len(rows) else ""
    return (
        f"<div><h4>{html.escape(name)}: {html.escape(diagnosis.verdict)}</h4>{words}<table><thead><tr>{head}</tr>"
        f"</thead><tbody>{body}</tbody></table>{more}<p><small>{html.escape(_facts(profile))}</small></p></div>"
    )


def block_rows(profile: ModelProfile, diagnosis: ModelDiagnosis, expectation: Expectation) -> list[tuple[str, ...]]:
    """A row a block, as in `HEADS`; `*` in the last column marks what the verdict names."""
    structure = profile.structure
    norms, grads = profile.values("boundary", "norm"), profile.values("boundary", "grad_norm")
    multipliers, ratios = profile.values("block", "grad_multiplier"), profile.values("addition", "residual_ratio")
    further = [(place, profile.values(place, quantity)) for _, place, quantity in ON_DEMAND]
    nonfinite = profile.values("boundary", "nonfinite"), profile.values("boundary", "grad_nonfinite")
    faults: tuple[ModelDiagnosis | Fault, ...] = (diagnosis, *diagnosis.others)
    named = {name for fault in faults for name in fault.where}
    rows: list[tuple[str, ...]] = []
    for block in structure.blocks:
        end = structure.boundaries[block.index + 1].name
        additions = [structure.additions[index].name for index in block.additions]
        flags: list[str] = [] if block.role == "body" else [block.role]
        flags += ["*"] if named & {block.name, end, *additions} else []
        flags += ["not finite"] if any(values.get(end) for values in nonfinite) else []
        theory = expectation.multipliers.get(block.name)
        rows.append(
            (
                block.name,
                _of([norms.get(end)]),
                _of([grads.get(end)]),
                _of([multipliers.get(block.name)]),
                _of([theory.value if theory else None]),
                _of([ratios.get(each) for each in additions]),
                _of([each.value for name in additions if (each := expectation.ratios.get(name))]),
                *(_of([values.get(end if place == "boundary" else block.name)]) for place, values in further),
                " ".join(flags),
            )
        )
    return rows


def _kept(rows: Sequence[tuple[str, ...]]) -> list[bool]:
    half = MOST_ROWS // 2
    ends = len(rows) - half
    return [len(rows) <= MOST_ROWS or at < half or at >= ends or bool(row[-1]) for at, row in enumerate(rows)]


def _of(values: Sequence[float | None]) -> str:
    return ", ".join(figure(value) for value in values if value is not None)


def _cut(text: str) -> str:
    half = LONGEST_NAME // 2
    return text if len(text) <= LONGEST_NAME else f"{text[: half - 1]}…{text[-half:]}"


def _losses(profile: ModelProfile, course: Course | None) -> list[str]:
    """The loss beside that of a uniform guess; of a training, how its curves go."""
    if course is not None:
        curves = (("training loss", course.losses), ("validation loss", course.validations))
        return [_curve(name, curve) for name, curve in curves if curve]
    loss, classes = profile.value("loss"), profile.conditions[profile.steps()[-1]].num_classes
    if math.isnan(loss) and not profile.values("model", "loss"):
        return []
    chance = f"; a uniform guess of {classes} classes has {figure(math.log(classes))}" if classes else ""
    return [f"loss: {figure(loss)}{chance}"]


def _curve(name: str, curve: Sequence[tuple[int, float]]) -> str:
    first, last = curve[0], curve[-1]
    text = f"{name}: {figure(first[1])} at step {first[0]:,}"
    if len(curve) > 1:
        text += f", {figure(last[1])} at step {last[0]:,}"
    finite = [each for each in curve if math.isfinite(each[1])]
    for word, pick in (("least", min), ("greatest", max)):
        found = pick(finite, key=lambda each: each[1], default=first)
        if found not in (first, last):
            text += f"; {word} {figure(found[1])} at step {found[0]:,}"
    return text


def _facts(profile: ModelProfile) -> str:
    structure, at = profile.structure, profile.conditions[profile.steps()[-1]]
    data = "made-up noise" if at.data == "noise" else "the batch given"
    counts = (
        f"{len(structure.blocks)} blocks, {len(structure.additions)} residual additions, "
        f"{structure.num_concatenations} concatenations, {structure.num_gates} gates, "
        f"{structure.num_parameters:,} parameters"
    )
    mode = "train" if at.training else "eval"
    return (
        f"{counts}. Measured on {data} ({at.batch} examples), {mode} mode, {at.dtype}, {at.device}; "
        f"{_OBJECTIVES[at.objective]}."
    )
