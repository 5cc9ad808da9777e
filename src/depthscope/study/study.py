"""StudySpec: a question, its arms and axes, and the claims that will be judged."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Annotated, Any

from pydantic import AfterValidator, Field

from depthscope.core.hashing import digest
from depthscope.study.cells import agrees
from depthscope.study.claims import Claim
from depthscope.study.landscape import Maps
from depthscope.study.metrics import loss_or_accuracy
from depthscope.study.resources import Resources, ResourceTable, resolved
from depthscope.study.run import Frozen
from depthscope.study.seeds import Seeds, listed
from depthscope.study.tuning import Tuned, Tuning
from depthscope.study.values import Overrides, Text, toml_values

PartName = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9_-]*$")]
Axes = Annotated[dict[str, Annotated[list[Any], Field(min_length=1)]], AfterValidator(toml_values)]


class Case(Frozen):
    """What an arm sets at some values of the axes alone, such as a learning rate at depth 56.

    Attributes:
        where: values of the part's axes, all of which a run must have.
        set: the fields of such a run, laid over those that the arm sets everywhere.
    """

    where: Annotated[Overrides, Field(min_length=1)]
    set: Annotated[Overrides, Field(min_length=1)]


class Arm(Frozen):
    """One variant of the network under test.

    Attributes:
        name: short name, used in claims.
        label: name in figures and tables, by language.
        set: the fields of a run in which this arm differs.
        at: further fields that it sets at some values of the axes alone.
        note: what a reader must know, by language (such as "this changes the initialiser").
    """

    name: Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9_-]*$")]
    label: Text | None = None
    set: Overrides = Field(default_factory=dict)
    at: tuple[Case, ...] = ()
    note: Text | None = None

    def sets(self, axes: Mapping[str, Any]) -> list[tuple[Overrides, str]]:
        """(fields, their path below the arm) that it sets at a place of the axes, later ones over earlier ones."""
        cases = [(case.set, f"at.{index}.set") for index, case in enumerate(self.at) if agrees(axes, case.where)]
        return [(self.set, "set"), *cases]


class Part(Frozen):
    """A set of comparable runs: every arm x every value of the axes x every seed.

    Attributes:
        title: heading, by language.
        base: fields of a run shared by this part, over those of the study.
        arms: the variants.
        axes: lists of values by field.
        seeds: number of seeds (0 to n-1), or the seeds themselves; left out, those of the study.
        exclude: combinations to leave out: a run that agrees with all the values of one entry.
        baseline: the arm that the others are compared with; the first by default.
        ranked: a loss or an accuracy, by which the page ranks the arms at the greatest depth.
        resources: what a run of this part needs of a machine, over what the study says.
    """

    title: Text | None = None
    base: Overrides = Field(default_factory=dict)
    arms: Annotated[tuple[Arm, ...], Field(min_length=1)]
    axes: Axes = Field(default_factory=dict)
    seeds: Seeds | None = None
    exclude: tuple[Overrides, ...] = ()
    baseline: str | None = None
    ranked: Annotated[str, AfterValidator(loss_or_accuracy)] | None = None
    resources: ResourceTable | None = None

    def arm(self, name: str) -> Arm:
        """The arm with this name."""
        return next(arm for arm in self.arms if arm.name == name)


class StudySpec(Frozen):
    """A study at one size: everything that decides its runs, and what will be claimed.

    Attributes:
        name: identity of the study; a results folder holds one name at one size.
        title: heading of the page, by language.
        question: what is asked, by language.
        recipe: how the recipe was chosen, by language; the page prints it.
        size: which of the file's sizes this is; empty where the file has none.
        sources: keys of the bibliography beyond those of the names used.
        base: fields of a run that all parts share.
        seeds: seeds of the parts that name none.
        parts: sets of comparable runs.
        claims: judged from the records.
        landscape: maps of the loss around the trained networks, made when the runs are done.
        resources: what a run needs of a machine.
        tuning: how one number is chosen for each arm, by `depthscope tune`.
        tuned: where the tuned values come from; `depthscope tune` writes it.
    """

    name: Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9-]*$")]
    title: Text
    question: Text | None = None
    recipe: Text | None = None
    size: str = ""
    sources: tuple[str, ...] = ()
    base: Overrides = Field(default_factory=dict)
    seeds: Seeds = 3
    parts: Annotated[dict[PartName, Part], Field(min_length=1)]
    claims: tuple[Claim, ...] = ()
    landscape: Maps | None = None
    resources: ResourceTable | None = None
    tuning: Tuning | None = None
    tuned: Tuned | None = None

    def seeds_of(self, part: Part) -> tuple[int, ...]:
        """The seeds of a part, ascending and each once."""
        return listed(self.seeds if part.seeds is None else part.seeds)

    def resources_of(self, part: Part) -> Resources:
        """What a run of a part needs of a machine."""
        return resolved(self.resources, part.resources)

    def arms(self) -> Iterator[tuple[str, Arm]]:
        """(part name, arm) of every arm."""
        for name, part in self.parts.items():
            for arm in part.arms:
                yield name, arm

    @property
    def digest(self) -> str:
        """Digest of the whole spec, claims and texts included."""
        return digest(_identity(self.model_dump(mode="json")))

    @property
    def claims_digest(self) -> str:
        """Digest of the claims alone. A record keeps it, so that a claim made after its run is noticed."""
        return digest([claim.model_dump(mode="json") for claim in self.claims])


def _identity(study: dict[str, Any]) -> dict[str, Any]:
    """A dumped study without the fields that came after digests had been written, where they say nothing."""
    tuning, tuned = study["tuning"] or {}, study["tuned"] or {}
    for holder, later in (
        *((part, "ranked") for part in study["parts"].values()),
        *((arm, "at") for part in study["parts"].values() for arm in part["arms"]),
        *((choice, "at") for choice in tuned.get("choices", ())),
        (tuning, "by"),
        (study, "landscape"),
    ):
        if not holder.get(later, True):
            del holder[later]
    return study


def with_seeds(study: StudySpec, seeds: Seeds) -> StudySpec:
    """The study with these seeds in all its parts, instead of its own."""
    parts = {name: part.model_copy(update={"seeds": None}) for name, part in study.parts.items()}
    return StudySpec.model_validate(study.model_copy(update={"seeds": seeds, "parts": parts}).model_dump())
