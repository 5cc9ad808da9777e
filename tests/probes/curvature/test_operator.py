"""Products with a Hessian against dense ones of autograd, and against formulas."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from tests.probes.curvature.nets import NETS, built, dense_twin
from torch import Tensor, nn

from depthscope.core.errors import UserError
from depthscope.probes.curvature import Hessian, dense, extremes, trace


@pytest.mark.parametrize("name", NETS)
def test_the_dense_hessian_is_that_of_autograd(name: str) -> None:
    model, inputs, targets, loss_fn = built(name)
    found = dense(Hessian(model, [(inputs, targets)], loss_fn))
    assert np.abs(found - dense_twin(model, inputs, targets, loss_fn)).max() < 1e-12
    assert np.abs(found).max() > 1e-2


@pytest.mark.parametrize("name", NETS)
def test_eight_and_two_samples_are_ten(name: str) -> None:
    model, inputs, targets, loss_fn = built(name)
    v = np.random.default_rng(0).standard_normal
    whole = Hessian(model, [(inputs, targets)], loss_fn)
    split = Hessian(model, [(inputs[:8], targets[:8]), (inputs[8:], targets[8:])], loss_fn)
    u = v(whole.size)
    assert split.num_examples == 10
    assert np.abs(split.matvec(u) - whole.matvec(u)).max() < 1e-12
    assert np.abs(split.gradient() - whole.gradient()).max() < 1e-12
    assert abs(split.loss() - whole.loss()) < 1e-12


def test_batch_norm_by_batch_statistics_is_that_of_autograd_and_depends_on_the_batches() -> None:
    model, inputs, targets, loss_fn = built("convolution")
    hessian = Hessian(model, [(inputs, targets)], loss_fn, train=True)
    found = dense(hessian)
    assert np.abs(found - dense_twin(model, inputs, targets, loss_fn, train=True)).max() < 1e-12
    assert np.abs(found - dense_twin(model, inputs, targets, loss_fn)).max() > 1e-2
    assert not hessian.draws
    halves = [(inputs[:5], targets[:5]), (inputs[5:], targets[5:])]
    mean = sum(dense_twin(model, x, y, loss_fn, train=True) for x, y in halves) / 2
    assert np.abs(dense(Hessian(model, halves, loss_fn, train=True)) - mean).max() < 1e-12


@pytest.mark.parametrize("name", ["mlp", "multihead", "recurrent"])
def test_dropout_is_off_in_train_mode_too(name: str) -> None:
    model, inputs, targets, loss_fn = built(name)
    hessian = Hessian(model, [(inputs, targets)], loss_fn, train=True)
    assert np.abs(dense(hessian) - dense_twin(model, inputs, targets, loss_fn)).max() < 1e-12
    assert not hessian.draws


def test_of_named_parameters_it_is_that_part_of_the_whole() -> None:
    model, inputs, targets, loss_fn = built("convolution")
    model.requires_grad_(False)
    names = ["4.weight", "0.bias"]
    found = dense(Hessian(model, [(inputs, targets)], loss_fn, parameters=names))
    whole = dense_twin(model, inputs, targets, loss_fn)
    at, starts = 0, {}
    for name, each in model.named_parameters():
        starts[name] = np.arange(at, at + each.numel())
        at += each.numel()
    rows = np.concatenate([starts[name] for name in names])
    assert np.abs(found - whole[np.ix_(rows, rows)]).max() < 1e-12
    assert not any(each.requires_grad for each in model.parameters())


def test_frozen_parameters_are_left_out() -> None:
    model, inputs, targets, loss_fn = built("mlp")
    model.get_submodule("0").requires_grad_(False)
    hessian = Hessian(model, [(inputs, targets)], loss_fn)
    assert hessian.names == ("3.weight", "3.bias")
    twin = dense_twin(model, inputs, targets, loss_fn, names=hessian.names)
    assert np.abs(dense(hessian) - twin).max() < 1e-12


def test_a_shared_parameter_counts_once() -> None:
    model, inputs, targets, loss_fn = built("tied")
    hessian = Hessian(model, [(inputs, targets)], loss_fn)
    assert hessian.names == ("embedding.weight", "inner.weight", "inner.bias")
    assert hessian.size == 15 + 9 + 3


def test_float32_is_near_and_keeps_its_dtype() -> None:
    model, inputs, targets, loss_fn = built("convolution")
    hessian = Hessian(model, [(inputs, targets)], loss_fn, dtype=torch.float32)
    found, twin = dense(hessian), dense_twin(model, inputs, targets, loss_fn)
    assert 1e-9 < np.abs(found - twin).max() < 1e-5
    assert torch.get_default_dtype() is torch.float32


@pytest.mark.parametrize("outputs", [1, 3])
def test_linear_regression(outputs: int) -> None:
    """The mean of torch is over N K squared errors: H = 2/(N K) X^T X for each output."""
    torch.manual_seed(0)
    x, y = torch.randn(12, 4), torch.randn(12, outputs)
    linear = nn.Linear(4, outputs, bias=False)
    block = 2 / (12 * outputs) * (x.double().T @ x.double()).numpy()
    found = dense(Hessian(linear, [(x[:7], y[:7]), (x[7:], y[7:])], nn.MSELoss()))
    assert np.abs(found - np.kron(np.eye(outputs), block)).max() < 1e-12


@pytest.mark.parametrize("bias", [False, True])
def test_softmax_regression_at_zero(bias: bool) -> None:
    """At W = 0, C classes: lambda_max(X^T X / N) / C, trace (1 - 1/C) mean |x|^2, d zeros (of d + 1 with a bias)."""
    torch.manual_seed(0)
    num_classes, d = 4, 5
    x, y = torch.randn(30, d), torch.randint(num_classes, (30,))
    linear = nn.Linear(d, num_classes, bias=bias)
    for each in linear.parameters():
        nn.init.zeros_(each)
    seen = np.hstack([x.double().numpy(), np.ones((30, 1))]) if bias else x.double().numpy()
    hessian = Hessian(linear, [(x, y)], F.cross_entropy)
    ends = extremes(hessian)
    assert ends.largest == pytest.approx(np.linalg.eigvalsh(seen.T @ seen / 30)[-1] / num_classes, rel=1e-12)
    assert trace(hessian).value == pytest.approx((1 - 1 / num_classes) * (seen**2).sum(1).mean(), rel=1e-12)
    values = np.linalg.eigvalsh(dense(hessian))
    assert (np.abs(values) < 1e-12).sum() == d + bias
    assert abs(ends.smallest) < 1e-12


class Product(nn.Module):
    def __init__(self, a: float, b: float) -> None:
        super().__init__()
        self.a, self.b = (nn.Parameter(torch.tensor(each, dtype=torch.float64)) for each in (a, b))

    def forward(self, x: Tensor) -> Tensor:
        return self.a * self.b * x


def half_square(output: Tensor, y: Tensor) -> Tensor:
    return (output - y).square().mean() / 2


def test_a_product_of_two_numbers() -> None:
    """L = .5 (ab - y)^2: [[b^2, 2ab - y], [2ab - y, a^2]]."""
    one = torch.ones(1, dtype=torch.float64)
    matrix = dense(Hessian(Product(0.3, -0.7), [(one, 2 * one)], half_square))
    assert np.abs(matrix - [[0.49, -2.42], [-2.42, 0.09]]).max() < 1e-15
    ends = extremes(Hessian(Product(0.1, 0.1), [(one, 2 * one)], half_square))
    assert (ends.smallest, ends.largest) == pytest.approx((-1.97, 1.99), abs=1e-12)


def test_unused_parameters_have_zero_rows_and_an_affine_loss_none_else() -> None:
    model, inputs, targets, loss_fn = built("unused")
    found = dense(Hessian(model, [(inputs, targets)], loss_fn))
    assert not found[:6].any()
    assert not found[:, :6].any()
    idle = Hessian(model, [(inputs, targets)], loss_fn, parameters=["idle.weight"])
    assert not dense(idle).any()

    def affine(output: Tensor, _targets: object) -> Tensor:
        return output.mean()

    for net in (nn.Linear(3, 2), nn.Linear(100, 2), nn.Sequential(nn.Linear(1, 1, bias=False))):
        hessian = Hessian(net, [torch.randn(4, next(net.parameters()).shape[1])], affine)
        ends = extremes(hessian)
        assert (ends.largest, ends.smallest, ends.residual_largest, ends.residual_smallest) == (0, 0, 0, 0)
        assert trace(hessian).value == 0


def test_other_draws_than_dropout_are_the_same_in_each_pass_and_told() -> None:
    class Noisy(nn.Module):
        def __init__(self, draw: Callable[[Tensor], Tensor]) -> None:
            super().__init__()
            self.linear, self.draw = nn.Linear(3, 2), draw

        def forward(self, x: Tensor) -> Tensor:
            return torch.tanh(self.linear(self.draw(x)))

    x, y = torch.randn(6, 3), torch.randn(6, 2)
    draws: list[Callable[[Tensor], Tensor]] = [
        lambda x: F.dropout(x, 0.5),
        lambda x: x * (1 + np.random.rand()),  # noqa: NPY002
    ]
    for draw in draws:
        hessian = Hessian(Noisy(draw), [(x[:3], y[:3]), (x[3:], y[3:])], F.mse_loss)
        matrix = dense(hessian)
        assert np.abs(matrix - matrix.T).max() < 1e-12
        assert hessian.draws
        loss = hessian.loss()
        torch.rand(1)
        np.random.rand()  # noqa: NPY002
        assert hessian.loss() == loss  # wherever the program's own generators stand
    quiet = Hessian(Noisy(lambda x: x), [(x, y)], F.mse_loss)
    quiet.loss()
    assert not quiet.draws


def test_weights_that_a_hook_of_torch_makes_are_made_in_each_pass() -> None:
    torch.manual_seed(0)
    net = nn.Sequential(nn.utils.spectral_norm(nn.Linear(3, 3)), nn.Tanh(), nn.Linear(3, 1)).eval()
    x, y = torch.randn(8, 3), torch.randn(8, 1)
    with torch.no_grad():
        net(x)
    found = dense(Hessian(net, [(x, y)], F.mse_loss))
    assert np.abs(found - dense_twin(net, x, y, F.mse_loss)).max() < 1e-12
    assert np.abs(found[3:12]).max() > 1e-2


def test_the_models_own_loss_and_a_mapping() -> None:
    class Own(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.linear = nn.Linear(3, 2)

        def forward(self, x: Tensor, labels: Tensor) -> dict[str, Tensor]:
            return {"loss": F.cross_entropy(self.linear(x), labels)}

    own, x, labels = Own(), torch.randn(6, 3), torch.tensor([0, 1] * 3)
    found = dense(Hessian(own, [{"x": x, "labels": labels}]))
    assert np.abs(found - dense(Hessian(own.linear, [(x, labels)], nn.CrossEntropyLoss()))).max() < 1e-15


def test_a_losss_own_tensors_follow_the_dtype() -> None:
    linear, x, y = nn.Linear(3, 2), torch.randn(6, 3), torch.tensor([0, 1] * 3)
    loss_fn = nn.CrossEntropyLoss(weight=torch.tensor([1.0, 3.0]))
    twin = dense_twin(linear, x, y, lambda out, y: F.cross_entropy(out, y, weight=torch.tensor([1.0, 3.0]).double()))
    assert np.abs(dense(Hessian(linear, [(x, y)], loss_fn)) - twin).max() < 1e-12
    assert loss_fn.weight is not None
    assert loss_fn.weight.dtype is torch.float32


class Whole(nn.Module):
    def __init__(self, parameter: nn.Parameter) -> None:
        super().__init__()
        self.weight, self.linear = parameter, nn.Linear(2, 1)

    def forward(self, x: Tensor) -> Tensor:
        out: Tensor = self.linear(x) + self.weight.real.sum()
        return out


X, Y = torch.ones(4, 2), torch.zeros(4, 1)
COMPLEX = nn.Parameter(torch.ones(1, dtype=torch.complex64))
COUNTS = nn.Parameter(torch.ones(1, dtype=torch.int64), requires_grad=False)


@pytest.mark.parametrize(
    ("model", "batches", "loss_fn", "options", "told"),
    [
        (Whole(COMPLEX), [(X, Y)], F.mse_loss, {}, "weight is complex"),
        (Whole(COUNTS), [(X, Y)], F.mse_loss, {"parameters": ["weight"]}, "no number of floating point"),
        (nn.Linear(2, 1).requires_grad_(False), [(X, Y)], F.mse_loss, {}, "no parameter is trainable"),
        (nn.Linear(2, 1), [(X, Y)], F.mse_loss, {"parameters": ["wieght"]}, "Did you mean 'weight'"),
        (nn.Linear(2, 1), [], F.mse_loss, {}, "wanted one or more"),
        (nn.Linear(2, 1), ["x"], F.mse_loss, {}, "curvature: batch: wanted"),
        (nn.Linear(2, 1), [(X, Y)], nn.MSELoss(reduction="sum"), {}, "wanted a mean"),
        (nn.Linear(2, 1), [(X, Y)], F.mse_loss, {"dtype": torch.bfloat16}, "wanted torch.float64 or torch.float32"),
        (nn.Linear(3, 1), [(X, Y)], F.mse_loss, {}, "the model raised RuntimeError"),
        (nn.Linear(2, 1), [(X, Y)], lambda out, y: out - y, {}, r"wanted a tensor of one number.*shape \[4, 1\]"),
        (nn.Linear(2, 1), [(X, Y)], lambda out, y: out.detach().mean(), {}, "does not depend on the model's"),
        (nn.Linear(2, 1), [(X, Y)], lambda out, y: 1 / 0, {}, "loss_fn raised ZeroDivisionError"),
        (nn.Linear(2, 1), [(X, Y)], None, {}, "give loss_fn"),
    ],
)
def test_bad_input_is_told_in_one_line(
    model: nn.Module, batches: list[object], loss_fn: Any, options: dict[str, Any], told: str
) -> None:
    with pytest.raises(UserError, match=told) as caught:
        trace(Hessian(model, batches, loss_fn, **options))
    assert "\n" not in str(caught.value)


def test_frozen_complex_and_integer_parameters_are_no_hindrance() -> None:
    for parameter in (nn.Parameter(1j * torch.ones(1), requires_grad=False), COUNTS):
        hessian = Hessian(Whole(parameter), [(X, Y)], F.mse_loss)
        assert hessian.names == ("linear.weight", "linear.bias")
        assert trace(hessian).value == pytest.approx(6)


def test_a_vector_of_another_length_is_refused() -> None:
    with pytest.raises(UserError, match="wanted a vector of 3 entries"):
        Hessian(nn.Linear(2, 1), [(X, Y)], F.mse_loss).matvec(np.ones(4))


def test_scipys_operator() -> None:
    model, inputs, targets, loss_fn = built("mlp")
    hessian = Hessian(model, [(inputs, targets)], loss_fn)
    operator, v = hessian.linear_operator(), np.arange(hessian.size, dtype=np.float64)
    assert (operator @ v).tolist() == hessian.matvec(v).tolist() == (operator.T @ v).tolist()
