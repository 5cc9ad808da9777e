"""How well networks answer, whole splits at a time, in float64.

Shape letters: S seeds, N examples (of answers: one a position, where each position is asked), I inputs, T positions,
C classes.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from depthscope.lab import layers
from depthscope.lab.forms import Form, as_input, as_labels, check_data, check_inputs, make_network

Array = NDArray[Any]


def accuracy(scores_SCN: Array, y_SN: Array) -> NDArray[np.float64]:
    """Share of the answers asked for whose label has the highest score, [S]; the first class wins a tie."""
    hits_SN = scores_SCN.argmax(axis=-2) == y_SN  # a label below 0 is no class: nothing equals it
    return np.asarray(hits_SN.sum(axis=-1) / (y_SN >= 0).sum(axis=-1), np.float64)


def evaluate(
    form: Form, params: Mapping[str, Array], x: Array, y: Array, *, at_once: int | None = None
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Loss and accuracy of each seed on any data, in float64.

    Batch norm uses the statistics of the batch at hand, as everywhere in the laboratory.

    Args:
        form: the network.
        params: one row a seed.
        x: inputs [S, N, I], or tokens [S, N, T].
        y: labels [S, N], or [S, N, T].
        at_once: examples that are computed at once, for a network to which that makes no difference, and each part
            of which asks something; None: all.

    Returns:
        Loss [S] in nats, accuracy [S] as a fraction.

    Raises:
        UserError: data that the form does not take.
    """
    check_data(form, x, y)
    if at_once is None or at_once >= y.shape[1]:
        return _judge(form, params, x, as_labels(y))
    figures_2S, asked_S = np.zeros((2, len(y))), np.zeros(len(y))
    for start in range(0, y.shape[1], at_once):
        y_SN = as_labels(y[:, start : start + at_once])
        num_S = layers.num_asked(y_SN, np.float64)
        figures_2S += np.stack(_judge(form, params, x[:, start : start + at_once], y_SN)) * num_S
        asked_S += num_S
    loss_S, accuracy_S = figures_2S / asked_S
    return loss_S, accuracy_S


def scores(form: Form, params: Mapping[str, Array], x: Array) -> Array:
    """What each seed's network says of these inputs, in float64: [S, classes, answers].

    Raises:
        UserError: inputs that the form does not take.
    """
    check_inputs(form, x)
    return _scores(form, params, x)


def _scores(form: Form, params: Mapping[str, Array], x: Array) -> Array:
    wide = {name: np.asarray(value, np.float64) for name, value in params.items()}
    net = make_network(form, x.shape[0], x.shape[1], np.float64)
    return net.forward(wide, as_input(form, x, np.float64))


def _judge(
    form: Form, params: Mapping[str, Array], x: Array, y_SN: Array
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    scores_SCN = _scores(form, params, x)
    loss_S, _ = layers.cross_entropy_forward(scores_SCN, y_SN)
    return np.asarray(loss_S, np.float64), accuracy(scores_SCN, y_SN)
