"""`depthscope.curvature`: right values from whatever data a caller has, shown, and refused in one line."""

from __future__ import annotations

import json
import math
from typing import Any

import numpy as np
import pytest

import depthscope
from depthscope.core.errors import UserError

torch = pytest.importorskip("torch")
nn = torch.nn
DataLoader, TensorDataset = torch.utils.data.DataLoader, torch.utils.data.TensorDataset

X = torch.randn(30, 3, generator=torch.Generator().manual_seed(0))
Y = torch.randn(30, 1, generator=torch.Generator().manual_seed(1))


def linear() -> Any:
    torch.manual_seed(0)
    return nn.Linear(3, 1, bias=False)


def test_linear_regression_through_every_form_of_data() -> None:
    """H = 2/N X^T X, of the first 25 examples."""
    values = np.linalg.eigvalsh((2 / 25 * X[:25].T.double() @ X[:25].double()).numpy())
    loader = DataLoader(TensorDataset(X, Y), batch_size=7)
    once = iter([(X[:20], Y[:20]), (X[20:], Y[20:])])
    for data in ((X, Y), (X.numpy(), Y.numpy()), TensorDataset(X, Y), loader, once):
        found = depthscope.curvature(linear(), data, nn.functional.mse_loss, examples=25, batch_size=8)
        assert (found.smallest, found.largest) == pytest.approx((values[0], values[-1]), rel=1e-12)
        assert found.trace is not None
        assert found.trace.value == pytest.approx(values.sum(), rel=1e-12)
        # Two products see that H is symmetric.
        assert (found.num_examples, found.num_parameters, found.num_products) == (25, 3, 8)


def test_fewer_examples_than_asked_for_are_all() -> None:
    found = depthscope.curvature(linear(), (X, Y), "mse", what="density")
    assert found.num_examples == 30
    assert math.isnan(found.largest)
    assert found.density is not None
    assert found.density.mean == pytest.approx(2 / 30 * float(X.double().square().sum()) / 3)


def test_it_shows_itself() -> None:
    net = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.Tanh(), nn.Dropout(0.5), nn.Linear(4, 1))
    found = depthscope.curvature(net, (X, Y), "mse", what=("extremes", "trace", "density"), norm="batch", samples=10)
    text = str(found)
    assert text.startswith("Sequential: curvature of the loss, 29 parameters, 30 examples\n")
    assert "residual |Hv - lambda v|" in text
    assert "share below -1% of the largest" in text
    assert repr(found) == f"<Curvature of {text.splitlines()[0]}>"
    assert "Batch norm: by each batch's own statistics" in text
    assert "Dropout: off." in text
    frame = found.to_pandas().set_index("quantity")
    assert frame.loc["largest", "value"] == found.largest
    assert frame.loc["largest", "kind"] == "residual"
    assert found.trace is not None
    assert frame.loc["trace", "uncertainty"] == found.trace.standard_error > 0
    assert 0 <= frame.loc["share_below", "value"] < 1
    document = json.loads(found.to_json())
    assert document["extremes"]["largest"] == found.largest
    assert set(document["density"]) == {"values", "weights", "num_products", "exact"}
    assert document["model"] == "Sequential"
    assert net.training


def test_the_fraction_that_is_negative_is_that_of_the_spectrum() -> None:
    class Saddle(nn.Module):  # type: ignore[misc,name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.w = nn.Parameter(torch.ones(4))

        def forward(self, x: Any) -> Any:
            return {"loss": (self.w.square() * torch.tensor([-3.0, 1.0, 0.0, 1.0])).sum() / 2 + 0 * x.sum()}

    found = depthscope.curvature(Saddle(), torch.ones(2, 1), what=("extremes", "trace", "density"))
    rows = {name: value for name, value, _, _ in found.rows()}
    assert (rows["largest"], rows["smallest"], rows["trace"]) == pytest.approx((1, -3, -1))
    assert (rows["share_below"], rows["share_near_zero"]) == (0.25, 0.25)


def test_a_loss_that_is_not_finite_has_no_curvature_and_says_so() -> None:
    net = linear()
    nn.init.constant_(net.weight, math.inf)
    found = depthscope.curvature(net, (X, Y), "mse", what=("extremes", "trace", "density"))
    assert math.isnan(found.largest)
    assert found.density is None
    assert found.trace is not None
    assert math.isnan(found.trace.value)
    assert "there is no curvature here" in str(found)
    assert json.loads(found.to_json())["extremes"]["largest"] == "nan"


def test_random_draws_are_said() -> None:
    class Noisy(nn.Linear):  # type: ignore[misc,name-defined]
        def forward(self, x: Any) -> Any:
            return super().forward(nn.functional.dropout(x, 0.5))

    assert "always the same here" in str(depthscope.curvature(Noisy(3, 1), (X, Y), "mse"))


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"what": ["extrems"]}, "Did you mean 'extremes'"),
        ({"what": []}, "wanted one or more of extremes, trace, density"),
        ({"examples": 0}, "examples: wanted 1 or more"),
        ({"norm": "train"}, "Known: batch, eval"),
        ({"precision": "bfloat16"}, "Known: float32, float64"),
        ({"tol": 0.0}, "tol: wanted"),
        ({"samples": 1}, "samples: wanted 2"),
        ({"data": None}, "no data"),
        ({"data": (X[:0], Y[:0])}, "curvature: the data hold none"),
        ({"data": 3}, "curvature: data: wanted"),
        ({"model": 3}, "wanted a torch.nn.Module or package.module:factory"),
        ({"model": "no_such_module_here:net"}, "can be imported"),
        ({"loss_fn": 3}, "loss_fn: wanted a function"),
        ({"loss_fn": "msee"}, "Did you mean 'mse'"),
        ({"data": (X, Y[:, 0])}, "^the loss mse: the output has shape"),
        ({"device": "cpu"}, "measured where it lies"),
    ],
)
def test_bad_input_is_one_line(options: dict[str, Any], told: str) -> None:
    given: dict[str, Any] = {"model": linear(), "data": (X, Y), "loss_fn": "mse", **options}
    with pytest.raises(UserError, match=told) as caught:
        depthscope.curvature(**given)
    assert "\n" not in str(caught.value)
