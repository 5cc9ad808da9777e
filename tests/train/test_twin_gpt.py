"""The same transformer in both engines: equal bits at the start, equal logits, loss and gradients, equal training."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.train.test_twin import layers, only

torch = pytest.importorskip("torch")

from depthscope.data.dataset import IGNORED, Dataset, Split, make_dataset  # noqa: E402
from depthscope.lab import gradients  # noqa: E402
from depthscope.record.events import Ended, Started  # noqa: E402
from depthscope.study.expand import Task  # noqa: E402
from depthscope.study.run import RunSpec  # noqa: E402
from depthscope.train.build import Context  # noqa: E402
from depthscope.train.cost import cost  # noqa: E402
from depthscope.train.laboratory import form_of, params_of  # noqa: E402
from depthscope.train.memory import DataShape  # noqa: E402
from depthscope.train.network import make_network  # noqa: E402
from depthscope.train.objective import objective_of  # noqa: E402
from depthscope.train.start import run_task  # noqa: E402

MICRO: dict[str, Any] = {
    "family": "gpt",
    "depth": 1,
    "width": 16,
    "shortcut": "identity",
    "norm": "rms",
    "norm_options": {"scale": False},
    "activation": "relu",
    "init": "gpt2",
    "gain": 4.0,
    "model_options": {"tied": False, "bias": False, "norm_embedding": True, "norm_end": False},
    "data": "tests.train.test_twin_gpt:words",
    "optimizer": "adam",
    "optimizer_options": {"beta1": 0.85, "beta2": 0.99},
    "lr": 0.01,
    "schedule": "linear",
    "batch_size": 8,
    "steps": 30,
    "seed": 5,
    "precision": "float64",
}
GPT2 = {"norm": "layer", "norm_options": {}, "activation": "tanh", "model_options": {}, "depth": 2}
SPECS: dict[str, dict[str, Any]] = {
    "micro": {},
    "micro plain": {"shortcut": "none", "depth": 2},
    "gpt2": {**GPT2, "init": "depth_scaled", "gain": 1.0},
    "gpt2 plain": {**GPT2, "shortcut": "none", "init": "gaussian", "gain": 1.2},
    "post": {**GPT2, "model_options": {"placement": "post", "heads": 2}, "init": "orthogonal", "gain": 1.0},
    "rms": {"norm_options": {}, "model_options": {"norm_embedding": True}, "init": "gaussian", "gain": 1.0},
    "no norm": {
        "norm": "none",
        "norm_options": {},
        "model_options": {"tied": False, "bias": False},
        "init": "zero_projection",
    },
}


def words(seed: int, num: int = 37) -> Dataset:
    """Rows of 16 tokens as `names` has them, without its file."""
    del seed
    rng = np.random.default_rng(0)
    x, y = np.full((num, 16), 26), np.full((num, 16), IGNORED)
    for row, length in enumerate(rng.integers(2, 15, size=num)):
        letters = rng.integers(0, 26, size=length)
        x[row, 1 : length + 1], y[row, : length + 1] = letters, [*letters, 26]
    alphabet = (*map(chr, range(97, 123)), "")
    kept = num - 5
    return make_dataset(
        "names",
        Split(x[:kept], y[:kept]),
        test=Split(x[kept:], y[kept:]),
        num_classes=27,
        num_tokens=27,
        alphabet=alphabet,
        facts={},
    )


def spec_of(backend: str, **changes: Any) -> RunSpec:
    return RunSpec.model_validate({**MICRO, **changes, "backend": backend})


@pytest.mark.parametrize("name", SPECS)
def test_logits_loss_and_gradients(name: str) -> None:
    spec, data = spec_of("numpy", **SPECS[name]), words(0)
    form = form_of(spec, DataShape.of(data))
    params = params_of([spec], form)
    model, _ = make_network(spec_of("torch", **SPECS[name]), data, dtype=torch.float64)
    own = dict(model.named_parameters())
    assert own.keys() == params.keys()
    for tensor, value in own.items():
        assert value.detach().numpy().tobytes() == params[tensor][0].tobytes(), tensor
    # Away from the start, where biases and scales are alive too.
    rng = np.random.default_rng(1)
    for tensor, value in own.items():
        params[tensor] = params[tensor] + 0.1 * rng.normal(size=params[tensor].shape)
        value.data = torch.from_numpy(params[tensor][0])
    output = model(torch.from_numpy(data.train.x))
    loss = objective_of(data).loss(output, torch.from_numpy(data.train.y))
    torch.autograd.backward(loss)
    net, grads = gradients(form, params, data.train.x[None], data.train.y[None])
    logits = np.moveaxis(net.inputs[-1][0].reshape(27, *data.train.x.shape), 0, -1)
    np.testing.assert_allclose(logits, output.detach().numpy(), rtol=1e-12, atol=1e-12)
    for tensor, value in own.items():
        np.testing.assert_allclose(grads[tensor][0], value.grad.numpy(), rtol=1e-12, atol=1e-12, err_msg=tensor)


def run(backend: str, **changes: Any) -> list[Any]:
    return list(run_task(Task((spec_of(backend, **changes),)), Context()))


@pytest.mark.parametrize("name", SPECS)
def test_training(name: str) -> None:
    """30 steps over seven epochs, each with a smaller last batch."""
    changes = {"measures": ("layers", "samples"), **SPECS[name]}
    here, there = run("numpy", **changes), run("torch", **changes)
    started, twin = only(Started, here), only(Started, there)
    for fact in ("digests", "parameters", "num_steps", "chance_loss", "derived"):
        assert getattr(twin, fact) == getattr(started, fact), fact
    assert twin.layers == started.layers
    ended, twin = only(Ended, here), only(Ended, there)
    assert ended.outcome == twin.outcome
    assert ended.samples == twin.samples
    assert len(ended.samples) > 1
    for quantity, value in ended.summary.items():
        assert twin.summary[quantity] == pytest.approx(value, rel=1e-9), quantity
    wanted, found = layers(here), layers(there)
    assert found.keys() == wanted.keys()
    for key, value in wanted.items():
        assert found[key] == pytest.approx(value, rel=1e-9, abs=1e-13), key


@pytest.mark.parametrize("name", ["micro", "gpt2", "post"])
def test_both_count_the_same_cost(name: str) -> None:
    found = [cost(spec_of(backend, **SPECS[name])) for backend in ("numpy", "torch")]
    here, there = [(each.parameters, each.forward_flops, each.num_steps, each.examples) for each in found]
    assert here == there
