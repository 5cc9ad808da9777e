"""What a diagnosis is made of: plain data, ready for JSON."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Literal, get_args

from pydantic import ConfigDict

from depthscope.analysis.model.rate import Rate
from depthscope.study.run import Frozen

Verdict = Literal[
    "healthy",
    "vanishing",
    "exploding",
    "branch-dominated",
    "unused layers",
    "rank collapse",
    "not depth",
    "cannot tell",
]
VERDICTS: Mapping[Verdict, str] = MappingProxyType(
    {
        "healthy": "no fault of depth was found; the notes say what of loss, labels and learning rate was not checked",
        "vanishing": "the gradient dies on its way from the output to the input: early layers learn little or nothing",
        "exploding": "the gradient or the signal grows by powers of ten through the layers, or is no longer finite",
        "branch-dominated": "one residual block outweighs or lacks its skip: what came before it hardly passes",
        "unused layers": "layers that add or learn nothing: dead, frozen among trained ones, cut off, never called",
        "rank collapse": "deep layers give nearly one direction for all examples, which cannot be told apart",
        "not depth": "something else stands in the way, which the cause names: learning rate, labels, input, symmetry",
        "cannot tell": "what was measured does not show it; the sentence says what was missing",
    }
)
"""Every verdict with its meaning."""
assert tuple(VERDICTS) == get_args(Verdict)

CAUSES: Mapping[str, str] = MappingProxyType(
    {
        "": "none",
        "gain too small": "weights are drawn with too small a spread",
        "gain too large": "weights are drawn with too large a spread",
        "plain batch norm": "batch norm in a deep net without skips",
        "unscaled branches": "a skip without normalisation, whose branches are not scaled down with depth",
        "branch scale": "one branch is far larger than its like",
        "missing skip": "one block lacks the addition that its like have",
        "missing norm": "one block lacks a normaliser that its like have",
        "norm on the trunk": "one block normalises the trunk itself, where its like normalise the branch alone",
        "dead layer": "the units of a layer are off, or its weights 0, on every example",
        "frozen block": "a block between trainable ones does not train",
        "uncalled block": "a block whose like are used is never called",
        "gradient cut": "a block runs under no_grad or is detached",
        "saturating activation": "an activation whose slope is small everywhere, or saturated",
        "non-finite values": "values that are not finite",
        "learning rate": "the loss blows up, diverges or oscillates",
        "no generalisation": "the training loss falls, the validation loss shows little of it",
        "stalled": "the loss does not move, or stays at that of a uniform guess",
        "collapsed representation": "deep layers map all examples onto few directions",
        "zero classifier": "the last layer is 0, so that no gradient passes it",
        "identical units": "the weights of whole layers are all equal, so that their units stay copies of one another",
        "unregistered weights": "weights used in forward that are no parameters of the model",
        "recurrence": "the body is recurrent: its depth is over time steps, which is not measured",
        "too few blocks": "under 3 blocks between stem and head were found",
        "no gradient": "no gradient was measured",
        "non-finite input": "the input holds values that are not finite",
        "one block": "one block changes the gradient unlike all others",
        "not recognised": "none of the known causes fits",
    }
)
"""Every cause code with its meaning."""
WIDTH = 112
"""Letters of a line of text."""
MOST_PLACES = 4
"""Places that a line of text names."""


class Measured(Frozen):
    """Numbers that may be infinite, as a ratio to a skip of zeros is: they are what was measured."""

    model_config = ConfigDict(allow_inf_nan=True)


class Fault(Measured):
    """One thing that is the matter.

    Attributes:
        verdict: its sort.
        cause: one of `CAUSES`.
        where: names of blocks, modules or parameters, the first the most telling; empty for the whole body.
        sentence: what was measured, beside what was wanted, and the cause.
        repair: what to try.
        numbers: what the rule looked at.
        thresholds: what it held them against.
        inferred: the cause is a guess from the weights' spread or the structure: nothing measured singles it out.
    """

    verdict: Verdict
    cause: str
    where: tuple[str, ...] = ()
    sentence: str
    repair: str = ""
    numbers: dict[str, float] = {}  # noqa: RUF012 - pydantic copies it
    thresholds: dict[str, float] = {}  # noqa: RUF012 - pydantic copies it
    inferred: bool = False


class ModelDiagnosis(Measured):
    """The verdict on a model at one step.

    Attributes:
        verdict: that of the gravest fault; `healthy` where none was found, `cannot tell` where it cannot be told.
        cause: its cause code; empty for `healthy`.
        where: its place; empty for the whole body.
        sentence: it in words, made from the numbers.
        repair: what to try; empty where nothing needs to be.
        numbers: what the rule looked at.
        thresholds: what it held them against.
        inferred: the cause is a guess.
        step: updates done before the measurement.
        rate: factor of the gradient's norm a block, where it was measured.
        others: further faults.
        notes: what limits the verdict: noise input, eval mode, no loss, frozen parts and the like.
    """

    verdict: Verdict
    cause: str = ""
    where: tuple[str, ...] = ()
    sentence: str
    repair: str = ""
    numbers: dict[str, float] = {}  # noqa: RUF012 - pydantic copies it
    thresholds: dict[str, float] = {}  # noqa: RUF012 - pydantic copies it
    inferred: bool = False
    step: int = 0
    rate: Rate | None = None
    others: tuple[Fault, ...] = ()
    notes: tuple[str, ...] = ()

    def told(self, beside: Sequence[str] = ()) -> list[str]:
        """In words, an item a line: what was found, where, what to try, `beside`, what else, what limits it."""
        found = [self.sentence]
        if self.where:
            more = len(self.where) - MOST_PLACES
            found.append(f"where: {', '.join(self.where[:MOST_PLACES])}" + (f" and {more} more" if more > 0 else ""))
        if self.inferred and self.cause not in ("", "not recognised"):
            found.append("the cause is inferred: no reading singles it out")
        if self.repair:
            found.append(f"try: {self.repair}")
        found += beside
        found += [f"also {each.verdict}: {each.sentence}" for each in self.others]
        found += [f"note: {each}" for each in self.notes]
        return found

    def lines(self, beside: Sequence[str] = ()) -> list[str]:
        """`told` for a terminal."""
        return [
            line
            for text in self.told(beside)
            for line in textwrap.wrap(text, WIDTH, subsequent_indent="  ", break_on_hyphens=False)
        ]

    def __str__(self) -> str:
        return "\n".join((self.verdict, *self.lines()))
