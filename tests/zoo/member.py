"""One member of the zoo: how it is made, and the number of its residual additions with its derivation.

The number is read off the architecture, its paper or its modelling code, by the rule of `ResidualAddition`: an addition
of F(x) to an earlier tensor x that depends on the input. What is added to a constant is none: to learned latents, to
positions.
"""

from __future__ import annotations

import importlib
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

Batch = dict[str, Tensor] | Tensor


@dataclass(frozen=True, kw_only=True)
class Member:
    """A model with random weights.

    Attributes:
        family: heading in the table.
        make: the model, and a batch as `profile_model` takes it.
        additions: their known number; None where nobody can say without an argument.
        why: its derivation, or why it is not known.
        library: made by Hugging Face `transformers`.
        counted: what is counted where that is not the known number; docs/zoo.md says why.
    """

    family: str
    make: Callable[[], tuple[nn.Module, Batch]]
    additions: int | None
    why: str
    library: bool = False
    counted: int | None = None


def draws() -> torch.Generator:
    """The generator of a batch."""
    return torch.Generator().manual_seed(0)


def tokens(length: int = 8, high: int = 40, batch: int = 2) -> Tensor:
    """Numbers from 3: below lie special tokens."""
    return torch.randint(3, high, (batch, length), generator=draws())


def text(length: int = 8) -> dict[str, Tensor]:
    """Tokens and their mask."""
    return {"input_ids": tokens(length), "attention_mask": torch.ones(2, length, dtype=torch.long)}


def pairs(length: int = 8) -> dict[str, Tensor]:
    """Tokens of an encoder and of a decoder."""
    return {**text(length), "decoder_input_ids": tokens(length - 2)}


def normal(*shape: int) -> Tensor:
    """Standard normal numbers."""
    return torch.randn(*shape, generator=draws())


def images(size: int = 32) -> dict[str, Tensor]:
    """Two images."""
    return {"pixel_values": normal(2, 3, size, size)}


def waves(length: int = 400) -> dict[str, Tensor]:
    """Two sounds."""
    return {"input_values": normal(2, length)}


def hf(
    family: str,
    model: str,
    batch: Callable[[], dict[str, Tensor]],
    additions: int | None,
    why: str,
    *,
    counted: int | None = None,
    **config: Any,
) -> Member:
    """A model of `transformers`, made from a configuration alone: nothing is loaded.

    Args:
        family: see `Member`.
        model: its class.
        batch: makes its arguments.
        additions: see `Member`.
        why: see `Member`.
        counted: see `Member`.
        **config: of its configuration class; `{name: dict}` are configurations inside it.
    """

    def make() -> tuple[nn.Module, Batch]:
        transformers = importlib.import_module("transformers")  # large: types of it are not checked
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of configurations at odds with a pretrained one's
            kind: Any = getattr(transformers, model)
            torch.manual_seed(0)
            made: nn.Module = kind(kind.config_class(**config))
        return made, batch()

    return Member(family=family, make=make, additions=additions, why=why, library=True, counted=counted)


def own(
    family: str,
    model: Callable[[], nn.Module],
    batch: Callable[[], Batch],
    additions: int | None,
    why: str,
    *,
    counted: int | None = None,
) -> Member:
    """A stand-in of this folder."""

    def make() -> tuple[nn.Module, Batch]:
        torch.manual_seed(0)
        return model(), batch()

    return Member(family=family, make=make, additions=additions, why=why, counted=counted)
