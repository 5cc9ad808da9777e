"""What the catalogue says of one name."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

Backend = Literal["numpy", "torch"]
Kind = Literal[
    "family", "shortcut", "norm", "activation", "init", "data", "augment", "optimizer", "clip", "schedule", "measure"
]


CONVOLUTIONAL = ("cifar_resnet", "preact_resnet")
RESIDUAL = ("mlp", *CONVOLUTIONAL)
"""Families of blocks that can have any shortcut around them."""
EVERY_FAMILY = (*RESIDUAL, "densenet", "nfnet")


@dataclass(frozen=True, kw_only=True)
class Entry:
    """One name.

    Attributes:
        summary: what it is, in a line.
        targets: `"package.module:name"` of the code behind it, by backend.
        options: its options with their defaults; the default's type is the option's type.
        follows: of options, those whose default is so many over another option, rounded down: (the other, so many); in
            `options` stands what that comes to beside the other's default.
        later: options that came when runs had been recorded without them; at their defaults they are no part of a
            run's identity.
        untested: of a data set, the options with which its test set is not opened.
        by_seed: of a data set, whether each seed draws one of its own; otherwise all share one.
        by_depth: of a data set, whether its length in time is the network's depth, which its function then takes.
        regression: of a data set, whether it asks for numbers and not for classes; then there is no accuracy.
        by_position: of a data set, whether each place of a sequence has an answer of its own.
        reads: of a family that takes sequences, and their `length`: whether of tokens, of vectors, or both.
        in_blocks: of a family, whether its depth counts blocks and not layers.
        limits: intervals that options must lie in, such as `"[0, 1)"`; for a list, each of its numbers.
        choices: what an option of text may be.
        families: for what a network is built of (shortcut, norm, activation, init), the families that take it.
        by_hand: of `families`, those whose NumPy twin has it too, where not all of them that are on NumPy have.
        accepts: for a family, an initialiser or a measure, the values that it takes in other fields of a run.
        closed: of those fields, the ones in which it takes no code of the user's.
        goes_with: field of a run -> values that its paper has with it, where it is no more than a part of a repair; a
            run with others is a run all the same, of which the plan has a remark.
        draws: whether a network with it draws at random in a training step, as dropout does.
        sources: keys of the bibliography (`report/citations`).
    """

    summary: str
    targets: Mapping[Backend, str]
    options: Mapping[str, Any] = field(default_factory=dict)
    follows: Mapping[str, tuple[str, int]] = field(default_factory=dict)
    later: tuple[str, ...] = ()
    untested: Mapping[str, Any] = field(default_factory=dict)
    by_seed: bool = False
    by_depth: bool = False
    regression: bool = False
    by_position: bool = False
    reads: tuple[Literal["tokens", "vectors"], ...] = ()
    in_blocks: bool = False
    limits: Mapping[str, str] = field(default_factory=dict)
    choices: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    families: tuple[str, ...] = ()
    by_hand: tuple[str, ...] | None = None
    accepts: Mapping[str, tuple[Any, ...]] = field(default_factory=dict)
    closed: tuple[str, ...] = ()
    goes_with: Mapping[str, tuple[Any, ...]] = field(default_factory=dict)
    draws: bool = False
    sources: tuple[str, ...] = ()


def both(target: str) -> dict[Backend, str]:
    """The same code for both backends."""
    return {"numpy": target, "torch": target}
