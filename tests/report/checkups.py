"""Made-up profiles of models for the page's tests: a plain net, a Transformer, one with two blocks, one with many."""

from __future__ import annotations

import math

from depthscope.core.readings import Conditions, ModelProfile, Objective, Place, Reading
from depthscope.core.structure import Block, Boundary, Op, Parameter, ResidualAddition, Role, Structure

LINEAR = Op(kind="linear", name="addmm", facts={"fan_in": 128, "fan_out": 128, "sw2": 1 / 3})
RELU = Op(kind="activation", name="relu")
NORM = Op(kind="norm", name="layer", facts={"value": 1.0})


def reading(place: Place, name: str, quantity: str, value: float) -> Reading:
    return Reading(step=0, place=place, name=name, quantity=quantity, value=value)


def plain(
    depth: int = 30,
    *,
    multiplier: float = 0.41,
    residual: bool = False,
    stem: bool = True,
    prefix: str = "layers.",
    objective: Objective = "loss",
    noise: bool = False,
    broken: bool = False,
) -> ModelProfile:
    """`depth` blocks between input and output; with `residual`, each holds an addition."""
    names = [f"{prefix}{index}" for index in range(depth)]
    roles: list[Role] = ["body"] * depth
    if stem and depth > 2:
        roles[0], roles[-1] = "stem", "head"
    branch = (NORM, LINEAR, RELU, LINEAR)
    additions = tuple(
        ResidualAddition(index=index, name=f"{name}:add", block=index, branch=branch)
        for index, name in enumerate(names)
        if residual
    )
    blocks = tuple(
        Block(
            index=index,
            name=name,
            role=roles[index],
            ops=branch if residual else (LINEAR, RELU),
            additions=(index,) if residual else (),
            weights=(f"{name}.weight", f"{name}.bias"),
        )
        for index, name in enumerate(names)
    )
    ends = ["input", *names]
    boundaries = tuple(Boundary(index=index, name=name, shape=(128,)) for index, name in enumerate(ends))
    parameters = tuple(
        Parameter(name=f"{name}.{kind}", shape=shape)
        for name in names
        for kind, shape in (("weight", (128, 128)), ("bias", (128,)))
    )
    rows: list[Reading] = [
        reading("model", "", "loss", 2.31),
        reading("model", "", "grad_multiplier", multiplier**depth),
    ]
    for index, end in enumerate(ends):
        grad = 0.02 * multiplier ** (depth - index) * (1 + 0.1 * math.sin(7 * index))
        norm = 40 * (1.02**index if residual else 0.75**index)
        rows += [
            reading("boundary", end, "norm", math.inf if broken and index == depth - 1 else norm),
            reading("boundary", end, "grad_norm", 0.0 if broken and index < 2 else grad),
            reading("boundary", end, "nonfinite", 12.0 if broken and index == depth - 1 else 0.0),
        ]
    for index, name in enumerate(names):
        rows.append(reading("block", name, "grad_multiplier", multiplier * (1 + 0.1 * math.sin(7 * index))))
        if residual:
            rows += [
                reading("addition", f"{name}:add", "residual_ratio", 0.3 + 0.01 * (index % 7)),
                reading("addition", f"{name}:add", "cosine", 0.02),
            ]
    return ModelProfile(
        structure=Structure(boundaries=boundaries, blocks=blocks, additions=additions, parameters=parameters),
        readings=tuple(rows),
        conditions={0: Conditions(objective=objective, data="noise" if noise else "given", batch=64, num_classes=10)},
        statuses={each.name: "frozen" if each.name.endswith("3.bias") else "ok" for each in parameters},
    )
