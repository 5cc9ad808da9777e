"""The vanilla RNN by hand: against the complex step, torch's cell, its own formulas, and mean-field theory."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from depthscope.analysis.theory import chi
from depthscope.core.errors import UserError
from depthscope.core.streams import stream
from depthscope.lab.recurrent import (
    Recurrent,
    backpropagated,
    forward,
    gradient_check,
    init_params,
    parameter_shapes,
)

Array = NDArray[Any]
RESIDUAL = pytest.mark.parametrize("residual", [False, True])


def drawn(seeds: int, examples: int, steps: int, inputs: int = 2, outputs: int = 1) -> tuple[Array, Array]:
    rng = stream(0, "probe", "sequences")
    return rng.normal(size=(seeds, examples, steps, inputs)), rng.normal(size=(seeds, examples, outputs))


def everywhere(form: Recurrent, seeds: int) -> dict[str, Array]:
    """Parameters of which none is 0, the biases neither."""
    rng = stream(1, "probe", "parameters")
    shapes = parameter_shapes(form)
    return {name: rng.normal(size=(seeds, *shape)) / np.sqrt(form.width) for name, shape in shapes.items()}


@RESIDUAL
@pytest.mark.parametrize("steps", [1, 6, 40])
def test_gradient_check(steps: int, residual: bool) -> None:
    """Every entry of every parameter by the complex step; the median is at rounding."""
    form = Recurrent(num_inputs=3, width=7, num_outputs=2, residual=residual)
    x, y = drawn(1, 5, steps, 3, 2)
    errors = gradient_check(form, everywhere(form, 1), x, y, seed=0, entries=None)
    assert {name: len(each) for name, each in errors.items()} == {
        name: int(np.prod(shape)) for name, shape in parameter_shapes(form).items()
    }
    every = np.concatenate(list(errors.values()))
    assert np.median(every) < 1e-14
    assert every.max() < 1e-9


@RESIDUAL
def test_one_example_step_by_step(residual: bool) -> None:
    """h_t as written; and dL/dh_t is what a shift of h_t does to the loss."""
    form = Recurrent(num_inputs=2, width=4, num_outputs=1, residual=residual)
    params, (x, y) = everywhere(form, 1), drawn(1, 1, 5)
    own = {name: value[0] for name, value in params.items()}
    found = backpropagated(form, params, x, y)

    def loss(shifted: int, by: Array) -> float:
        h = np.zeros(4)
        for t in range(5):
            f = np.tanh(own["recurrent.weight"] @ h + own["stem.weight"] @ x[0, 0, t] + own["biases.state"])
            h = (h + f if residual else f) + (by if t == shifted else 0)
            if shifted < 0:
                np.testing.assert_allclose(found.h_TSWN[t, 0, :, 0], h, rtol=1e-13)
        return float(np.square(own["head.weight"] @ h + own["head.bias"] - y[0, 0]).mean())

    assert found.loss_S[0] == pytest.approx(loss(-1, np.zeros(4)), rel=1e-13)
    for t in range(5):
        slope = [(loss(t, 1e-6 * unit) - loss(t, -1e-6 * unit)) / 2e-6 for unit in np.eye(4)]
        np.testing.assert_allclose(found.dh_TSWN[t, 0, :, 0], slope, rtol=1e-6, atol=1e-9)


@RESIDUAL
def test_the_torch_twin(residual: bool) -> None:
    """Output, |dL/dh_t| at every step, and all gradients, to 1e-12; a seed alone is a seed in a group."""
    torch = pytest.importorskip("torch")
    from depthscope.models.recurrent import recurrent

    form = Recurrent(num_inputs=3, width=16, num_outputs=2, residual=residual)
    params, (x, y) = everywhere(form, 3), drawn(3, 8, 30, 3, 2)
    found = backpropagated(form, params, x, y)
    for seed in range(3):
        model = recurrent(
            depth=30, width=16, cell="residual_rnn" if residual else "rnn", num_inputs=3, num_classes=2
        ).double()
        model.load_state_dict({name: torch.tensor(value[seed]) for name, value in params.items()})
        kept: list[Any] = []

        def keep(_module: object, _inputs: object, h: Any, kept: list[Any] = kept) -> None:
            h.retain_grad()
            kept.append(h)

        for time in model.times:
            time.register_forward_hook(keep)
        loss = torch.nn.functional.mse_loss(model(torch.tensor(x[seed])), torch.tensor(y[seed]))
        loss.backward()
        assert found.loss_S[seed] == pytest.approx(loss.item(), rel=1e-12)
        for name, parameter in model.named_parameters():
            assert parameter.grad is not None
            _close(found.grads[name][seed], parameter.grad.numpy())
        for t, h in enumerate(kept):
            _close(found.h_TSWN[t, seed].T, h.detach().numpy())
            _close(found.dh_TSWN[t, seed].T, h.grad.numpy())
        one = {name: value[seed : seed + 1] for name, value in params.items()}
        alone = backpropagated(form, one, x[seed : seed + 1], y[seed : seed + 1])
        np.testing.assert_array_equal(alone.dh_norm()[:, 0], found.dh_norm()[:, seed])


def _close(found: Array, wanted: Array) -> None:
    np.testing.assert_allclose(found, wanted, rtol=0, atol=1e-12 * max(np.abs(wanted).max(), 1e-300))


@pytest.mark.parametrize("init", ["gaussian", "orthogonal"])
def test_the_torch_twin_starts_from_the_same_draw(init: Any) -> None:
    torch = pytest.importorskip("torch")
    from depthscope.models.init import build
    from depthscope.models.recurrent import recurrent

    params = init_params(Recurrent(num_inputs=2, width=9, num_outputs=1), [4], init=init, gain=0.7, stem_gain=2.0)
    model, _ = build(
        lambda: recurrent(depth=3, width=9, cell="rnn"),
        seed=4,
        init=init,
        gain=0.7,
        gains={"stem.weight": 2.0},
        dtype=torch.float64,
    )
    assert dict(model.named_parameters()).keys() == params.keys()
    for name, parameter in model.named_parameters():
        np.testing.assert_array_equal(parameter.detach().numpy(), params[name][0])


@pytest.mark.parametrize(("gain", "stem_gain"), [(0.6, 0.3), (0.9, 0.1), (0.9, 1.0), (1.2, 0.5), (1.5, 1.0)])
def test_the_factor_of_a_step_against_theory(gain: float, stem_gain: float) -> None:
    """sqrt(chi) with the inputs' variance in the bias' place: |dL/dh_t| over 40 steps, median of 20 seeds."""
    width, steps, seeds = 128, 41, range(20)
    form = Recurrent(num_inputs=8, width=width, num_outputs=1)
    x, y = drawn(len(seeds), 4, steps, 8)
    found = backpropagated(form, init_params(form, seeds, gain=gain, stem_gain=stem_gain), x, y)
    theory = np.sqrt(chi("tanh", gain**2, stem_gain**2))
    assert np.median(found.factor()) == pytest.approx(theory, rel=0.03)


def test_a_plus_sign_along_time_keeps_the_gradient() -> None:
    """At 100 steps and gain .7: the plain one's is gone, the residual one's is not."""
    x, y = drawn(5, 8, 100)
    first_over_last = {}
    for residual in (False, True):
        form = Recurrent(num_inputs=2, width=32, num_outputs=1, residual=residual)
        norm_TS = backpropagated(form, init_params(form, range(5), gain=0.7), x, y).dh_norm()
        first_over_last[residual] = norm_TS[0] / norm_TS[-1]
    assert (first_over_last[False] < 1e-15).all()
    assert (first_over_last[True] > 1).all()


def test_without_a_way_through_u_the_residual_carries_the_error_as_it_is() -> None:
    form = Recurrent(num_inputs=2, width=4, num_outputs=1, residual=True)
    params = everywhere(form, 2)
    params["recurrent.weight"][:] = 0
    norm_TS = backpropagated(form, params, *drawn(2, 3, 50)).dh_norm()
    np.testing.assert_array_equal(norm_TS, np.broadcast_to(norm_TS[-1], norm_TS.shape))


def test_what_no_network_has() -> None:
    with pytest.raises(UserError, match="width: wanted an integer of 1 or more, got 0"):
        Recurrent(num_inputs=2, width=0, num_outputs=1)
    with pytest.raises(UserError, match="unknown init"):
        init_params(Recurrent(num_inputs=2, width=2, num_outputs=1), [0], init="xavier")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("x", "y", "message"),
    [
        ((1, 5, 6, 3), (1, 5, 1), r"x: wanted shape \[S, N, T, 2\], got \[1, 5, 6, 3\]"),
        ((1, 5, 0, 2), (1, 5, 1), r"x: wanted shape \[S, N, T, 2\], got \[1, 5, 0, 2\]"),
        ((5, 6, 2), (1, 5, 1), r"x: wanted shape \[S, N, T, 2\], got \[5, 6, 2\]"),
        ((3, 5, 6, 2), (1, 5, 1), "x: wanted 1 or 2 rows, one a seed, got 3"),
        ((1, 5, 6, 2), (1, 5), r"y: wanted shape \[S, 5, 1\], got \[1, 5\]"),
        ((1, 5, 6, 2), (1, 1, 1), r"y: wanted shape \[S, 5, 1\], got \[1, 1, 1\]"),
        ((1, 5, 6, 2), (3, 5, 1), "y: wanted 1 or 2 rows, one a seed, got 3"),
    ],
)
def test_data_of_another_shape(x: tuple[int, ...], y: tuple[int, ...], message: str) -> None:
    form = Recurrent(num_inputs=2, width=4, num_outputs=1)
    with pytest.raises(UserError, match=message):
        backpropagated(form, everywhere(form, 2), np.ones(x), np.ones(y))


def test_one_step_has_no_factor() -> None:
    form = Recurrent(num_inputs=2, width=4, num_outputs=1)
    found = backpropagated(form, everywhere(form, 1), *drawn(1, 3, 1))
    with pytest.raises(UserError, match="factor: wanted sequences of 2 steps or more, got 1"):
        found.factor()


def test_complex_parameters_give_complex_outputs() -> None:
    form = Recurrent(num_inputs=2, width=4, num_outputs=1)
    params = {name: value.astype(np.complex128) for name, value in everywhere(form, 1).items()}
    assert forward(form, params, drawn(1, 2, 3)[0]).output_SKN.dtype == np.complex128
