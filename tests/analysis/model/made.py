"""Made-up profiles: a stem, blocks with given numbers, a head. Signals have mean square `second` at every boundary."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from depthscope.core.readings import Conditions, ModelProfile, Place, Reading
from depthscope.core.structure import Block, Boundary, Op, Parameter, ResidualAddition, Role, Status, Structure

WIDTH, BATCH = 100, 50


def linear(name: str = "w", sw2: float = 2.0, **facts: float) -> Op:
    return Op(
        kind="linear",
        name="addmm",
        module=name.rpartition(".")[0],
        weights=(name,),
        facts={"fan_in": 1e6, "fan_out": 1e6, "sw2": sw2, "sb2": 0.0, "orthogonality": 0.5} | facts,
    )


def act(name: str = "relu", **facts: float) -> Op:
    return Op(kind="activation", name=name, facts=facts)


def norm(name: str = "layer", module: str = "", **facts: float) -> Op:
    return Op(kind="norm", name=name, module=module, facts={"value": 1.0, "training": 1.0} | facts)


def scale(value: float) -> Op:
    return Op(kind="scale", name="mul", facts={"value": value})


ADD = Op(kind="residual", name="add")


@dataclass(frozen=True, kw_only=True)
class Made:
    """One block of the body. `branch` None: no addition."""

    ops: tuple[Op, ...] = ()
    branch: tuple[Op, ...] | None = None
    before: tuple[Op, ...] = ()
    after: tuple[Op, ...] = ()
    multiplier: float = 1.0
    ratio: float = 0.5
    status: Status = "ok"
    weight_grad: float = 1.0
    zeros: float = 0.5
    rms: float = 1.0
    rank: float | None = None
    used: bool = True


@dataclass(frozen=True, kw_only=True)
class Around:
    """What is not in the blocks."""

    second: float = 1.0
    common: float | None = 0.0
    mean: float = 0.0
    loss: float = math.log(10)
    loss_factor: float = 1.0
    stem: tuple[Op, ...] = (linear("stem.weight"),)
    stem_rms: float = 1.0
    head_weight: float = 1.0
    head_multiplier: float = 1.0
    head_status: Status = "ok"
    stem_status: Status = "ok"
    conditions: Mapping[str, object] = field(default_factory=dict)
    step: int = 0
    grads: bool = True


def plain(count: int = 8, **changes: object) -> list[Made]:
    """Plain He-ReLU layers `blocks.k`."""
    return [
        replace(Made(ops=(linear(f"blocks.{at}.fc.weight"), act())), **changes)  # type: ignore[arg-type]
        for at in range(count)
    ]


def pre_ln(count: int = 8, **changes: object) -> list[Made]:
    """Pre-LN blocks with the ratios and multipliers of theory: 1/sqrt(l+1), sqrt((l+2)/(l+1)), |x| sqrt(l+1)."""
    found = []
    for at in range(count):
        name = f"blocks.{at}"
        branch = (norm(module=f"{name}.ln"), linear(f"{name}.a.weight", 1.0), act(), linear(f"{name}.b.weight"))
        made = Made(
            branch=branch, ratio=(at + 1) ** -0.5, multiplier=math.sqrt((at + 2) / (at + 1)), rms=math.sqrt(at + 2)
        )
        found.append(replace(made, **changes))  # type: ignore[arg-type]
    return found


USUAL = Around()


def profile(blocks: Sequence[Made], around: Around = USUAL) -> ModelProfile:
    """The profile of `stem, blocks, head`, with classes and cross entropy."""
    names = ["input", "stem", *(f"blocks.{at}" for at in range(len(blocks))), "output"]
    boundaries = tuple(Boundary(index=at, name=name, shape=(WIDTH,)) for at, name in enumerate(names))
    additions: list[ResidualAddition] = []
    made: list[Block] = [block(0, "stem", "stem", around.stem, ())]
    statuses: dict[str, Status] = {"stem.weight": around.stem_status, "head.weight": around.head_status}
    parameters = [parameter("stem.weight", around.stem_status), parameter("head.weight", around.head_status)]
    for at, each in enumerate(blocks):
        ops, inside = each.ops, ()
        if each.branch is not None:
            ops = (*each.before, *each.branch, ADD, *each.after)
            inside = (len(additions),)  # type: ignore[assignment]
            additions.append(
                ResidualAddition(index=len(additions), name=f"blocks.{at}:add", block=at + 1, branch=each.branch)
            )
        made.append(block(at + 1, f"blocks.{at}", "body", ops, inside))
        for weight in made[-1].weights:
            statuses[weight] = each.status
            parameters.append(replace(parameter(weight, each.status), used=each.used))
    made.append(block(len(blocks) + 1, "output", "head", (linear("head.weight"),), ()))
    rows = list(_rows(blocks, around, names, made))
    given: dict[str, object] = {"objective": "loss", "batch": BATCH, "num_classes": 10} | dict(around.conditions)
    return ModelProfile(
        structure=Structure(
            boundaries=boundaries, blocks=tuple(made), additions=tuple(additions), parameters=tuple(parameters)
        ),
        readings=tuple(Reading(step=around.step, place=p, name=n, quantity=q, value=v) for p, n, q, v in rows),
        conditions={around.step: Conditions(**given)},  # type: ignore[arg-type]
        statuses=statuses,
    )


def block(index: int, name: str, role: Role, ops: tuple[Op, ...], additions: tuple[int, ...]) -> Block:
    weights = tuple(weight for op in ops for weight in op.weights)
    return Block(index=index, name=name, role=role, ops=ops, additions=additions, weights=weights)


def parameter(name: str, status: Status) -> Parameter:
    return Parameter(name=name, shape=(WIDTH, WIDTH), trainable=status != "frozen")


Row = tuple[Place, str, str, float]


def _rows(blocks: Sequence[Made], around: Around, names: list[str], made: list[Block]) -> list[Row]:
    size = math.sqrt(BATCH * WIDTH * around.second)
    rows: list[Row] = [("model", "", "loss", around.loss * around.loss_factor)]
    grad = math.sqrt(0.9 / BATCH) * around.loss_factor  # of K = 10 equally likely classes
    multipliers = [1.0, *(each.multiplier for each in blocks), around.head_multiplier]
    grads = [grad]
    for multiplier in reversed(multipliers):
        grads.insert(0, grads[0] * multiplier)
    rms = [1.0, around.stem_rms, *(each.rms for each in blocks), 1.0]
    zeros = [0.0, 0.5, *(each.zeros for each in blocks), 0.0]
    for at, name in enumerate(names):
        rows += [("boundary", name, "norm", size * rms[at]), ("boundary", name, "zeros", zeros[at])]
        rows += [("boundary", name, "mean", around.mean), ("boundary", name, "nonfinite", 0.0)]
        if around.common is not None:
            rows.append(("boundary", name, "common", around.common))
        if around.grads:
            rows.append(("boundary", name, "grad_norm", grads[at]))
    if around.grads:
        rows += [("block", b.name, "grad_multiplier", m) for b, m in zip(made, multipliers, strict=True) if m > 0]
    for at, each in enumerate(blocks):
        if each.branch is not None:
            rows.append(("addition", f"blocks.{at}:add", "residual_ratio", each.ratio))
        if each.rank is not None:
            rows.append(("boundary", f"blocks.{at}", "rank", each.rank))
        for weight in made[at + 1].weights:
            if each.status == "ok":
                rows.append(("parameter", weight, "weight_grad_norm", each.weight_grad * around.loss_factor))
    rows.append(("parameter", "head.weight", "weight_norm", around.head_weight))
    return rows
