"""Directions in the space of a model's weights, along which its loss is drawn.

Source: Li et al. 2018, arXiv 1712.09913: section 4 (filter-wise normalised random directions) and section 7 (the plane
of a trajectory).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

import torch
from torch import Tensor, nn

from depthscope.core.errors import UserError
from depthscope.core.streams import stream
from depthscope.probes.guard import unwrapped
from depthscope.probes.landscape.filters import scale_to, trainable


@dataclass(frozen=True, kw_only=True)
class Directions:
    """One or two directions, in float64.

    Attributes:
        axes: of each axis the direction of every parameter that is trained, by name, as the parameter is shaped.
        filter_axis: of each parameter the dimension along which its filters lie (see `filters`); None where it has
            none. A random direction leaves those parameters where they are.
        facts: `length_a` (and `length_b`): the norm of a direction, which is how far one unit of its coordinate goes;
            `cosine` between two; `length_centre`: the norm of the weights that they are for.
        explained: of a trajectory's plane, the share of each axis in the squared distances of the snapshots.
        path: of a trajectory's plane, the snapshots' coordinates in it, the last at the centre.
    """

    axes: tuple[Mapping[str, Tensor], ...]
    filter_axis: Mapping[str, int | None] = field(default_factory=dict)
    facts: Mapping[str, float]
    explained: tuple[float, ...] = ()
    path: tuple[tuple[float, ...], ...] = ()


def directions(
    model: nn.Module, *, axes: int = 2, seed: int, normalise: Literal["filter", "none"] = "filter"
) -> Directions:
    """Random Gaussian directions, each filter scaled to the norm of the weights' filter.

    So a step along them is one of the same relative size in every filter, and rescaling the weights of a ReLU network
    (W1, W2) -> (c W1, W2 / c), which leaves its function, leaves the surface as it is. Biases and the parameters of
    normalisers stay where they are, and so does all else that has no filters (`filters` says what is one).

    Two directions are drawn independently, as Li et al. draw them, and are not made orthogonal; their cosine, about
    1 / sqrt(number of weights), is in `facts`.

    The entries of a parameter are those of `stream(seed, "landscape", parameter name, axis)`.

    Args:
        model: only read. Parameters that are not trained have no direction; those that are shared have one.
        axes: how many.
        seed: of the streams.
        normalise: `filter`, or `none` for the bare Gaussian numbers (of the same parameters).

    Raises:
        UserError: no parameter can move, one holds a number that is not finite, has no values yet, or is complex.
    """
    found: list[dict[str, Tensor]] = [{} for _ in range(axes)]
    filter_axis: dict[str, int | None] = {}
    weights: dict[str, Tensor] = {}
    for name, parameter, filters in trainable(unwrapped(model)):
        weight = weights[name] = parameter.detach().cpu().double()
        filter_axis[name] = filters.axis
        if not bool(torch.isfinite(weight).all()):
            raise UserError(f"landscape: {name} holds a number that is not finite, so nothing lies around it.")
        for axis, of_axis in enumerate(found):
            if filters.axis is None:
                of_axis[name] = torch.zeros_like(weight)
                continue
            drawn = torch.from_numpy(stream(seed, "landscape", name, axis).normal(size=tuple(weight.shape)))
            of_axis[name] = scale_to(drawn, weight, filters) if normalise == "filter" else drawn
    if not all(any(bool(each.any()) for each in of_axis.values()) for of_axis in found):
        raise UserError(
            "landscape: nothing can move: the model has no trained weight with filters that are not 0. "
            "Wanted a weight of two dimensions or more, with requires_grad."
        )
    return Directions(axes=tuple(found), filter_axis=filter_axis, facts=_facts(found, weights))


def trajectory_plane(
    weights: Sequence[Mapping[str, Tensor]], *, names: Iterable[str] | None = None, axes: int = 2
) -> Directions:
    """The plane through the last snapshot of a training that lies closest to all of them.

    Its axes are the first principal components of w_t - w_end: the right singular vectors of the matrix that has these
    as rows, which is not centred, since the plane has to go through w_end (centred components need not point along
    it). `explained` are the shares of their squared singular values in the sum of all. They are orthogonal; each is as
    long as the farthest snapshot is along it, so that the path lies within -1 and 1 of both coordinates, and points to
    that snapshot. All parameters move, biases and those of normalisers too: the path is the one that was taken.

    Args:
        weights: snapshots in their order, three or more; tensors by name.
        names: of the parameters that were trained, which a snapshot may hold more than; all of floating point where
            None.
        axes: how many components.

    Raises:
        UserError: fewer than three snapshots, none moved, they lie on one line (of two axes), their names or shapes
            differ, or one holds a number that is not finite.
    """
    if len(weights) < 3:
        raise UserError(f"landscape: a trajectory's plane wants 3 snapshots or more, got {len(weights)}.")
    end = weights[-1]
    chosen = [name for name, each in end.items() if each.is_floating_point()] if names is None else list(names)
    num = len(weights)
    inner = torch.zeros(num, num, dtype=torch.float64)
    for name in chosen:
        away = _away(weights, name)
        inner += away @ away.T
    # Components by the small matrix of inner products: D = U S V', D D' = U S^2 U', V' = S^-1 U' D.
    values, vectors = torch.linalg.eigh(inner)
    squares = values.flip(0).clamp(min=0.0)
    if not bool(squares[0] > 0):
        raise UserError("landscape: the snapshots are all the same, so that they span no plane. Train for longer.")
    if axes > 1 and not bool(squares[axes - 1] > 1e-12 * squares[0]):
        raise UserError(
            "landscape: the snapshots lie on one line, which spans no plane. Wanted more of them, or 1 axis."
        )
    mixes = vectors.flip(1)[:, :axes] / squares[:axes].sqrt()
    path = inner @ mixes
    for axis in range(axes):
        farthest = float(path[path[:, axis].abs().argmax(), axis])
        mixes[:, axis] *= farthest
        path[:, axis] /= farthest
    found: list[dict[str, Tensor]] = [{} for _ in range(axes)]
    for name in chosen:
        moved = mixes.T @ _away(weights, name)
        for axis, of_axis in enumerate(found):
            of_axis[name] = moved[axis].reshape(end[name].shape)
    return Directions(
        axes=tuple(found),
        facts=_facts(found, {name: end[name].detach().cpu().double() for name in chosen}),
        explained=tuple((squares[:axes] / squares.sum()).tolist()),
        path=tuple(tuple(row) for row in path.tolist()),
    )


def _away(weights: Sequence[Mapping[str, Tensor]], name: str) -> Tensor:
    """w_t - w_end of one parameter, [snapshots, entries]."""
    for index, each in enumerate(weights):
        if name not in each or each[name].shape != weights[-1][name].shape:
            raise UserError(
                f"landscape: {name} of snapshot {index} is missing, or of another shape than the last one's."
            )
    rows = torch.stack([each[name].detach().cpu().double().reshape(-1) for each in weights])
    if not bool(torch.isfinite(rows).all()):
        raise UserError(
            f"landscape: {name} of a snapshot holds a number that is not finite. Leave those snapshots out."
        )
    return rows - rows[-1:]


def _facts(axes: Sequence[Mapping[str, Tensor]], centre: Mapping[str, Tensor]) -> dict[str, float]:
    lengths = [math.hypot(*(float(each.norm()) for each in of_axis.values())) for of_axis in axes]
    facts = {f"length_{'ab'[axis]}": length for axis, length in enumerate(lengths)}
    facts["length_centre"] = math.hypot(*(float(each.norm()) for each in centre.values()))
    if len(axes) == 2:
        product = sum(float((axes[0][name] * axes[1][name]).sum()) for name in axes[0])
        facts["cosine"] = product / (lengths[0] * lengths[1])
    return facts
