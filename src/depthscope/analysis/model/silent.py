"""Blocks that contribute or learn nothing: dead, cut off from the gradient, frozen among trained ones, uncalled."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator

from depthscope.analysis.model import thresholds, words
from depthscope.analysis.model.verdict import Fault, Verdict
from depthscope.analysis.model.view import View, common_module
from depthscope.core.structure import Block, Op

_EQUAL = 1e-9
"""Variance of a layer's weights over their mean square under which they are all equal, within rounding."""
_NUMBERED = re.compile(r"^(.*?\.)(\d+)(\..*)?$")


def silent_blocks(view: View) -> Iterator[Fault]:
    """All of them, the gravest first."""
    yield from _cut(view)
    yield from _dead_trunk(view)
    yield from _dead_branch(view)
    yield from _frozen(view)
    yield from _uncalled(view)


def identical_units(view: View) -> Iterator[Fault]:
    """Layers whose weights are all equal: every matrix of the model 0, or half of the body's at one value other than 0.

    A last layer of zeros (Fixup, a classifier) is none: what comes before it is drawn at random.
    """
    frozen = {name for name, status in view.statuses.items() if status == "frozen"}
    found: list[tuple[Block, float]] = []
    num_layers, in_body = 0, 0
    for block in view.structure.blocks:
        for op in block.ops:
            matrix = next((name for name in op.weights if view.ndim.get(name, 0) >= 2 and name not in frozen), "")
            if op.kind not in ("linear", "conv") or "sw2" not in op.facts or matrix not in view.weights:
                continue
            num_layers += 1
            in_body += block.role == "body"
            square = view.weights[matrix] ** 2 / max(view.size[matrix], 1)  # mean^2 + variance
            fan_in = op.facts.get("fan_in", 1.0)
            if view.size[matrix] > fan_in > 1.0 and op.facts["sw2"] <= _EQUAL * fan_in * square:
                found.append((block, math.sqrt(square)))
    body = [value for block, value in found if value > 0.0 and block.role == "body"]
    all_zero = len(found) == num_layers > 1 and not any(value for _, value in found)
    if not (all_zero or (len(body) >= 2 and 2 * len(body) >= in_body)):
        return
    blocks = [block for block, value in found if all_zero or value > 0.0]
    first = next(value for block, value in found if block is blocks[0])
    numbers = {"layers of equal weights": float(len(blocks)), "value": first}
    yield Fault(
        verdict="not depth",
        cause="identical units",
        where=tuple(dict.fromkeys([place_of(view, blocks[0]), *(block.name for block in blocks)])),
        sentence=words.identical(place_of(view, blocks[0]), numbers),
        repair=words.repair("identical units"),
        numbers=numbers,
    )


def place_of(view: View, block: Block) -> str:
    """The module that holds a block's weights; the block's own name where that says less."""
    ops: list[Op] = [op for op in block.ops if op.weights]
    return (common_module(ops) if ops else "") or block.name


def _where(view: View, blocks: list[Block]) -> tuple[str, ...]:
    return tuple(dict.fromkeys([place_of(view, blocks[-1]), *(block.name for block in blocks)]))


def _fault(verdict: Verdict, cause: str, view: View, blocks: list[Block], numbers: dict[str, float]) -> Fault:
    where = _where(view, blocks)
    return Fault(
        verdict=verdict,
        cause=cause,
        where=where,
        sentence=words.silent(cause, where[0], numbers),
        repair=words.repair(cause),
        numbers=numbers,
        thresholds={"zeros": thresholds.SILENT} if "zeros" in numbers else {},
    )


def _cut(view: View) -> Iterator[Fault]:
    """Trainable weights that no gradient reached, although one reached others.

    All weights before a block without gradient: the trunk is cut there. One block alone: its branch is.
    """
    weighted = [block for block in view.structure.blocks if _weights(view, block)]
    lost = [block for block in weighted if _all(view, block, "no grad")]
    reached = [block for block in weighted if any(view.statuses.get(name) == "ok" for name in _weights(view, block))]
    if not lost or not reached:
        return
    early = [block for block in weighted if block.index < min(each.index for each in reached)]
    trunk = [block for block in early if _all(view, block, "no grad")]
    if trunk and len(trunk) == len(early) and trunk[-1].index < reached[0].index:
        yield _fault("vanishing", "gradient cut", view, [trunk[-1]], {"blocks without a gradient": float(len(trunk))})
        return
    for block in lost:
        yield _fault("unused layers", "gradient cut", view, [block], {"blocks without a gradient": float(len(lost))})


def _weights(view: View, block: Block) -> list[str]:
    return view.matrices(block)


def _all(view: View, block: Block, status: str) -> bool:
    names = _weights(view, block)
    return bool(names) and all(view.statuses.get(name) == status for name in names)


def _dead_trunk(view: View) -> Iterator[Fault]:
    """The first block whose output is 0 on every example while its input is not."""
    zeros = view.at("zeros")
    for block in view.body:
        before, after = zeros.get(view.entry(block)), zeros.get(view.exit(block))
        if before is None or after is None or before > thresholds.ALIVE or after < thresholds.SILENT:
            continue
        yield _fault("vanishing", "dead layer", view, [block], {"zeros": after, "zeros before": before})
        return


def _dead_branch(view: View) -> Iterator[Fault]:
    """A branch none of whose weights gets a gradient that is not exactly 0, where those of its like do.

    A branch that a factor of exactly 0 switches off (ReZero, SkipInit, zero gamma) is none where that factor learns,
    or is no parameter (a schedule's). A last layer of zeros (Fixup) gets a gradient itself.
    """
    judged = [
        block for block in view.body if block.additions and any(name in view.weight_grads for name in _own(view, block))
    ]
    dead = [block for block in judged if not any(view.weight_grads.get(name, 0.0) for name in _own(view, block))]
    dead = [
        block for block in dead if not _switched_off(view, block) and view.grad_norms.get(view.exit(block), 0.0) > 0
    ]
    if not dead or 2 * len(dead) > len(judged):
        return
    for block in dead:
        ratio = max((view.ratios.get(view.structure.additions[at].name, 0.0) for at in block.additions), default=0.0)
        yield _fault("unused layers", "dead layer", view, [block], {"ratio": ratio, "weight gradient": 0.0})


def _own(view: View, block: Block) -> list[str]:
    return [name for name in _weights(view, block) if view.statuses.get(name, "ok") == "ok"]


def _switched_off(view: View, block: Block) -> bool:
    ops = [op for at in block.additions for op in view.structure.additions[at].branch]
    factors = [op.weights for op in ops if op.kind in ("scale", "norm") and op.facts.get("value") == 0.0]
    return any(not names or any(view.weight_grads.get(name, 0.0) for name in names) for names in factors)


def _frozen(view: View) -> Iterator[Fault]:
    """Frozen blocks with trained ones on both sides, where most train.

    Transfer learning freezes from the input on, adapters train inside every block: neither is one.
    """
    weighted = [block for block in view.structure.blocks if _weights(view, block)]
    frozen = [_all(view, block, "frozen") for block in weighted]
    trained = [
        any(view.statuses.get(name) in ("ok", "no grad") for name in _weights(view, block)) for block in weighted
    ]
    if 2 * sum(frozen) >= len(weighted):
        return
    odd = [
        block
        for at, block in enumerate(weighted)
        if frozen[at] and any(trained[:at]) and any(trained[at + 1 :]) and block.role == "body"
    ]
    for run in _runs(view, odd):
        yield _fault("unused layers", "frozen block", view, run, {"frozen blocks": float(sum(frozen))})


def _runs(view: View, blocks: list[Block]) -> Iterator[list[Block]]:
    """Neighbouring blocks together, where one module holds them."""
    run: list[Block] = []
    for block in blocks:
        if run and (
            block.index != run[-1].index + 1 or _number(place_of(view, block)) != _number(place_of(view, run[-1]))
        ):
            yield run
            run = []
        run.append(block)
    if run:
        yield run


def _number(name: str) -> str:
    """The name up to its first number: `h.3.mlp` -> `h.3`."""
    found = _NUMBERED.match(name)
    return f"{found[1]}{found[2]}" if found else name


def _uncalled(view: View) -> Iterator[Fault]:
    """A numbered module none of whose parameters is used, where most of its numbered siblings' are."""
    used: dict[str, bool] = {}
    for parameter in view.structure.parameters:
        found = _NUMBERED.match(parameter.name)
        if found:
            name = f"{found[1]}{found[2]}"
            used[name] = used.get(name, False) or parameter.used
    for name, is_used in used.items():
        prefix = name[: name.rindex(".") + 1]
        like = [each for other, each in used.items() if other != name and other[: other.rindex(".") + 1] == prefix]
        if not is_used and len(like) >= 2 and 2 * sum(like) > len(like):
            yield Fault(
                verdict="unused layers",
                cause="uncalled block",
                where=(name,),
                sentence=words.silent("uncalled block", name, {"siblings in use": float(sum(like))}),
                repair=words.repair("uncalled block"),
                numbers={"siblings in use": float(sum(like))},
            )
