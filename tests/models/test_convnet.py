"""The CIFAR family: exact counts, names, points, and its forward pass against a naive NumPy twin."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pytest
import torch
from tests.models.naive import Array, conv_naive, norm_naive
from torch import Tensor, nn

from depthscope.core.errors import UserError
from depthscope.models.convnet import CifarResNet, cifar_resnet
from depthscope.models.shortcuts.skips import Pad

# shared/ORACLES.md section 1: depth -> (plain and option A, option B).
COUNTS = {
    20: (269_722, 272_474),
    32: (464_154, 466_906),
    44: (658_586, 661_338),
    56: (853_018, 855_770),
    110: (1_727_962, 1_730_714),
    1202: (19_421_274, 19_424_026),
}


def on_meta(depth: int, shortcut: str, width: int = 16) -> CifarResNet:
    with torch.device("meta"):
        return cifar_resnet(depth=depth, width=width, shortcut=shortcut)


def shapes(model: nn.Module) -> dict[str, tuple[int, ...]]:
    return {name: tuple(tensor.shape) for name, tensor in model.state_dict().items()}


@pytest.mark.parametrize("depth", COUNTS)
def test_parameter_counts(depth: int) -> None:
    counts = {s: sum(p.numel() for p in on_meta(depth, s).parameters()) for s in ("none", "A", "B")}
    plain, projected = COUNTS[depth]
    assert counts == {"none": plain, "A": plain, "B": projected}


def test_plain_and_option_a_have_the_same_tensors_and_option_b_two_projections_more() -> None:
    plain, padded, projected = (shapes(on_meta(56, s)) for s in ("none", "A", "B"))
    assert plain == padded
    assert plain.items() < projected.items()
    extra = projected.keys() - plain.keys()
    assert {name.rsplit(".", 2)[0] for name in extra} == {"blocks.9.shortcut", "blocks.18.shortcut"}
    assert projected["blocks.9.shortcut.conv.weight"] == (32, 16, 1, 1)
    assert projected["blocks.18.shortcut.conv.weight"] == (64, 32, 1, 1)


def test_the_arms_have_the_same_points_one_a_weighted_layer() -> None:
    plain, padded, projected = (on_meta(20, s) for s in ("none", "A", "B"))
    points = plain.points()
    assert points == padded.points() == projected.points()
    assert len(points) == 20
    assert (points[0].layer, points[0].output) == ("stem.conv", "stem.relu")
    assert (points[7].layer, points[7].weight, points[7].output) == (
        "blocks.3.conv1",
        "blocks.3.conv1.weight",
        "blocks.3.relu1",
    )
    assert (points[8].layer, points[8].kind, points[8].output) == ("blocks.3.conv2", "conv", "blocks.3.relu2")
    assert (points[19].layer, points[19].kind, points[19].output) == ("head", "linear", "head")
    weighted = {name for name, module in plain.named_modules() if isinstance(module, nn.Conv2d | nn.Linear)}
    assert {point.layer for point in points} == weighted
    assert {point.weight for point in points} <= dict(plain.named_parameters()).keys()


def test_points_are_called_in_forward_order() -> None:
    model = cifar_resnet(depth=14, width=2, shortcut="B")
    called: list[str] = []
    for point in model.points():
        model.get_submodule(point.output).register_forward_hook(lambda *_, name=point.output: called.append(name))
    model(torch.zeros(2, 3, 8, 8))
    assert called == [point.output for point in model.points()]


def test_a_plain_network_has_no_additions() -> None:
    assert on_meta(20, "none").additions() == ()


@pytest.mark.parametrize("shortcut", ["A", "B"])
def test_additions_name_what_is_added(shortcut: str) -> None:
    model = cifar_resnet(depth=14, width=2, shortcut=shortcut)
    outputs = {point.layer: point.output for point in model.points()}
    seen: dict[str, Tensor] = {}
    for name, module in model.named_modules():
        module.register_forward_hook(lambda _m, _i, out, name=name: seen.__setitem__(name, out.detach().clone()))
    model(torch.randn(2, 3, 8, 8))
    assert len(model.additions()) == 6
    for each in model.additions():
        assert torch.equal((seen[each.branch] + seen[each.skip]).relu(), seen[each.block])
        assert torch.equal(seen[outputs[each.layer]], seen[each.block])


def test_each_activation_is_a_module_of_its_own_and_not_in_place() -> None:
    activations = [module for module in on_meta(20, "A").modules() if isinstance(module, nn.ReLU)]
    assert len(activations) == 19
    assert not any(module.inplace for module in activations)


def test_widths_and_channels_are_free() -> None:
    model = cifar_resnet(depth=8, width=5, shortcut="A", num_inputs=1, num_classes=7)
    assert model(torch.zeros(2, 1, 12, 12)).shape == (2, 7)
    assert model.get_submodule("blocks.2.conv2").weight.shape == (20, 20, 3, 3)


def test_option_a_keeps_every_second_pixel_and_appends_zero_channels() -> None:
    x = torch.arange(2 * 3 * 5 * 4.0).reshape(2, 3, 5, 4)
    out = Pad(3, 6, 2)(x)
    assert out.shape == (2, 6, 3, 2)
    for row in range(3):
        for column in range(2):
            assert torch.equal(out[:, :3, row, column], x[:, :, 2 * row, 2 * column])
    assert not out[:, 3:].any()


@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize("shortcut", ["none", "A", "B"])
def test_forward_equals_the_naive_twin(shortcut: str, training: bool) -> None:
    rng = np.random.default_rng(0)
    model = cifar_resnet(depth=14, width=3, shortcut=shortcut, num_inputs=2, num_classes=4).double().train(training)
    state = {}
    for name, tensor in model.state_dict().items():
        value = rng.standard_normal(tensor.shape)
        state[name] = torch.from_numpy(np.abs(value) + 0.5 if name.endswith("running_var") else value).to(tensor.dtype)
    model.load_state_dict(state)
    x = rng.standard_normal((3, 2, 8, 8))
    measured = model(torch.from_numpy(x)).detach().numpy()
    arrays = {name: tensor.double().numpy() for name, tensor in state.items()}
    np.testing.assert_allclose(measured, forward_naive(x, arrays, 14, shortcut, training), rtol=1e-11, atol=1e-12)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"depth": 21}, "depth 21 is not 6n.2. The nearest are 20 and 26"),
        ({"depth": 2}, "smallest"),
        ({"depth": 20, "shortcut": "D"}, "unknown shortcut 'D'.*Known: A, A_pool, B, C, "),
        ({"depth": 20, "width": 0}, "width: wanted 1 or more, got 0"),
        ({"depth": 20, "num_classes": -1}, "num_classes"),
    ],
)
def test_bad_arguments(arguments: dict[str, object], message: str) -> None:
    with pytest.raises(UserError, match=message), torch.device("meta"):
        cifar_resnet(**arguments)  # type: ignore[arg-type]


def forward_naive(x: Array, state: Mapping[str, Array], depth: int, shortcut: str, training: bool) -> Array:
    h = np.maximum(norm_naive(conv_naive(x, state["stem.conv.weight"], 1), state, "stem.bn", training), 0)
    per_stage = (depth - 2) // 6
    for index in range(3 * per_stage):
        shrinks = index in (per_stage, 2 * per_stage)
        stride = 2 if shrinks else 1
        name = f"blocks.{index}"
        out = norm_naive(conv_naive(h, state[f"{name}.conv1.weight"], stride), state, f"{name}.bn1", training)
        out = conv_naive(np.maximum(out, 0), state[f"{name}.conv2.weight"], 1)
        out = norm_naive(out, state, f"{name}.bn2", training)
        if shortcut == "A":
            out[:, : h.shape[1]] += h[:, :, ::stride, ::stride]
        elif shortcut == "B" and shrinks:
            projected = conv_naive(h, state[f"{name}.shortcut.conv.weight"], stride)
            out += norm_naive(projected, state, f"{name}.shortcut.bn", training)
        elif shortcut == "B":
            out += h
        h = np.maximum(out, 0)
    pooled: Array = h.mean(axis=(2, 3))
    return pooled @ state["head.weight"].T + state["head.bias"]
