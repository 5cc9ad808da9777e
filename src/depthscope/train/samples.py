"""Text that a trained network writes: token by token, each drawn from its probabilities at temperature 1.

Shape letters: B texts, T positions, V tokens of the vocabulary.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from depthscope.core.errors import UserError
from depthscope.core.streams import stream
from depthscope.data.dataset import Dataset
from depthscope.study.run import RunSpec

if TYPE_CHECKING:
    from torch import nn

SAMPLES = "samples"
"""The measure's name."""

NUM_SAMPLES = 5
MAX_TOKENS = 200
"""Longest text, in tokens."""

Scores = Callable[[NDArray[np.int64]], NDArray[Any]]
"""Tokens [B, T] -> logits [B, T, V] of what follows each of them."""


def written(scores: Scores, data: Dataset, seed: int) -> tuple[str, ...]:
    """Texts that a network writes.

    Each begins with the token whose text is empty, which stands for the beginning and the end, and ends before its next
    one. Where there is none, a text begins as a new line would, and ends after `MAX_TOKENS`. A text is drawn from its
    own stream, (seed, "samples", number): what others draw is nothing to it.

    The network sees the last T tokens, T being what it was trained on; a shorter beginning is filled up behind, which
    a network that looks back alone does not see.

    Args:
        scores: the network.
        data: whose `alphabet` the tokens are of.
        seed: the run's.
    """
    length = data.train.x.shape[1]
    start = _start(data.alphabet)
    ends = data.alphabet[start] == ""
    texts = [[start] for _ in range(NUM_SAMPLES)]
    draws = [stream(seed, SAMPLES, number) for number in range(NUM_SAMPLES)]
    going = list(range(NUM_SAMPLES))
    while going:
        seen = [texts[number][-length:] for number in going]
        x_BT = np.array([tokens + [start] * (length - len(tokens)) for tokens in seen], np.int64)
        given_BTV = np.asarray(scores(x_BT), np.float64)
        left = []
        for number, tokens, logits_TV in zip(going, seen, given_BTV, strict=True):
            token = drawn(logits_TV[len(tokens) - 1], draws[number])
            if token is None or (ends and token == start):
                continue
            texts[number].append(token)
            if len(texts[number]) <= MAX_TOKENS:
                left.append(number)
        going = left
    return tuple("".join(data.alphabet[token] for token in text[1:]) for text in texts)


def drawn(logits_V: NDArray[Any], rng: np.random.Generator) -> int | None:
    """A token, by the softmax of its logits; None where these are no probabilities.

    >>> drawn(np.array([-np.inf, 0.0]), np.random.default_rng(0))
    1
    """
    highest = logits_V.max()
    if not np.isfinite(highest):  # NaN too
        return None
    odds_V = np.exp(logits_V - highest).cumsum()
    return int(np.searchsorted(odds_V, rng.random() * odds_V[-1], side="right"))


def _start(alphabet: tuple[str, ...]) -> int:
    for text in ("", "\n"):
        if text in alphabet:
            return alphabet.index(text)
    return 0


def written_by(model: nn.Module, data: Dataset, spec: RunSpec, device: str) -> tuple[str, ...]:
    """`written` of a model in torch, in evaluation mode; it stays in it."""
    import torch

    model.eval()

    @torch.no_grad()
    def scores(x_BT: NDArray[np.int64]) -> NDArray[Any]:
        logits_BTV: NDArray[Any] = model(torch.from_numpy(x_BT).to(device)).cpu().double().numpy()
        return logits_BTV

    return written(scores, data, spec.seed)


def check_text(spec: RunSpec, data: Dataset) -> None:
    """See that a run that shall write text learns from text.

    Raises:
        UserError: its data set's tokens stand for no text, or nothing is asked at each position.
    """
    if SAMPLES in spec.measures and not (data.alphabet and data.train.y.ndim == 2):
        raise UserError(
            f"measures: 'samples' wants data whose tokens are text (an alphabet, and a label for each position); "
            f"{spec.data} has none."
        )
