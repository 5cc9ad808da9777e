"""What is the matter with the body as a whole: values not finite, a gradient or a signal that dies or blows up."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator
from statistics import median

from depthscope.analysis.averages import ACTIVATIONS
from depthscope.analysis.model import thresholds, words
from depthscope.analysis.model.expected import Expectation
from depthscope.analysis.model.flow import moments
from depthscope.analysis.model.local import judged_multipliers
from depthscope.analysis.model.rate import rate_of
from depthscope.analysis.model.verdict import Fault, Verdict
from depthscope.analysis.model.view import View
from depthscope.analysis.theory import critical_sw2
from depthscope.core.errors import UserError
from depthscope.core.structure import Op

AGREES = 0.15
"""Relative difference of a measured rate and theory's at which theory explains it."""
SATURATING = frozenset({"sigmoid", "hardsigmoid", "softsign", "tanh", "hardtanh"})


def non_finite(view: View) -> Iterator[Fault]:
    """Values that are not finite, with the first place: forward from the input, else backward from the output."""
    for quantity, boundaries in (
        ("nonfinite", view.structure.boundaries),
        ("grad_nonfinite", tuple(reversed(view.structure.boundaries))),
    ):
        counts = view.at(quantity)
        for boundary in boundaries:
            if counts.get(boundary.name, 0.0) > 0:
                of_input = quantity == "nonfinite" and boundary.index == 0
                cause = "non-finite input" if of_input else "non-finite values"
                numbers = {"values": counts[boundary.name]}
                yield Fault(
                    verdict="not depth" if of_input else "exploding",
                    cause=cause,
                    where=(boundary.name,),
                    sentence=words.non_finite(quantity, boundary.name, numbers, view.conditions.loss_scale),
                    repair=words.repair(cause),
                    numbers=numbers,
                )
                return


def whole_body(view: View, theory: Expectation) -> Iterator[Fault]:
    """A gradient that changes by decades over the body, or a signal that grows by decades without a norm."""
    rate = rate_of(judged_multipliers(view))
    if rate is None:
        return
    growth = _growth(view)
    numbers = {"rate": rate.value, "total, decades": rate.total_log10}
    limit = thresholds.TOTAL_LOG10 if view.additions else thresholds.PLAIN_LOG10
    limits = {"total, decades": limit}
    verdict: Verdict | None = None
    if rate.total_log10 < -limit:
        verdict = "vanishing"
    elif rate.total_log10 > limit:
        verdict = "exploding"
    if math.isfinite(growth) and not view.norm_names:
        if verdict is None and growth > thresholds.GROWTH_LOG10:
            verdict = "exploding"
            limits = {"growth of |h|, decades": thresholds.GROWTH_LOG10}
        if verdict is not None and abs(growth) > thresholds.GROWTH_LOG10:
            numbers["growth of |h|, decades"] = growth
    if verdict is None:
        return
    over = _loss_over_chance(view)
    if over > thresholds.LOSS_OVER_CHANCE:
        numbers["loss over ln K"] = over
        limits["loss over ln K"] = thresholds.LOSS_OVER_CHANCE
    expected = [theory.multipliers[name].value for name in view.multipliers if name in theory.multipliers]
    if expected and 2 * len(expected) > len(view.multipliers):
        numbers["theory"] = math.exp(sum(math.log(max(each, 1e-300)) for each in expected) / len(expected))
    cause, activation, sw2 = _cause(view, verdict)
    if sw2 is not None:
        numbers["sw2"] = sw2
    explained = "theory" in numbers and abs(numbers["theory"] / rate.value - 1.0) < AGREES
    yield Fault(
        verdict=verdict,
        cause=cause,
        sentence=words.whole(verdict, cause, activation, numbers, rate),
        repair=_in_train_mode(view, cause) or words.repair(cause, activation=activation, sw2=_critical(activation)),
        numbers=numbers,
        thresholds=limits,
        inferred=not explained and cause != "not recognised",
    )


def _in_train_mode(view: View, cause: str) -> str:
    """A batch norm in eval mode before it was trained does nothing, and says nothing of training."""
    ops = (op for block in view.body for op in block.ops if op.kind == "norm" and op.name == "batch")
    stale = cause == "not recognised" and any(op.facts.get("training") == 0.0 for op in ops)
    return "measure in train mode: model.train()" if stale else ""


def loss_factor(view: View) -> float:
    """c, where the loss is c times a mean cross entropy, within a factor of 1.5 at the start; nan where not known.

    Of c times the mean over B predictions (examples times positions), |dL/dlogits| sqrt(B) is c sqrt(1 - 1/K) where all
    classes are as likely and at most c sqrt(2): without it no loss could be told from a scaled one.
    """
    classes, output = view.conditions.num_classes, view.structure.boundaries[-1]
    end = view.grad_norms.get(output.name, 0.0)
    if not (classes and classes > 1 and end > 0 and math.isfinite(end)):
        return math.nan
    positions = math.prod(output.shape[:-1]) if output.shape and output.shape[-1] == classes else 1
    return end * math.sqrt(view.conditions.batch * positions)


def _loss_over_chance(view: View) -> float:
    """How many times ln K the loss is, whatever factor it bears; nan where that is not known."""
    loss, factor = view.profile.value("loss", view.step), loss_factor(view)
    if not (math.isfinite(loss) and math.isfinite(factor)):
        return math.nan
    return loss / factor / math.log(view.conditions.num_classes or 1)


def _growth(view: View) -> float:
    """Decades from |h| an entry at x_0 to that at x_L; nan where one was not measured."""
    if not view.body:
        return math.nan
    first, last = view.rms(view.body[0].index), view.rms(view.body[-1].index + 1)
    if not (first > 0 and last > 0 and math.isfinite(first) and math.isfinite(last)):
        return math.nan
    return math.log10(last / first)


def _cause(view: View, verdict: Verdict) -> tuple[str, str, float | None]:
    """The cause, the activation that it speaks of, and the layers' sw2."""
    activation = _activation(view)
    name = activation.name if activation is not None else ""
    spreads = [op.facts["sw2"] for block in view.body for op in block.ops if op.facts.get("sw2") is not None]
    sw2 = median(spreads) if spreads else None
    if view.is_residual:
        without = not view.norm_names and verdict == "exploding"
        return ("unscaled branches" if without else "not recognised"), name, sw2
    if "batch" in view.norm_names and verdict == "exploding":
        return "plain batch norm", name, sw2
    if view.norm_names or sw2 is None or activation is None:
        return "not recognised", name, sw2
    critical = _critical(name)
    if verdict == "vanishing" and name in SATURATING and (critical is None or sw2 >= critical or name == "sigmoid"):
        return "saturating activation", name, sw2
    if critical is None:
        return "not recognised", name, sw2
    if verdict == "vanishing":
        return ("gain too small" if sw2 < critical else "not recognised"), name, sw2
    return ("gain too large" if sw2 > critical else "not recognised"), name, sw2


def _activation(view: View) -> Op | None:
    """The most frequent activation of the body."""
    ops = [op for block in view.body for op in block.ops if op.kind == "activation"]
    counts = Counter(op.name for op in ops)
    return next((op for op in ops if op.name == counts.most_common(1)[0][0]), None) if ops else None


def _critical(name: str) -> float | None:
    """The sw2 that keeps gradients: the critical one, or that of unit second moment where there is none."""
    if name not in ACTIVATIONS:
        return None
    if name == "leaky_relu":
        return 2.0  # to 1% at torch's slope of .01
    try:
        return critical_sw2(name)
    except UserError:
        return 1.0 / moments(Op(kind="activation", name=name), 1.0).second
