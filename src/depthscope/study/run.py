"""RunSpec: all that decides the numbers of one training run, and its identity."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationInfo, field_validator, model_validator

from depthscope.core.errors import shown
from depthscope.core.hashing import digest
from depthscope.study.catalog import CATALOG, Kind, check_name, fill_options, is_user_code
from depthscope.study.depths import depth_faults
from depthscope.study.faults import FieldFaults
from depthscope.study.mlp import mlp_faults
from depthscope.study.sequences import sequence_faults

MATHEMATICS = 1
"""Counted up when a change of code changes the numbers of a run whose spec stayed the same."""

Scalar = bool | int | float | str | list[float]
Options = dict[str, Scalar]

# Strict, so that `depth = "20"` or `depth = true` in a file is a fault and not a 20 or a 1.
Int = Annotated[int, Field(strict=True)]
Float = Annotated[float, Field(strict=True)]
Bool = Annotated[bool, Field(strict=True)]

OPTION_FIELDS: dict[str, Kind] = {
    "model_options": "family",
    "shortcut_options": "shortcut",
    "norm_options": "norm",
    "init_options": "init",
    "clip_options": "clip",
    "data_options": "data",
    "optimizer_options": "optimizer",
    "schedule_options": "schedule",
}


LATER: dict[str, Any] = {
    "shortcut_options": {},
    "norm_options": {},
    "init_options": {},
    "clip": "none",
    "clip_options": {},
}
"""Fields that came when runs had been recorded without them: with these values they are no part of a run's identity."""

UNIDENTIFIED = frozenset({"measures", "measure_steps"})
"""Fields that change no number of the training."""


class Frozen(BaseModel):
    """Base of all specs: immutable, and a key that nobody knows is a fault."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


class RunSpec(Frozen):
    """One run: a network, its data, its recipe, its seed, and what is measured on the way.

    A run is a pure function of its spec. Device, workers and versions are provenance and stand in
    the record. `measures` and `measure_steps` are left out of the run's identity: a measurement changes no number
    of the training, so a run that was measured less is the same run.
    """

    backend: Literal["numpy", "torch"] = Field(description="the hand-derived laboratory, or PyTorch")
    precision: Literal["float32", "float64", "bfloat16"] = Field(
        default="float32", description="dtype of training; bfloat16 means autocast with float32 weights"
    )
    seed: Annotated[Int, Field(ge=0, lt=2**31)] = Field(default=0, description="names every random stream of the run")

    family: str = Field(description="family of networks")
    depth: Annotated[Int, Field(ge=1, le=100_000)] = Field(
        description="the dial: weighted layers, as the family counts"
    )
    width: Annotated[Int, Field(ge=1, le=65_536)] = Field(description="units a layer, or channels of the first stage")
    shortcut: str = Field(default="none", description="what is added to a block's branch")
    shortcut_options: Options = Field(
        default_factory=dict, validate_default=True, description="bias of gates, survival of branches, ..."
    )
    norm: str = Field(default="none", description="normaliser")
    norm_options: Options = Field(default_factory=dict, validate_default=True, description="groups, ...")
    activation: str = Field(description="nonlinearity")
    init: str = Field(description="initialiser of the weights")
    init_options: Options = Field(
        default_factory=dict, validate_default=True, description="tolerance, examples, depth to start from, ..."
    )
    gain: Annotated[Float, Field(gt=0, le=1e6)] = Field(
        default=1.0, description="factor on the initialiser's standard deviation"
    )
    stem_gain: Annotated[Float, Field(gt=0, le=1e6)] | None = Field(
        default=None, description="the stem's own gain, if another"
    )
    zero_last_gamma: Bool = Field(default=False, description="start each branch's last batch-norm scale at 0")
    model_options: Options = Field(
        default_factory=dict, validate_default=True, description="further arguments of the family"
    )

    data: str = Field(description="data set")
    data_options: Options = Field(default_factory=dict, validate_default=True, description="arguments of the data set")
    augment: str = Field(default="none", description="augmentation of training examples")
    padding: Annotated[Int, Field(ge=0, le=64)] = Field(default=0, description="pixels of zero padding before the crop")

    epochs: Annotated[Int, Field(ge=1, le=10_000_000)] | None = Field(
        default=None, description="passes over the data; or give steps"
    )
    steps: Annotated[Int, Field(ge=0, le=10_000_000)] | None = Field(
        default=None, description="updates; 0 measures an untrained net"
    )
    batch_size: Annotated[Int, Field(ge=1)] | None = Field(
        default=None, description="examples a batch; left out, all at once"
    )
    optimizer: str = Field(default="sgd", description="update rule")
    optimizer_options: Options = Field(
        default_factory=dict, validate_default=True, description="momentum, weight decay, betas, ..."
    )
    clip: str = Field(default="none", description="what is done to gradients that are too large")
    clip_options: Options = Field(default_factory=dict, validate_default=True, description="max_norm, factor, ...")
    lr: Annotated[Float, Field(gt=0)] = Field(default=0.1, description="peak learning rate")
    schedule: str = Field(default="constant", description="learning rate over the run")
    schedule_options: Options = Field(
        default_factory=dict, validate_default=True, description="milestones, factor, ..."
    )
    warmup_steps: Annotated[Int, Field(ge=0)] = Field(
        default=0, description="steps of linear rise from lr / warmup_steps"
    )
    stop_loss: Annotated[Float, Field(gt=0)] | None = Field(
        default=None, description="stop early once train accuracy is 1 and train loss is at most this; left out, never"
    )

    measures: tuple[str, ...] = Field(default=(), description="what is measured; no part of the run's identity")
    measure_steps: tuple[Annotated[Int, Field(ge=0)], ...] = Field(
        default=(),
        description="further steps at which layers and curvature are measured, weights kept; no part of its identity",
    )

    @field_validator(*[kind for kind in CATALOG if kind != "measure"])
    @classmethod
    def _known_name(cls, name: str, info: ValidationInfo) -> str:
        kind: Any = info.field_name
        return check_name(kind, name)

    @field_validator("measures")
    @classmethod
    def _known_measures(cls, names: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(sorted({check_name("measure", name) for name in names}))

    @field_validator("measure_steps")
    @classmethod
    def _ascending(cls, steps: tuple[int, ...]) -> tuple[int, ...]:
        return tuple(sorted(set(steps)))

    @field_validator(*OPTION_FIELDS, mode="before")
    @classmethod
    def _options_filled(cls, given: object, info: ValidationInfo) -> object:
        # Defaults are written out, so that leaving an option away and giving its default are one run.
        kind = OPTION_FIELDS[str(info.field_name)]
        name = info.data.get(kind)  # absent where the name itself is at fault
        return fill_options(kind, name, given) if name is not None and isinstance(given, dict) else given

    @model_validator(mode="after")
    def _coherent(self) -> RunSpec:
        faults = list(incoherences(self.__dict__))
        if faults:
            raise FieldFaults(faults)
        return self

    @property
    def run_id(self) -> str:
        """16 hex digits that name all that changes the mathematics of this run."""
        fields = self.model_dump(mode="json", exclude=set(UNIDENTIFIED))
        for field, kind in OPTION_FIELDS.items():
            if entry := CATALOG[kind].get(fields[kind]):
                same = [name for name in entry.later if fields[field][name] == entry.options[name]]
                fields[field] = {name: value for name, value in fields[field].items() if name not in same}
        fields = {name: value for name, value in fields.items() if name not in LATER or value != LATER[name]}
        return digest({"mathematics": MATHEMATICS, **fields})

    def measured_as(self, *others: RunSpec) -> RunSpec:
        """This run with the measures of all of these as well, at the steps of all of them."""
        specs = (self, *others)
        merged = {
            field: tuple(sorted({each for spec in specs for each in getattr(spec, field)})) for field in UNIDENTIFIED
        }
        return self.model_copy(update=merged)


MEASURED_ON_THE_WAY = ("layers", "sharpness", "smoothness", "weights")
"""Measures that look at a run at `measure_steps`."""


def incoherences(values: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """(field to mend, what is wrong) of fields that are each valid and do not go together.

    Args:
        values: the valid fields of a run; a rule over one that is absent is passed over, so that all
            that can be said of a faulty run is said at once.
    """

    def known(*fields: str) -> bool:
        return all(field in values for field in fields)

    if known("epochs", "steps") and (values["epochs"] is None) == (values["steps"] is None):
        both = values["steps"] is not None
        yield "epochs", "give epochs or steps, not both." if both else "missing; give epochs or steps."
    if known("steps", "warmup_steps") and values["steps"] and values["warmup_steps"] > values["steps"]:
        yield "warmup_steps", f"wanted {values['steps']} or less, the run's steps; got {values['warmup_steps']}."
    if known("family", "backend"):
        yield from _backend_faults(values)
    entry = CATALOG["family"].get(str(values.get("family")))
    for kind in ("family", "init"):
        yield from _refusals(kind, str(values.get(kind)), values)
    for measure in values.get("measures", ()):
        yield from _refusals("measure", measure, values)
    yield from depth_faults(values)
    measured = any(name in MEASURED_ON_THE_WAY or is_user_code(name) for name in values.get("measures", ()))
    if known("measures", "measure_steps") and values["measure_steps"] and not measured:
        least = f"{', '.join(map(repr, MEASURED_ON_THE_WAY))} or a probe of your own"
        yield "measure_steps", f"nothing is measured there without {least} among the measures."
    if entry and known("shortcut", "zero_last_gamma") and values["zero_last_gamma"] and values["shortcut"] == "none":
        yield "zero_last_gamma", "needs a shortcut; a plain network would output zeros."
    if known("shortcut", "init") and values["init"] == "zero_branch" and values["shortcut"] in ("none", "dense"):
        yield "init", "'zero_branch' needs a shortcut that adds; without one there is no branch to start at 0."
    if (shortcut := values.get("shortcut")) in ("rezero", "skipinit"):
        for field, zeroes in (
            ("zero_last_gamma", values.get("zero_last_gamma")),
            ("init", values.get("init") in ("fixup", "zero_branch", "zero_projection")),
        ):
            if zeroes:
                yield field, f"{shortcut!r} starts at 0 too; a branch with both has no gradient, and stays 0."
    if values.get("family") == "mlp":
        yield from mlp_faults(values)
    yield from sequence_faults(values)


def _refusals(kind: Kind, name: str, values: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Of the other fields, the values that the family, the initialiser or a measure does not take."""
    entry = CATALOG[kind].get(name)
    if entry is None:
        return
    for field, allowed in entry.accepts.items():
        if field in values and values[field] not in allowed:
            if is_user_code(str(values[field])) and field not in entry.closed:
                continue
            names = " or ".join(shown(each) for each in allowed)
            off = allowed in ((None,), (False,), (1.0,))
            wanted = "has no such setting; leave it away." if off else f"takes {names}, not {values[field]!r}."
            yield field, f"{name!r} {wanted}"


RUN_KINDS: tuple[Kind, ...] = (
    *("shortcut", "norm", "activation", "init", "data", "augment", "optimizer", "clip", "schedule"),
)
"""Kinds of names that one run has one of, beside its family."""


def _backend_faults(values: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    backend, family = values["backend"], values["family"]
    runs_on = CATALOG["family"][family].targets if family in CATALOG["family"] else ("torch",)
    if backend not in runs_on:
        yield "backend", f"{family!r} runs on {' and '.join(runs_on)}, not on {backend}."
        return  # what follows would only repeat it
    for kind in RUN_KINDS:
        entry = CATALOG[kind].get(str(values.get(kind)))
        if entry and backend not in entry.targets:
            yield kind, f"{values[kind]!r} is not there for {backend}."
        elif entry and backend == "numpy" and entry.by_hand is not None and family not in entry.by_hand:
            has = ", ".join(entry.by_hand)
            yield kind, f"{values[kind]!r} is not there for {backend} in {family!r}, only in {has}."
    for name in values.get("measures", ()):
        if name in CATALOG["measure"] and backend not in CATALOG["measure"][name].targets:
            yield "measures", f"{name!r} is not there for {backend}."
    if backend == "torch":
        if values.get("stop_loss") is not None:
            yield "stop_loss", "only the NumPy laboratory stops early; leave it away."
        if family not in CATALOG["family"] and values.get("stem_gain") is not None:
            yield "stem_gain", "only the NumPy laboratory has a gain of the stem's own; leave it away."
        return
    if is_user_code(str(values.get("init"))):
        yield "init", "the NumPy laboratory draws gaussian or orthogonal weights, and takes no initialiser of your own."
    for kind in ("shortcut", "norm", "activation", "clip"):
        if is_user_code(str(values.get(kind))):
            yield kind, f"the NumPy laboratory's {kind} is hand-derived, and none of your own; choose backend torch."
    if values.get("precision") == "bfloat16":
        yield "precision", "the NumPy laboratory has float32 and float64, no bfloat16."
    if values.get("batch_size") is not None and values.get("stop_loss") is not None:
        yield "stop_loss", "judges the full batch; leave it away, or batch_size."
    if values.get("optimizer_options", {}).get("weight_decay"):
        yield "optimizer_options.weight_decay", "the NumPy laboratory has no weight decay; leave it away."
