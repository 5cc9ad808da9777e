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
    "plain batch norm": "add skip connections (x = x + block(x)), or drop the norm and draw weights at the critical "
    'gain: nn.init.kaiming_normal_(w, nonlinearity="relu")',
    "unscaled branches": "norm each branch first (x + f(norm(x))), scale it (x + f(x) / L**0.5, L blocks), or start "
    "it at 0: nn.init.zeros_ on the last weight of each branch",
    "branch scale": "bring the branch to the size of the others: look for a factor before the addition, or draw its "
    "last weight anew",
    "missing skip": "add the block's input to its output as in the other blocks: x = x + block(x)",
    "missing norm": "add the normaliser that the other blocks have",
    "norm on the trunk": "normalise the branch's input alone and leave the trunk as it is: x + f(norm(x))",
    "dead layer": "draw the layer's weights and biases anew (layer.reset_parameters()), and look for what set them",
    "frozen block": "block.requires_grad_(True), unless it is meant to stay",
    "uncalled block": "call the block in forward, or remove it",
    "gradient cut": "remove torch.no_grad() or .detach() around the block",
    "saturating activation": 'use nn.ReLU with nn.init.kaiming_normal_(w, nonlinearity="relu"), or nn.Tanh with '
    "nn.init.xavier_normal_(w)",
    "non-finite values": "find the operation at that place that overflows, divides by 0 or takes a logarithm of 0",
    "non-finite input": "clean the batch: torch.isfinite(x) says where",
    "learning rate": "lower the learning rate (a tenth, say), or warm it up",
    "no generalisation": "check that labels belong to their inputs; else more data, augmentation or weight decay",
    "stalled": "raise the learning rate (tenfold, say), and check that the optimiser holds model.parameters()",
    "collapsed representation": "add skip connections (x = x + block(x)), or nn.init.orthogonal_(w)",
    "zero classifier": "probe with loss_fn=None, whose random direction at the output passes the last layer by",
    "identical units": 'draw weights at random: nn.init.kaiming_normal_(w, nonlinearity="relu")',
    "unregistered weights": "put the layers in an nn.ModuleList (not a Python list), loose tensors in nn.Parameter",
    "one block": "look at this block first",
}
_AT_CHANCE = (
    "check that labels belong to their inputs and that the optimiser holds model.parameters(); "
    "then try other learning rates"
)


def repair(cause: str, *, activation: str = "", sw2: float | None = None, how: str = "") -> str:
    """What to try; empty where nothing is known to help."""
    if cause in ("gain too small", "gain too large"):
        if activation and sw2 is not None:
            code = f"nn.init.normal_(w, std=({sw2:.3g} / fan_in) ** 0.5)"
            if activation == "relu" and abs(sw2 - 2.0) < 1e-6:
                code = 'nn.init.kaiming_normal_(w, nonlinearity="relu")'
            what = f"draw weights with variance {sw2:.3g}/fan_in, which {activation} asks for"
            return f"{what}: {code}; or add skips or norms"
        return "draw its weights as the other layers' are"
    if cause == "stalled" and how == "at chance":
        return _AT_CHANCE
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
                f"The gradient of every weight matrix in the branch of {place} is exactly 0, the others' are not: "
                f"its units are off on this batch or its weights 0 (|F|/|x| is {figure(numbers['ratio'])})."
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
        who = "none of the known causes fits"
    text = f"{who}: a block multiplies the gradient by {figure(rate.value)}"
    if "theory" in numbers:
        text += f" (random weights like these in theory: {figure(numbers['theory'])})"
    text += f", {rate.num_blocks} blocks by {decades(rate.total_log10)}, from output to input"
    if "growth of |h|, decades" in numbers:
        text += f"; |h| changes by {decades(numbers['growth of |h|, decades'])}"
    if "loss over ln K" in numbers:
        text += f"; the loss is {figure(numbers['loss over ln K'])} times ln K, that of a uniform guess"
    return f"{text[0].upper()}{text[1:]}."


def rank(last: float, first: float) -> str:
    """Of an effective rank, which is 1 or more of anything that differs, and 0 where nothing does."""
    if last < 1.0:
        return f"The effective rank falls from {figure(first)} until all examples map to one point within rounding."
    return f"The effective rank falls from {figure(first)} to {figure(last)} over the body."


def training(cause: str, how: str, numbers: Numbers) -> str:
    """Of training curves."""
    chance = f" (a uniform guess has {figure(numbers['chance'])})" if "chance" in numbers else ""
    match how:
        case "non-finite":
            told = f"The loss, {figure(numbers['first'])} at first, is no longer finite at step {int(numbers['step'])}"
        case "values":
            told = f"Values are not finite at step {int(numbers['step'])} and were at step {int(numbers['finite at'])}"
        case "blown up":
            told = (
                f"The loss rose {figure(numbers['peak'] / numbers['first'])}-fold, from {figure(numbers['first'])} to "
                f"{figure(numbers['peak'])} at step {int(numbers['step'])}, and ended at {figure(numbers['last'])}"
                f"{chance}"
            )
        case "diverges":
            told = f"The training loss grows from {figure(numbers['first'])} to {figure(numbers['last'])}{chance}"
        case "oscillates":
            told = (
                f"The training loss swings up and down by turns, by {figure(numbers['swing'])} a record in a range of "
                f"{figure(numbers['range'])}"
            )
    if cause == "learning rate":
        if how in ("non-finite", "values"):
            return f"{told}: the learning rate is too high, or an operation overflows."
        return f"{told}: the learning rate is too high."
    if cause == "no generalisation":
        text = (
            f"The training loss falls from {figure(numbers['first'])} to {figure(numbers['last'])}, the validation "
            f"loss reaches {figure(numbers['validation best'])} and ends at {figure(numbers['validation last'])}"
        )
        if how == "at chance":
            return f"{text}, never under ln K = {figure(numbers['chance'])}: labels that the inputs do not determine."
        return f"{text}: overfitting, or labels that the inputs do not determine."
    over = f"over {int(numbers['steps'])} steps"
    if how == "at chance":
        return f"The training loss ends at {figure(numbers['last'])} {over}, that of a uniform guess{chance}."
    return f"The training loss stays at {figure(numbers['last'])} of {figure(numbers['first'])} {over}{chance}."


def followed(first: int, step: int, cause: str) -> str:
    """Of a fault that a training led to."""
    return f"What the profile shows at step {step} ({cause}) was not there at step {first}: it follows from that."


def out_of_scale(loss: float, classes: int) -> str:
    """Of a first loss far above that of a uniform guess."""
    chance = math.log(classes)
    return (
        f"the loss is {figure(loss)}, {figure(loss / chance)} times that of a uniform guess (ln {classes} = "
        f"{chance:.4g}): the output is out of scale at the start"
    )


def identical(place: str, numbers: Numbers) -> str:
    """Of layers whose weights are all equal."""
    count, value = int(numbers["layers of equal weights"]), numbers["value"]
    which = f"{place} and of {count - 1} more layers" if count > 1 else place
    return (
        f"All weights of {which} are equal ({figure(value)} in the first): the units of such a layer are "
        "identical and get the same gradient, so that training cannot tell them apart."
    )


def unregistered(count: int) -> str:
    """Of weights that are no parameters."""
    what = "1 operation of forward takes" if count == 1 else f"{count} operations of forward take"
    return f"{what} weights that are no parameters of the model: model.parameters() gives an optimiser none of them."


def recurrence(place: str, blocks: str) -> str:
    """Of a body that is a recurrence."""
    return (
        f"{place} is recurrent ({blocks} between stem and head): its depth is over time steps, and what becomes of the "
        "gradient there is not measured."
    )
