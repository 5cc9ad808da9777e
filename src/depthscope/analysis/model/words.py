"""Sentences and repairs. Every number in them comes from the rule that found the fault."""

from __future__ import annotations

import math
from collections.abc import Mapping

from depthscope.analysis.model.rate import Rate

Numbers = Mapping[str, float]

INITIALISERS = (
    (1 / 3, "torch's default initialiser"),
    (1.0, "LeCun's or Xavier's initialiser"),
    (2.0, "He's initialiser"),
)
"""fan_in times the variance of the weights, of square layers."""

_REPAIRS = {
    "plain batch norm": "add skip connections, or drop the norm and draw weights at the critical gain",
    "unscaled branches": "scale branches by 1/sqrt(L), start them at 0 (SkipInit, ReZero, Fixup), or norm them first",
    "branch scale": "bring the branch to the size of the others",
    "missing skip": "add the block's input to its output as in the other blocks",
    "missing norm": "add the normaliser that the other blocks have",
    "norm on the trunk": "normalise the branch's input alone and leave the trunk as it is",
    "dead layer": "draw the layer's weights and biases anew, and look for what set them",
    "frozen block": "set requires_grad on its parameters, unless it is meant to stay",
    "uncalled block": "call the block in forward, or remove it",
    "gradient cut": "remove no_grad or detach around the block",
    "saturating activation": "use ReLU or GELU, or tanh at sw2 = 1",
    "non-finite values": "find the operation at that place that overflows, divides by 0 or takes a logarithm of 0",
    "non-finite input": "clean the batch",
    "learning rate": "lower the learning rate, or warm it up",
    "no generalisation": "check that labels belong to their inputs; else more data, augmentation or weight decay",
    "stalled": "raise the learning rate, and check that the optimiser holds the parameters",
    "collapsed representation": "add skip connections, or orthogonal weights",
    "zero classifier": "probe with loss_fn=None, whose random cotangent passes the last layer by",
    "one block": "look at this block first",
}


def repair(cause: str, *, activation: str = "", sw2: float | None = None) -> str:
    """What to try; empty where nothing is known to help."""
    if cause in ("gain too small", "gain too large"):
        if activation and sw2 is not None:
            return f"draw weights with variance {sw2:.3g}/fan_in, which {activation} asks for, or add skips or norms"
        return "draw its weights as the other layers' are"
    return _REPAIRS.get(cause, "")


def figure(value: float) -> str:
    """Three digits, as a person reads them: `.41`, `12.3`, `3e-07`."""
    if value == 0 or not math.isfinite(value):
        return "0" if value == 0 else str(value)
    size = abs(value)
    if size >= 1e5 or size < 1e-3:
        return f"{value:.1e}"
    text = f"{value:.3g}"
    if "e" in text:
        text = f"{value:.0f}"
    return text.replace("0.", ".", 1) if text.lstrip("-").startswith("0.") else text


def initialiser(sw2: float) -> str:
    """The name of an initialiser by its sw2, within 12%; else the number."""
    for value, name in INITIALISERS:
        if abs(sw2 / value - 1.0) < 0.12:
            return name
    return f"weights of variance {figure(sw2)}/fan_in"


def decades(total: float) -> str:
    """`10^-5.2`."""
    return f"10^{total:.1f}"


def odd(cause: str, place: str, numbers: Numbers) -> str:
    """Of a block that is built unlike its like."""
    what = {
        "missing skip": "lacks the residual addition that the other blocks have",
        "missing norm": "lacks a normaliser that the other blocks have",
        "norm on the trunk": "normalises the trunk, where the other blocks leave it as it is",
    }[cause]
    told = []
    if "multiplier" in numbers and "usual multiplier" in numbers:
        told.append(
            f"it multiplies the gradient by {figure(numbers['multiplier'])}, the others by "
            f"{figure(numbers['usual multiplier'])} (median)"
        )
    if "ratio" in numbers and "usual ratio" in numbers:
        told.append(f"|F|/|x| is {figure(numbers['ratio'])}, of the others {figure(numbers['usual ratio'])}")
    return f"{place} {what}" + (f": {'; '.join(told)}." if told else ".")


def silent(cause: str, place: str, numbers: Numbers) -> str:
    """Of a block that contributes or learns nothing."""
    match cause:
        case "gradient cut":
            count = int(numbers["blocks without a gradient"])
            blocks = "block is" if count == 1 else "blocks are"
            return f"No gradient reaches the weights of {place}, which are trainable ({count} {blocks} so)."
        case "dead layer" if "zeros" in numbers:
            return (
                f"{figure(100 * numbers['zeros'])}% of the output of {place} is 0 on this batch, "
                f"{figure(100 * numbers['zeros before'])}% of its input: the layer is off."
            )
        case "dead layer":
            return (
                f"The gradient of every weight in the branch of {place} is exactly 0, while the others' are not: "
                f"its units are off on this batch (|F|/|x| is {figure(numbers['ratio'])})."
            )
        case "frozen block":
            return f"{place} is frozen, with trained blocks before and after it."
    return f"{place} is never called, while {int(numbers['siblings in use'])} like it are."


def branch(place: str, numbers: Numbers) -> str:
    """Of a branch that is too large."""
    return (
        f"The branch of {place} is {figure(numbers['times its like'])} times the size of its like: "
        f"|F|/|x| is {figure(numbers['ratio'])}, of the others {figure(numbers['usual ratio'])} (median)."
    )


def cliff(cause: str, place: str, numbers: Numbers) -> str:
    """Of one block that changes the gradient unlike the others."""
    text = (
        f"{place} multiplies the gradient by {figure(numbers['multiplier'])}, the other blocks by "
        f"{figure(numbers['usual multiplier'])} (median)"
    )
    if "sw2" not in numbers:
        return f"{text}: a cliff, no slope."
    return (
        f"{text}: its weights have fan_in x variance {figure(numbers['sw2'])}, the others' "
        f"{figure(numbers['usual sw2'])}."
    )


def non_finite(quantity: str, place: str, numbers: Numbers, loss_scale: float) -> str:
    """Of values that are not finite."""
    what = "of the output" if quantity == "nonfinite" else "of the gradient"
    order = "first from the input" if quantity == "nonfinite" else "first from the output"
    text = f"{figure(numbers['values'])} values {what} of {place} are not finite ({order})."
    if quantity != "nonfinite" and loss_scale > 1.0:
        text += f" The loss was scaled by {figure(loss_scale)}: a scaler lowers it by itself after a skipped step."
    return text


def whole(verdict: str, cause: str, activation: str, numbers: Numbers, rate: Rate) -> str:
    """Of a gradient or a signal over the whole body."""
    who = activation.replace("_", " ") or "the layers"
    if activation == "relu":
        who = "ReLU"
    if cause in ("gain too small", "gain too large", "saturating activation") and "sw2" in numbers:
        who = f"{who} with {initialiser(numbers['sw2'])}"
    elif cause == "plain batch norm":
        who = f"batch norm and {who} without skips"
    elif cause == "unscaled branches":
        who = "skips without a norm whose branches are not scaled"
    elif cause == "not recognised":
        who = "no known cause"
    text = f"{who}: {figure(rate.value)} a block"
    if "theory" in numbers:
        text += f", theory {figure(numbers['theory'])}"
    text += f", over {rate.num_blocks} blocks {decades(rate.total_log10)} toward the input"
    if "growth of |h|, decades" in numbers:
        text += f"; |h| changes by {decades(numbers['growth of |h|, decades'])}"
    if "loss over ln K" in numbers:
        text += f"; the loss is {figure(numbers['loss over ln K'])} times ln K"
    return f"{text[0].upper()}{text[1:]}."


def training(cause: str, how: str, numbers: Numbers) -> str:
    """Of training curves."""
    if cause == "learning rate":
        told = {
            "non-finite": "The loss is no longer finite",
            "diverges": "The training loss grows",
            "oscillates": "The training loss swings",
        }[how]
        if how == "non-finite":
            told += f" at step {int(numbers['step'])}"
        elif how == "diverges":
            told += f" from {figure(numbers['first'])} to {figure(numbers['last'])}"
        else:
            told += f" by {figure(numbers['swing'])} a record in a range of {figure(numbers['range'])}"
        return f"{told}, while the gradient by depth shows no fault: the learning rate is too high."
    if cause == "no generalisation":
        text = (
            f"The training loss falls from {figure(numbers['first'])} to {figure(numbers['last'])}, the validation "
            f"loss goes from {figure(numbers['validation first'])} to {figure(numbers['validation last'])}"
        )
        if how == "at chance":
            return f"{text}, never under ln K = {figure(numbers['chance'])}: labels that the inputs do not determine."
        return f"{text}: overfitting, or labels that the inputs do not determine."
    return (
        f"The training loss stays at {figure(numbers['best'])} of {figure(numbers['first'])}, while the gradient by "
        "depth shows no fault."
    )
