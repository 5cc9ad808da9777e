"""What the probe measures, against a naive twin; what it refuses; what it must show on deep networks."""

from __future__ import annotations

import copy
import math
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from depthscope.core.errors import UserError
from depthscope.core.profile import Addition, Layer, Point, Profile
from depthscope.probes.watch import Probe, profile

if TYPE_CHECKING:
    from tests.probes.conftest import Case

Make = Callable[..., "Case"]


def measured(case: Case, step: int = 0) -> Profile:
    return profile(
        case.model,
        case.loss_fn,
        case.inputs,
        case.targets,
        points=case.points,
        additions=case.additions,
        step=step,
    )


def profile_naive(case: Case) -> dict[tuple[int, str], float]:
    """A copy out of place, every h kept with its gradient, norms by NumPy over flat arrays."""
    model = copy.deepcopy(case.model).double().train()
    for module in model.modules():
        if isinstance(module, nn.ReLU):
            module.inplace = False
        if hasattr(module, "in_place"):
            module.in_place = False  # type: ignore[assignment]
    kept: dict[str, Tensor] = {}

    def keep(name: str) -> Callable[..., None]:
        def hook(_module: nn.Module, _inputs: object, out: Tensor) -> None:
            kept[name] = out
            if out.requires_grad:
                out.retain_grad()

        return hook

    for name, module in model.named_modules():
        module.register_forward_hook(keep(name))
    targets = case.targets.double() if case.targets.is_floating_point() else case.targets
    torch.autograd.backward(case.loss_fn(model(case.inputs.double()), targets))
    found: dict[tuple[int, str], float] = {}
    for index, point in enumerate(case.points):
        weight = model.get_parameter(point.weight)
        arrays = {"h": kept[point.output].detach(), "dh": kept[point.output].grad, "w": weight.detach()}
        for name, tensor in (*arrays.items(), ("dw", weight.grad)):
            if tensor is not None:
                flat = tensor.numpy().ravel()
                found[index, f"{name}_norm"] = math.sqrt(float(flat @ flat))
                found[index, f"{name}_mean_abs"] = float(np.abs(flat).mean())
        if weight.grad is not None:
            found[index, "dw_ratio"] = found[index, "dw_norm"] / found[index, "w_norm"]
        for each in case.additions:
            if each.layer == point.layer:
                pairs = zip(kept[each.branch].detach().numpy(), kept[each.skip].detach().numpy(), strict=True)
                ratios = [math.sqrt((f * f).sum()) / math.sqrt((x * x).sum()) for f, x in pairs]
                found[index, "f_over_x"] = math.fsum(ratios) / len(ratios)
    return {key: value for key, value in found.items() if key[1] not in ("w_mean_abs", "dw_mean_abs")}


def test_profile_equals_the_naive_twin(case: Case) -> None:
    expected = profile_naive(case)
    found = measured(case, step=3)
    assert {row.step for row in found.rows} == {3}
    values = {(row.layer, row.quantity): row.value for row in found.rows}
    assert len(values) == len(found.rows)
    assert values.keys() == expected.keys()
    for key, value in values.items():
        assert value == pytest.approx(expected[key], rel=1e-12, abs=1e-15), key


def test_layers_are_the_points_in_order(make_residual: Make) -> None:
    case = make_residual()
    layers = measured(case).layers
    assert [layer.name for layer in layers] == [point.layer for point in case.points]
    assert layers[1] == Layer(index=1, name="0.conv2", kind="conv", weight="0.conv2.weight", shape=(4, 5, 5))
    assert layers[-1].shape == (3,)


def test_a_frozen_weight_has_no_gradient_rows_but_its_h_has(make_perceptron: Make) -> None:
    found = measured(make_perceptron(frozen=(0, 4)))
    assert found.values("dw_norm", 0).keys() == found.values("dw_ratio", 0).keys() == {1, 3}
    assert found.values("w_norm", 0).keys() == found.values("dh_norm", 0).keys() == {0, 1, 2, 3}


def test_a_wholly_frozen_model_has_the_forward_quantities(make_perceptron: Make) -> None:
    case = make_perceptron()
    case.model.requires_grad_(False)
    assert Counter(row.quantity for row in measured(case).rows) == {"h_norm": 4, "h_mean_abs": 4, "w_norm": 4}


def test_f_over_x_is_0_where_the_last_gamma_is(make_cifar: Make) -> None:
    assert measured(make_cifar("A", zero_last_gamma=True)).values("f_over_x", 0) == {2: 0.0, 4: 0.0, 6: 0.0}
    assert min(measured(make_cifar("A")).values("f_over_x", 0).values()) > 0.3


def test_channels_last_measures_the_same(case: Case) -> None:
    probe = Probe(case.model, case.loss_fn, points=case.points, additions=case.additions, channels_last=True)
    found, expected = probe.measure(case.inputs, case.targets), measured(case)
    assert [(row.layer, row.quantity) for row in found.rows] == [(row.layer, row.quantity) for row in expected.rows]
    for row, other in zip(found.rows, expected.rows, strict=True):
        assert row.value == pytest.approx(other.value, rel=1e-11, abs=1e-14)


def test_a_kept_probe_follows_the_model(make_cifar: Make) -> None:
    case = make_cifar("B")
    probe = Probe(case.model, case.loss_fn, points=case.points, additions=case.additions)
    optimizer = torch.optim.SGD(case.model.parameters(), lr=0.1)
    first = probe.measure(case.inputs, case.targets)
    assert probe.measure(case.inputs, case.targets) == first
    for step in (1, 2):
        optimizer.zero_grad()
        torch.autograd.backward(case.loss_fn(case.model(case.inputs), case.targets))
        optimizer.step()
        found = probe.measure(case.inputs, case.targets, step=step)
        assert found == measured(case, step=step)
        assert found.values("w_norm", step) != first.values("w_norm", 0)
    case.model.get_parameter("head.weight").requires_grad_(False)
    assert 7 not in probe.measure(case.inputs, case.targets).values("dw_norm", 0)


def test_a_loss_on_another_scale_moves_gradients_alone_and_never_to_0(make_cifar: Make) -> None:
    case = make_cifar("A")
    base = measured(case)
    tiny = measured(replace(case, loss_fn=lambda out, target: F.cross_entropy(out, target) * 1e-30))
    for row, other in zip(base.rows, tiny.rows, strict=True):
        factor = 1e-30 if row.quantity.startswith("d") else 1
        assert other.value == pytest.approx(row.value * factor, rel=1e-12, abs=0)


def test_plain_batch_norm_stacks_explode_toward_the_input_at_step_0_and_residual_ones_less(make_cifar: Make) -> None:
    """Yang et al. 2019 (ORACLES 4); only the order is tested, as widths and boundaries change along the way."""
    growth = {}
    for shortcut in ("none", "A"):
        found = measured(make_cifar(shortcut, depth=32, batch=32)).values("dh_norm", 0)
        growth[shortcut] = found[0] / found[30]
    at_stages = measured(make_cifar("none", depth=32, batch=32)).values("dh_norm", 0)
    assert at_stages[0] > at_stages[10] > at_stages[20] > at_stages[30]
    assert growth["none"] > 20
    assert growth["none"] > 5 * growth["A"]


@pytest.mark.parametrize(
    "context",
    [torch.no_grad, torch.inference_mode, lambda: torch.autocast("cpu", dtype=torch.bfloat16)],
    ids=["no_grad", "inference_mode", "autocast"],
)
def test_the_callers_mode_does_not_matter(context: Callable[[], torch.no_grad], make_residual: Make) -> None:
    case = make_residual()
    expected = measured(case)
    probe = Probe(case.model, case.loss_fn, points=case.points, additions=case.additions)
    with context():
        assert measured(case) == expected
        assert probe.measure(case.inputs, case.targets) == expected
    assert probe.measure(case.inputs, case.targets) == expected


def test_non_finite_values_are_reported_as_they_are(make_perceptron: Make) -> None:
    case = make_perceptron()
    with torch.no_grad():
        case.model.get_parameter("4.weight").fill_(math.inf)
    norms = measured(case).values("h_norm", 0)
    assert math.isfinite(norms[1])
    assert not math.isfinite(norms[2])


class Twice(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear, self.unused = nn.Linear(2, 2), nn.Linear(2, 2)
        self.pair = nn.LSTM(2, 2)

    def forward(self, x: Tensor) -> Tensor:
        out: Tensor = self.linear(self.linear(x)) + self.pair(x)[0]
        return out


@pytest.mark.parametrize(
    ("layer", "output", "message"),
    [
        ("linear", "linear", "'linear' was called more than once"),
        ("unused", "unused", "'unused' was not called"),
        ("linear", "pair", "'pair' gave tuple, wanted a tensor"),
        ("linear", "linaer", "unknown module 'linaer'. Did you mean 'linear'"),
        ("lin", "linear", "unknown weight 'lin.weight'"),
    ],
)
def test_what_cannot_be_watched_is_refused_by_name(
    layer: str, output: str, message: str, make_perceptron: Make
) -> None:
    point = Point(layer=layer, kind="linear", weight=f"{layer}.weight", output=output)
    case = replace(make_perceptron(), model=Twice(), inputs=torch.ones(3, 2), points=(point,))
    with pytest.raises(UserError, match=message):
        measured(replace(case, targets=torch.ones(3, 2)))


def test_other_bad_input(make_residual: Make) -> None:
    case = make_residual()
    lost = Addition(block="0", branch="0.bn2", skip="0.skip", layer="0.conv3")
    with pytest.raises(UserError, match=r"unknown layer of an addition '0.conv3'"):
        measured(replace(case, additions=(lost,)))
    with pytest.raises(UserError, match="holds no tensor"):
        measured(replace(case, model=nn.ReLU()))
    with pytest.raises(UserError, match=r"one number .* got shape \(6,\)"):
        measured(replace(case, loss_fn=lambda out, target: F.cross_entropy(out, target, reduction="none")))
    with pytest.raises(UserError, match="requires_grad False"):
        measured(replace(case, loss_fn=lambda out, target: F.cross_entropy(out.detach(), target)))
    probe = Probe(case.model, case.loss_fn, points=case.points)
    case.model.append(nn.Linear(3, 3))  # type: ignore[operator]
    with pytest.raises(UserError, match=r"6\.bias of the model changed"):
        probe.measure(case.inputs, case.targets)
