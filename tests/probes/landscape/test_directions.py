"""Directions hold what Li et al. 2018 ask of them, filter by filter, at unequal widths."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.nn.utils import parametrizations as newer

from depthscope.core.errors import UserError
from depthscope.core.streams import stream
from depthscope.models.convnet import cifar_resnet
from depthscope.models.init import build
from depthscope.probes.landscape.directions import directions, trajectory_plane


def zoo() -> nn.ModuleDict:
    torch.manual_seed(0)
    return nn.ModuleDict(
        {
            "linear": nn.Linear(5, 3),
            "conv": nn.Conv2d(4, 6, 3, groups=2),
            "transposed": nn.ConvTranspose2d(4, 6, 3, groups=2),
            "plain_transposed": nn.ConvTranspose1d(4, 7, 2),
            "embedding": nn.Embedding(9, 4, padding_idx=2),
            "attention": nn.MultiheadAttention(4, 2, add_bias_kv=True),
            "recurrent": nn.GRU(3, 5),
            "bilinear": nn.Bilinear(2, 3, 4),
            "batch": nn.BatchNorm2d(6),
            "layer": nn.LayerNorm([3, 4]),
        }
    )


def filters(name: str, tensor: Tensor) -> list[Tensor]:
    """The plain twin: each filter, cut out by hand."""
    if name == "plain_transposed.weight":
        return [tensor[:, out] for out in range(7)]
    if name == "transposed.weight":
        return [tensor[2 * group : 2 * group + 2, out] for group in range(2) for out in range(3)]
    return list(tensor)


def test_every_filter_has_its_weights_norm() -> None:
    model = zoo()
    found = directions(model, axes=2, seed=3)
    still = {name for name, axis in found.filter_axis.items() if axis is None}
    assert still == {
        *(
            f"{name}.bias"
            for name in ("linear", "conv", "transposed", "plain_transposed", "bilinear", "batch", "layer")
        ),
        *("recurrent.bias_ih_l0", "recurrent.bias_hh_l0", "batch.weight", "layer.weight"),
        *("attention.in_proj_bias", "attention.out_proj.bias", "attention.bias_k", "attention.bias_v"),
    }
    assert {name for name, axis in found.filter_axis.items() if axis == 1} == {
        "transposed.weight",
        "plain_transposed.weight",
    }
    for axis in found.axes:
        assert list(axis) == [name for name, _ in model.named_parameters()]
        for name, parameter in model.named_parameters():
            assert axis[name].dtype == torch.float64
            if name in still:
                assert not axis[name].any()
                continue
            for drawn, weight in zip(
                filters(name, axis[name]), filters(name, parameter.detach().double()), strict=True
            ):
                assert float(drawn.norm()) == pytest.approx(float(weight.norm()), rel=1e-6)
    assert not found.axes[0]["embedding.weight"][2].any()  # the padding's row is 0
    assert found.axes[0]["embedding.weight"][1].any()


class AdaNorm(nn.Linear):
    """A layer by what it is, whatever it is called."""


class Scaled(nn.Module):
    """Layer scale, and a table of positions."""

    def __init__(self) -> None:
        super().__init__()
        self.gamma = nn.Parameter(torch.full((4, 1, 1), 1e-6))
        self.positions = nn.Parameter(torch.randn(1, 9, 6))


@pytest.mark.filterwarnings("ignore:.*weight_norm:FutureWarning")
@pytest.mark.parametrize(
    ("make", "wanted"),
    [
        (lambda: newer.weight_norm(nn.Linear(5, 8)), {"original0": None, "original1": 0}),
        (lambda: newer.weight_norm(nn.Linear(1, 8)), {"original0": None, "original1": 0}),
        (lambda: newer.weight_norm(nn.Conv2d(4, 6, 3)), {"original0": None, "original1": 0}),
        (lambda: newer.weight_norm(nn.ConvTranspose2d(4, 6, 3), dim=1), {"original0": None, "original1": 1}),
        (lambda: newer.spectral_norm(nn.ConvTranspose2d(4, 6, 3)), {"original": 1}),
        (lambda: newer.orthogonal(nn.Linear(5, 5)), {"original": 0}),
        (lambda: nn.utils.weight_norm(nn.Linear(5, 8)), {"weight_g": None, "weight_v": 0}),
        (lambda: nn.utils.weight_norm(nn.ConvTranspose2d(4, 6, 3, groups=2), dim=1), {"weight_g": None, "weight_v": 1}),
        (lambda: nn.utils.spectral_norm(nn.ConvTranspose2d(4, 6, 3)), {"weight_orig": 1}),
        (lambda: AdaNorm(5, 8), {"weight": 0}),
        (lambda: nn.Linear(1, 8), {"weight": 0}),
        (Scaled, {"gamma": None, "positions": 0}),
    ],
)
def test_weights_that_are_made_and_gains(make: Any, wanted: dict[str, int | None]) -> None:
    torch.manual_seed(0)
    model = make()
    found = directions(model, axes=1, seed=0)
    axes = {name.rpartition(".")[2]: axis for name, axis in found.filter_axis.items()}
    axes.pop("bias", None)
    assert axes == wanted
    for name, parameter in model.named_parameters():
        drawn, axis = found.axes[0][name], found.filter_axis[name]
        assert bool(drawn.any()) == (axis is not None)
        if axis is not None:
            groups = getattr(model, "groups", 1)
            one, other = (t.detach().double().chunk(groups) for t in (drawn, parameter))
            for each, of in zip(one, other, strict=True):
                dims = [dim for dim in range(each.ndim) if dim != axis]
                squares = of.square().sum(dims)
                assert each.square().sum(dims).numpy() == pytest.approx(squares.numpy(), rel=1e-6)


def test_entries_are_those_of_the_named_streams() -> None:
    model = nn.Linear(5, 3)
    found = directions(model, axes=2, seed=7, normalise="none")
    for axis in range(2):
        assert found.axes[axis]["weight"].numpy() == pytest.approx(
            stream(7, "landscape", "weight", axis).normal(size=(3, 5))
        )
    scaled = directions(model, axes=1, seed=7).axes[0]["weight"]
    ratio = scaled / found.axes[0]["weight"]
    assert torch.allclose(ratio, ratio[:, :1].expand(3, 5))
    # The same parameter has the same draws in another model, and with another axis beside it.
    deeper = nn.ModuleDict({"weight": nn.Linear(2, 2)})
    assert directions(deeper, axes=1, seed=7, normalise="none").axes[0]["weight.weight"].shape == (2, 2)


def test_facts() -> None:
    model = cifar_resnet(depth=8, shortcut="A")
    found = directions(model, axes=2, seed=0)
    flat = [torch.cat([each.flatten() for each in axis.values()]) for axis in found.axes]
    assert found.facts["cosine"] == pytest.approx(float(F.cosine_similarity(flat[0], flat[1], dim=0)), abs=1e-12)
    assert abs(found.facts["cosine"]) < 5 / math.sqrt(flat[0].count_nonzero())
    weights = [each.detach().double() for each in model.parameters() if each.ndim > 1]
    length = math.sqrt(sum(float(each.square().sum()) for each in weights))
    assert found.facts["length_a"] == pytest.approx(length, rel=1e-12)
    assert found.facts["length_b"] == pytest.approx(length, rel=1e-12)


def test_shared_parameters_are_drawn_once_and_frozen_ones_not_at_all() -> None:
    model = nn.ModuleDict({"tokens": nn.Embedding(4, 3), "head": nn.Linear(3, 4), "frozen": nn.Linear(2, 2)})
    model["head"].weight = model["tokens"].weight
    model["frozen"].requires_grad_(False)
    found = directions(model, axes=1, seed=0)
    assert list(found.axes[0]) == ["tokens.weight", "head.bias"]


def test_a_filter_of_zeros_stays_and_the_model_is_only_read() -> None:
    model = nn.Linear(4, 3)
    with torch.no_grad():
        model.weight[1] = 0.0
    before = {name: each.clone() for name, each in model.state_dict().items()}
    state = torch.get_rng_state()
    axis = directions(model, axes=1, seed=0).axes[0]["weight"]
    assert not axis[1].any()
    assert bool(axis[0].all())
    assert all(torch.equal(each, before[name]) for name, each in model.state_dict().items())
    assert torch.equal(torch.get_rng_state(), state)


def broken(model: nn.Module) -> nn.Module:
    with torch.no_grad():
        next(model.parameters()).fill_(float("nan"))
    return model


@pytest.mark.parametrize(
    ("model", "words"),
    [
        (nn.BatchNorm1d(3), "nothing can move"),
        (nn.Linear(2, 2).requires_grad_(False), "nothing can move"),
        (nn.LazyLinear(2), "no values yet"),
        (broken(nn.Linear(2, 2)), "not finite"),
        (nn.Linear(2, 2, dtype=torch.complex64), "complex"),
    ],
)
def test_refusals(model: Any, words: str) -> None:
    with pytest.raises(UserError, match=words):
        directions(model, seed=0)


def test_the_plane_of_a_path_that_lies_in_one() -> None:
    """Snapshots end + x u + y v with u, v orthonormal: the plane is theirs, and the shares those of the matrix."""
    rng = np.random.default_rng(0)
    u, v = np.linalg.qr(rng.normal(size=(10, 2)))[0].T
    end = rng.normal(size=10)
    x, y = np.array([-4.0, -3.0, -1.0, 0.0]), np.array([0.0, 1.0, -1.0, 0.0])
    snapshots = [
        {"w": torch.from_numpy(w[:6].reshape(2, 3)), "b": torch.from_numpy(w[6:]), "n": torch.tensor(3)}
        for w in end + x[:, None] * u + y[:, None] * v
    ]
    found = trajectory_plane(snapshots)
    values = np.linalg.eigvalsh(np.array([[x @ x, x @ y], [x @ y, y @ y]]))[::-1]
    assert found.explained == pytest.approx(values / values.sum(), rel=1e-12)
    flat = np.stack([np.concatenate([each["w"].numpy().ravel(), each["b"].numpy()]) for each in found.axes])
    for (a, b), snapshot in zip(found.path, snapshots, strict=True):
        stood = np.concatenate([snapshot["w"].numpy().ravel(), snapshot["b"].numpy()])
        assert end + a * flat[0] + b * flat[1] == pytest.approx(stood, abs=1e-12)
    assert found.path[-1] == (0.0, 0.0)
    assert max(a for a, _ in found.path) == pytest.approx(1.0)
    assert max(b for _, b in found.path) == pytest.approx(1.0)
    assert max(abs(each) for point in found.path for each in point) == pytest.approx(1.0)
    assert found.facts["cosine"] == pytest.approx(0.0, abs=1e-12)
    assert trajectory_plane(snapshots, names=["w"], axes=1).axes[0].keys() == {"w"}


def at(*values: float) -> dict[str, Tensor]:
    return {"w": torch.tensor(values, dtype=torch.float64)}


@pytest.mark.parametrize(
    ("snapshots", "words"),
    [
        ([at(0, 1), at(1, 0)], "3 snapshots or more, got 2"),
        ([at(1, 1)] * 4, "all the same"),
        ([at(0, 0), at(1, 1), at(3, 3)], "on one line"),
        ([at(0, 0), at(1, float("inf")), at(3, 3)], "not finite"),
        ([at(0), at(1, 1), at(3, 3)], "w of snapshot 0 is missing, or of another shape"),
    ],
)
def test_planes_that_there_are_not(snapshots: list[dict[str, Tensor]], words: str) -> None:
    with pytest.raises(UserError, match=words):
        trajectory_plane(snapshots)


def test_a_path_on_a_line_has_one_axis() -> None:
    found = trajectory_plane([at(0, 0), at(1, 1), at(3, 3)], axes=1)
    assert found.explained == pytest.approx((1.0,))
    assert [a for (a,) in found.path] == pytest.approx([1.0, 2 / 3, 0.0])


def test_of_a_network_of_ours() -> None:
    model, _ = build(lambda: cifar_resnet(depth=8, width=4, shortcut="A"), seed=0)
    torch.manual_seed(0)
    snapshots = []
    for _ in range(4):
        with torch.no_grad():
            for each in model.parameters():
                each.add_(torch.randn_like(each), alpha=0.1)
        snapshots.append({name: each.clone() for name, each in model.state_dict().items()})
    names = [name for name, _ in model.named_parameters()]
    found = trajectory_plane(snapshots, names=names)
    assert list(found.axes[0]) == names
    assert 0 < sum(found.explained) < 1
