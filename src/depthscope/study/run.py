"""RunSpec: all that decides the numbers of one training run, and its identity."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationInfo, field_validator, model_validator

from depthscope.core.depth import cifar_blocks_per_stage
from depthscope.core.hashing import digest
from depthscope.study.catalog import CATALOG, Kind, check_name, fill_options

MATHEMATICS = 1
"""Counted up when a change of code changes the numbers of a run whose spec stayed the same."""

Scalar = bool | int | float | str | list[float]
Options = dict[str, Scalar]


class Frozen(BaseModel):
    """Base of all specs: immutable, and a key that nobody knows is a fault."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


class RunSpec(Frozen):
    """One run: a network, its data, its recipe, its seed, and what is measured on the way.

    A run is a pure function of its spec. Device, workers and versions are provenance and stand in
    the record. `measures` are left out of the run's identity: a measurement changes no number of
    the training, so a run that was measured less is the same run.
    """

    backend: Literal["numpy", "torch"] = Field(description="the hand-derived laboratory, or PyTorch")
    precision: Literal["float32", "float64", "bfloat16"] = Field(
        default="float32", description="dtype of training; bfloat16 means autocast with float32 weights"
    )
    seed: Annotated[int, Field(ge=0, lt=2**31)] = Field(default=0, description="names every random stream of the run")

    family: str = Field(description="family of networks")
    depth: Annotated[int, Field(ge=1, le=100_000)] = Field(
        description="the dial: weighted layers, as the family counts"
    )
    width: Annotated[int, Field(ge=1, le=65_536)] = Field(description="units a layer, or channels of the first stage")
    shortcut: str = Field(default="none", description="what is added to a block's branch")
    norm: str = Field(default="none", description="normaliser")
    activation: str = Field(description="nonlinearity")
    init: str = Field(description="initialiser of the weights")
    gain: Annotated[float, Field(gt=0)] = Field(
        default=1.0, description="factor on the initialiser's standard deviation"
    )
    stem_gain: Annotated[float, Field(gt=0)] | None = Field(default=None, description="the stem's own gain, if another")
    zero_last_gamma: bool = Field(default=False, description="start each branch's last batch-norm scale at 0")
    model_options: Options = Field(default_factory=dict, description="further arguments of the family")

    data: str = Field(description="data set")
    data_options: Options = Field(default_factory=dict, description="arguments of the data set")
    augment: str = Field(default="none", description="augmentation of training examples")
    padding: Annotated[int, Field(ge=0, le=64)] = Field(default=0, description="pixels of zero padding before the crop")

    epochs: Annotated[int, Field(ge=1)] | None = Field(default=None, description="passes over the data; or give steps")
    steps: Annotated[int, Field(ge=0)] | None = Field(default=None, description="updates; 0 measures an untrained net")
    batch_size: Annotated[int, Field(ge=1)] | None = Field(default=None, description="None means all examples at once")
    optimizer: str = Field(default="sgd", description="update rule")
    optimizer_options: Options = Field(default_factory=dict, description="momentum, weight decay, betas, ...")
    lr: Annotated[float, Field(gt=0)] = Field(default=0.1, description="peak learning rate")
    schedule: str = Field(default="constant", description="learning rate over the run")
    schedule_options: Options = Field(default_factory=dict, description="milestones, factor, ...")
    warmup_steps: Annotated[int, Field(ge=0)] = Field(
        default=0, description="steps of linear rise from lr / warmup_steps"
    )
    stop_loss: Annotated[float, Field(gt=0)] | None = Field(
        default=None, description="stop early once train accuracy is 1 and train loss is at most this (None: never)"
    )

    measures: tuple[str, ...] = Field(default=(), description="what is measured; no part of the run's identity")

    @field_validator(*[kind for kind in CATALOG if kind != "measure"])
    @classmethod
    def _known_name(cls, name: str, info: ValidationInfo) -> str:
        kind: Any = info.field_name
        return check_name(kind, name)

    @field_validator("measures")
    @classmethod
    def _known_measures(cls, names: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(sorted({check_name("measure", name) for name in names}))

    @model_validator(mode="before")
    @classmethod
    def _options_filled(cls, values: object) -> object:
        # Defaults are written out, so that leaving an option away and giving its default are one run.
        if not isinstance(values, dict):
            return values
        filled = dict(values)
        for kind, field in _OPTION_FIELDS.items():
            name, given = filled.get(kind, cls.model_fields[kind].default), filled.get(field, {})
            if isinstance(name, str) and isinstance(given, dict) and name in CATALOG[kind]:
                filled[field] = fill_options(kind, name, given)
        return filled

    @model_validator(mode="after")
    def _coherent(self) -> RunSpec:
        if (self.epochs is None) == (self.steps is None):
            raise ValueError("epochs: give either epochs or steps, and not both.")
        entry = CATALOG["family"].get(self.family)
        if entry is None:
            return self
        if self.backend not in entry.targets:
            raise ValueError(f"backend: {self.family!r} runs on {' and '.join(entry.targets)}, not on {self.backend}.")
        for field, allowed in entry.accepts.items():
            value = getattr(self, field)
            if value not in allowed:
                names = ", ".join(repr(each) for each in allowed)
                raise ValueError(f"{field}: {self.family!r} takes {names}, not {value!r}.")
        if self.family == "cifar_resnet":
            try:
                cifar_blocks_per_stage(self.depth)
            except ValueError as error:
                raise ValueError(f"depth: {error}") from error
        if self.shortcut == "identity_2" and self.depth % 2:
            raise ValueError(f"depth: two-layer blocks need an even depth; nearest {self.depth - 1}, {self.depth + 1}.")
        if self.zero_last_gamma and self.shortcut == "none":
            raise ValueError("zero_last_gamma: needs a shortcut; a plain network would output zeros.")
        if self.backend == "numpy" and self.precision == "bfloat16":
            raise ValueError("precision: the NumPy laboratory has float32 and float64, no bfloat16.")
        if self.backend == "numpy" and (self.batch_size is not None or self.optimizer_options.get("weight_decay")):
            raise ValueError("backend: the laboratory trains on the full batch without weight decay; leave both away.")
        return self

    @property
    def run_id(self) -> str:
        """16 hex digits that name all that changes the mathematics of this run."""
        return digest({"mathematics": MATHEMATICS, **self.model_dump(mode="json", exclude={"measures"})})


_OPTION_FIELDS: dict[Kind, str] = {
    "family": "model_options",
    "data": "data_options",
    "optimizer": "optimizer_options",
    "schedule": "schedule_options",
}
