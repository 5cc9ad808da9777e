"""What was controlled between two arms, read from the digests that the records keep.

A run that failed before it drew its tensors keeps no digests. Its seed is left out and counted: that
nothing is known of it does not mean that it started otherwise.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from depthscope.analysis import samples
from depthscope.analysis.samples import Sample
from depthscope.analysis.table import Results
from depthscope.record.schema import RunRecord
from depthscope.study.run import OPTION_FIELDS, UNIDENTIFIED, RunSpec


@dataclass(frozen=True, kw_only=True)
class Control:
    """A baseline and another arm, at the same place of the axes, over the seeds whose digests both have.

    Attributes:
        part: name of the part.
        baseline: name of the baseline arm.
        arm: name of the other arm.
        axes: values of the part's axes.
        seeds: seeds compared.
        num_skipped: seeds with two records that cannot be compared, because one keeps no digests.
        shared: tensors that both have and that start equal on every seed.
        differing: tensors that both have and that start otherwise on some seed.
        reshaped: those of `differing` that have another shape there, as far as the records tell: they are other
            tensors under one name, and not the same ones drawn otherwise.
        only_baseline: tensors of the baseline alone.
        only_arm: tensors of the other arm alone.
        same_data: whether both saw the same data on every seed; None where a record does not tell.
        same_order: whether the batches came in the same order, likewise; True where both use all examples at once
            or are not trained.
        same_augment: whether the augmentation drew the same, likewise; True where both have none.
        same_code: whether the user's code that both name was the same on every seed; None where there is none.
        fields: fields of a run in which the arms differ, such as `shortcut` or `optimizer_options.momentum`.
    """

    part: str
    baseline: str
    arm: str
    axes: Mapping[str, Any]
    seeds: tuple[int, ...]
    num_skipped: int
    shared: tuple[str, ...]
    differing: tuple[str, ...]
    reshaped: tuple[str, ...]
    only_baseline: tuple[str, ...]
    only_arm: tuple[str, ...]
    same_data: bool | None
    same_order: bool | None
    same_augment: bool | None
    same_code: bool | None
    fields: tuple[str, ...]

    @property
    def paired(self) -> bool | None:
        """Whether the arms saw the same data in the same order and augmentation; None where it is not known."""
        facts = (self.same_data, self.same_order, self.same_augment)
        if not self.seeds:
            return None
        return False if False in facts else None if None in facts else True

    @property
    def same_start(self) -> bool | None:
        """Whether all tensors that both have start equal; None where none is known."""
        if not (self.shared or self.differing):
            return None
        return not self.differing


def controls(results: Results) -> tuple[Control, ...]:
    """The baseline of each part against each other arm, at each place of the axes, in the study's order."""
    out = []
    for name, part in results.study.parts.items():
        found = samples.group(row for row in results.rows if row.cell.part == name)
        baseline = part.baseline or part.arms[0].name
        base = {repr(dict(sample.axes)): sample for sample in found if sample.arm == baseline}
        for sample in found:
            other = base.get(repr(dict(sample.axes)))
            if sample.arm != baseline and other is not None:
                out.append(compare(name, other, sample))
    return tuple(out)


def differing_fields(a: RunSpec, b: RunSpec) -> tuple[str, ...]:
    """The fields in which two specs differ, options by their dotted name; seed and measures are no difference."""
    left, right = (spec.model_dump(mode="json", exclude={"seed", *UNIDENTIFIED}) for spec in (a, b))
    names: list[str] = []
    for field in left:
        if isinstance(left[field], dict) and isinstance(right[field], dict):
            keys = dict.fromkeys([*left[field], *right[field]])
            missing = object()
            names += [
                f"{field}.{key}" for key in keys if left[field].get(key, missing) != right[field].get(key, missing)
            ]
        elif left[field] != right[field]:
            names.append(field)
    return tuple(names)


def compare(part: str, base: Sample, arm: Sample) -> Control:
    """What two samples of a part share, seed by seed, and in which fields they differ."""
    theirs = {row.cell.seed: row.record for row in arm.rows}
    both: dict[int, tuple[RunRecord, RunRecord]] = {}
    for row in base.rows:
        other = theirs.get(row.cell.seed)
        if row.record is not None and other is not None:
            both[row.cell.seed] = (row.record, other)
    pairs = {seed: (a, b) for seed, (a, b) in both.items() if a.digests.init and b.digests.init}
    inits = [(a.digests.init, b.digests.init) for a, b in pairs.values()]
    in_a = dict.fromkeys(name for a, _ in inits for name in a)
    in_b = dict.fromkeys(name for _, b in inits for name in b)
    common = [name for name in in_a if name in in_b]
    equal = {name for name in common if all(a.get(name) == b.get(name) for a, b in inits)}
    differing = tuple(name for name in common if name not in equal)
    specs = (base.rows[0].spec, arm.rows[0].spec)
    return Control(
        part=part,
        baseline=base.arm,
        arm=arm.arm,
        axes=base.axes,
        seeds=tuple(sorted(pairs)),
        num_skipped=len(both) - len(pairs),
        shared=tuple(name for name in common if name in equal),
        differing=differing,
        reshaped=_reshaped(differing, next(iter(pairs.values()), None)),
        only_baseline=tuple(name for name in in_a if name not in in_b),
        only_arm=tuple(name for name in in_b if name not in in_a),
        same_data=_same([(a.digests.data, b.digests.data) for a, b in pairs.values()], absent=None),
        same_order=_same(
            [(a.digests.order, b.digests.order) for a, b in pairs.values()],
            absent=all(spec.batch_size is None or spec.steps == 0 for spec in specs) or None,
        ),
        same_augment=_same(
            [(a.digests.augment, b.digests.augment) for a, b in pairs.values()],
            absent=all(spec.augment == "none" or spec.steps == 0 for spec in specs) or None,
        ),
        same_code=_same_code(pairs.values()),
        fields=differing_fields(*specs),
    )


def things(fields: Sequence[str]) -> tuple[str, ...]:
    """What varies: fields, where the options of a name that itself differs are one with it.

    >>> things(["optimizer", "optimizer_options.momentum", "lr"]), things(["data_options.num_train"])
    (('optimizer', 'lr'), ('data_options.num_train',))
    """
    whole = {field for field, kind in OPTION_FIELDS.items() if kind in fields}
    return tuple(field for field in fields if field.partition(".")[0] not in whole)


def _reshaped(differing: Sequence[str], pair: tuple[RunRecord, RunRecord] | None) -> tuple[str, ...]:
    """Those tensors that have another shape in the two records.

    A record knows what a layer gives out, and the layer before it what comes in. Of a tensor that belongs to no layer
    (a scale of a norm) it knows nothing: it goes with the others where any has another shape.
    """
    if pair is None:
        return ()
    left, right = (dict(_shapes(record)) for record in pair)
    known = {name: left[name] != right[name] for name in differing if name in left and name in right}
    return tuple(name for name in differing if known.get(name, True)) if any(known.values()) else ()


def _shapes(record: RunRecord) -> Iterator[tuple[str, tuple[object, ...]]]:
    before: tuple[int, ...] = ()
    for layer in record.layers:
        if layer.weight is not None:
            yield layer.weight, (before, layer.shape)
        before = layer.shape


def _same_code(pairs: Iterable[tuple[RunRecord, RunRecord]]) -> bool | None:
    """Whether the user's code that both runs name was the same; None where there is none."""
    facts = [
        source == b.digests.code[name]
        for a, b in pairs
        for name, source in a.digests.code.items()
        if name in b.digests.code
    ]
    return all(facts) if facts else None


def _same(pairs: list[tuple[str | None, str | None]], *, absent: bool | None) -> bool | None:
    """Whether the digests of all pairs are equal; `absent` is the answer where neither of a pair has one."""
    if not pairs:
        return None
    facts = [absent if a is None and b is None else None if a is None or b is None else a == b for a, b in pairs]
    return False if False in facts else None if None in facts else True
