"""Pre-activation networks: exact counts, names, points, and the forward pass against a naive NumPy twin."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
import torch
from tests.models.naive import Array, conv_naive, norm_naive, pad_naive

from depthscope.core.errors import UserError
from depthscope.models.preact import PreactResNet, preact_resnet


def on_meta(**arguments: Any) -> PreactResNet:
    with torch.device("meta"):
        return preact_resnet(**arguments)


@pytest.mark.parametrize(
    ("depth", "bottleneck", "count", "additions"),
    [(164, True, 1_703_258, 54), (1001, True, 10_327_706, 333), (110, False, 1_730_522, 54)],
)
def test_the_papers_networks_by_default(depth: int, bottleneck: bool, count: int, additions: int) -> None:
    model = on_meta(depth=depth, bottleneck=bottleneck)
    assert sum(parameter.numel() for parameter in model.parameters()) == count
    assert len(model.additions()) == len(model.branches()) == additions
    assert len(model.points()) == depth
    projections = [name for name, _ in model.named_parameters() if ".shortcut." in name]
    stages = (0, 18, 36) if depth == 164 else (0, 111, 222) if bottleneck else (18, 36)
    assert projections == [f"blocks.{index}.shortcut.weight" for index in stages]


@pytest.mark.parametrize(("depth", "bottleneck"), [(14, False), (20, True)])
def test_plain_and_option_a_have_the_same_tensors(depth: int, bottleneck: bool) -> None:
    plain, padded = (
        {
            name: tensor.shape
            for name, tensor in on_meta(depth=depth, bottleneck=bottleneck, shortcut=s).state_dict().items()
        }
        for s in ("none", "A")
    )
    assert plain == padded


@pytest.mark.parametrize(("depth", "bottleneck"), [(8, False), (11, True)])
def test_points_are_called_in_forward_order(depth: int, bottleneck: bool) -> None:
    model = preact_resnet(depth=depth, width=4, bottleneck=bottleneck)
    called: list[str] = []
    for point in model.points():
        model.get_submodule(point.output).register_forward_hook(lambda *_, name=point.output: called.append(name))
    model(torch.zeros(2, 3, 8, 8))
    assert called == [point.output for point in model.points()]
    assert called[-2:] == ["blocks.2", "head"]


@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize("bottleneck", [False, True])
@pytest.mark.parametrize("shortcut", ["none", "A", "A_pool", "B", "C"])
def test_forward_equals_the_naive_twin(shortcut: str, bottleneck: bool, training: bool) -> None:
    rng = np.random.default_rng(0)
    depth = 20 if bottleneck else 14
    model = preact_resnet(depth=depth, width=3, shortcut=shortcut, num_inputs=2, num_classes=4, bottleneck=bottleneck)
    model.double().train(training)
    state = {}
    for name, tensor in model.state_dict().items():
        value = rng.standard_normal(tensor.shape)
        state[name] = torch.from_numpy(np.abs(value) + 0.5 if name.endswith("running_var") else value).to(tensor.dtype)
    model.load_state_dict(state)
    x = rng.standard_normal((3, 2, 6, 6))
    measured = model(torch.from_numpy(x)).detach().numpy()
    arrays = {name: tensor.double().numpy() for name, tensor in state.items()}
    expected = forward_naive(x, arrays, shortcut=shortcut, bottleneck=bottleneck, training=training)
    np.testing.assert_allclose(measured, expected, rtol=1e-10, atol=1e-11)


def forward_naive(x: Array, state: Mapping[str, Array], *, shortcut: str, bottleneck: bool, training: bool) -> Array:
    """Two blocks a stage, from a stem of 3 channels."""

    def activated(h: Array, name: str) -> Array:
        return np.maximum(norm_naive(h, state, name, training), 0)

    h = conv_naive(x, state["stem.conv.weight"], 1)
    for index in range(6):
        name = f"blocks.{index}"
        stride = 2 if index in (2, 4) else 1
        num_out = 3 * (4 if bottleneck else 1) * 2 ** (index // 2)
        first = activated(h, f"{name}.bn1")
        out = conv_naive(first, state[f"{name}.conv1.weight"], stride)
        for layer in range(2, 4 if bottleneck else 3):
            out = conv_naive(activated(out, f"{name}.bn{layer}"), state[f"{name}.conv{layer}.weight"], 1)
        if shortcut == "C" or (shortcut == "B" and h.shape[1] != num_out):
            out = out + conv_naive(first, state[f"{name}.shortcut.weight"], stride)
        elif shortcut != "none":
            out = out + pad_naive(h, num_out, stride, pool=shortcut == "A_pool")
        h = out
    pooled: Array = activated(h, "last.bn").mean(axis=(2, 3))
    return pooled @ state["head.weight"].T + state["head.bias"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"depth": 165}, "depth 165 is not 6n.2. The nearest are 164 and 170"),
        ({"depth": 165, "bottleneck": True}, "depth 165 is not 9n.2. The nearest are 164 and 173"),
        ({"depth": 20, "shortcut": "b"}, "unknown shortcut 'b'. Did you mean 'B'"),
        ({"depth": 20, "width": 0}, "width: wanted 1 or more, got 0"),
    ],
)
def test_bad_arguments(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(UserError, match=message):
        on_meta(**arguments)
