"""Shapes, names and draws of a stack."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from depthscope.core.errors import UserError
from depthscope.core.streams import stream
from depthscope.lab import Stack, init_params, parameter_shapes, units


def make(**changes: Any) -> Stack:
    return Stack(**{"depth": 4, "width": 16, "num_inputs": 2, "num_classes": 3, **changes})


def count(stack: Stack) -> int:
    return sum(int(np.prod(shape)) for shape in parameter_shapes(stack).values())


@pytest.mark.parametrize("depth", [2, 8, 48])
def test_the_three_arms_have_equal_parameters(depth: int) -> None:
    plain, identity, two = (make(depth=depth, shortcut=name) for name in ("none", "identity", "identity_2"))
    assert count(plain) == count(identity) == count(two) == 48 + 272 * depth + 51
    assert parameter_shapes(plain) == parameter_shapes(identity)
    assert len(units(two)) == depth // 2 + 2


@pytest.mark.parametrize("norm", ["none", "batch"])
def test_plain_and_identity_start_identical(norm: str) -> None:
    plain, identity = (init_params(make(shortcut=name, norm=norm), [0, 3]) for name in ("none", "identity"))
    assert list(plain) == list(identity)
    for name, value in plain.items():
        np.testing.assert_array_equal(value, identity[name])


def test_under_batch_norm_scale_and_shift_take_the_bias_s_place() -> None:
    shapes = parameter_shapes(make(depth=2, shortcut="identity_2", norm="batch"))
    assert list(shapes) == [
        "stem.weight",
        "stem.norm.weight",
        "stem.norm.bias",
        "blocks.0.linear1.weight",
        "blocks.0.linear1.norm.weight",
        "blocks.0.linear1.norm.bias",
        "blocks.0.linear2.weight",
        "blocks.0.linear2.bias",
        "head.weight",
        "head.bias",
    ]
    params = init_params(make(depth=2, norm="batch"), [0])
    assert (params["layers.1.norm.weight"] == 1).all()
    assert (params["layers.1.norm.bias"] == 0).all()


def test_a_draw_has_an_address_and_torch_s_layout() -> None:
    stack = make()
    params = init_params(stack, [5, 0], gain=0.72, stem_gain=0.1, head_gain=0.5)
    for name, gain, shape in (("stem", 0.1, (16, 2)), ("layers.2", 0.72, (16, 16)), ("head", 0.5, (3, 16))):
        expected = stream(5, "init", f"{name}.weight").normal(size=shape) / np.sqrt(shape[1]) * gain
        np.testing.assert_array_equal(params[f"{name}.weight"][0], expected)
    deeper = init_params(make(depth=9), [0], gain=0.72)
    np.testing.assert_array_equal(deeper["layers.2.weight"][0], params["layers.2.weight"][1])
    narrow = init_params(stack, [5], gain=0.72, dtype=np.float32)
    np.testing.assert_array_equal(narrow["layers.2.weight"][0], params["layers.2.weight"][0].astype(np.float32))


@pytest.mark.parametrize(("width", "num_inputs"), [(16, 2), (2, 5), (7, 7)])
def test_orthogonal_is_gain_times_orthonormal(width: int, num_inputs: int) -> None:
    params = init_params(make(width=width, num_inputs=num_inputs), [0, 1], init="orthogonal", gain=1.5)
    for name in ("stem.weight", "layers.0.weight", "head.weight"):
        for w in params[name] / 1.5:
            small = w.T @ w if w.shape[0] >= w.shape[1] else w @ w.T
            np.testing.assert_allclose(small, np.eye(len(small)), atol=1e-14)


def test_gaussian_spread() -> None:
    params = init_params(make(width=200, num_inputs=50), [0], gain=0.72)
    assert params["layers.1.weight"].std() * np.sqrt(200) == pytest.approx(0.72, rel=0.02)
    assert params["stem.weight"].std() * np.sqrt(50) == pytest.approx(0.72, rel=0.03)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"depth": 3, "shortcut": "identity_2"}, "nearest even depths are 2 and 4"),
        ({"shortcut": "identiti"}, "Did you mean 'identity'"),
        ({"activation": "rleu"}, "Did you mean 'relu'"),
        ({"norm": "layer"}, "unknown norm 'layer'"),
        ({"width": 0}, "width: wanted an integer of 1 or more, got 0"),
        ({"num_classes": 1}, "num_classes"),
    ],
)
def test_bad_stacks_name_the_fault(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(UserError, match=message):
        make(**changes)


def test_unknown_init() -> None:
    with pytest.raises(UserError, match="Did you mean 'gaussian'"):
        init_params(make(), [0], init="gausian")
