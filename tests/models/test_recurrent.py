"""Recurrent cells against PyTorch's own with the same weights, and what flows back through the state they carry."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from depthscope.core.draws import gaussian, orthogonal
from depthscope.core.errors import UserError
from depthscope.core.streams import stream
from depthscope.models.init import build
from depthscope.models.recurrent import ADDITIVE, GATES, Recurrent, recurrent
from depthscope.probes.lesion import lesions
from depthscope.probes.watch import profile

CELLS = tuple(GATES)
STEPS, WIDTH, INPUTS = 7, 5, 3
TORCH_GATES = {"rnn": ("state",), "gru": GATES["gru"], "lstm": ("input", "forget", "candidate", "output")}
"""In the order in which PyTorch holds them."""


def made(cell: str, **kwargs: Any) -> Recurrent:
    """A network in float64 with every tensor drawn, the biases too."""
    shape = {"depth": STEPS, "width": WIDTH, "num_inputs": INPUTS, "num_classes": 2, **kwargs}
    model = recurrent(cell=cell, **shape).double()
    draw = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.copy_(torch.randn(parameter.shape, generator=draw, dtype=torch.float64) / 2)
    return model


def batch(num: int = 4) -> tuple[Tensor, Tensor]:
    draw = torch.Generator().manual_seed(2)
    x = torch.randn(num, STEPS, INPUTS, generator=draw, dtype=torch.float64)
    return x, torch.randn(num, 2, generator=draw, dtype=torch.float64)


def gate(model: Recurrent, tensor: Tensor, name: str) -> Tensor:
    """The rows of one gate, out of the weight or its gradient."""
    at = GATES[model.cell].index(name)
    return tensor[at * WIDTH : (at + 1) * WIDTH]


def bias(model: Recurrent, name: str) -> Tensor:
    return model.biases.get_parameter(name)


@pytest.mark.parametrize("cell", TORCH_GATES)
def test_pytorch_has_the_same_cell(cell: str) -> None:
    """States, output and all gradients of `nn.RNN`, `nn.GRU` and `nn.LSTM` with the same weights, to 1e-12."""
    model = made(cell, readout="each")
    kinds: dict[str, Any] = {"rnn": nn.RNN, "gru": nn.GRU, "lstm": nn.LSTM}
    theirs = kinds[cell](INPUTS, WIDTH, batch_first=True).double()
    order = TORCH_GATES[cell]
    with torch.no_grad():
        theirs.weight_ih_l0.copy_(torch.cat([gate(model, model.stem.weight, each) for each in order]))
        theirs.weight_hh_l0.copy_(torch.cat([gate(model, model.recurrent.weight, each) for each in order]))
        theirs.bias_ih_l0.copy_(torch.cat([bias(model, each) for each in order]))
        theirs.bias_hh_l0.zero_()
        if cell == "gru":
            theirs.bias_hh_l0[2 * WIDTH :] = bias(model, "inner")
    x, _ = batch()
    wanted = model.head(theirs(x)[0])
    found = model(x)
    torch.testing.assert_close(found, wanted, rtol=0, atol=1e-12)
    aim = torch.randn(found.shape, generator=torch.Generator().manual_seed(3), dtype=torch.float64)
    own = dict(zip(dict(model.named_parameters()), _gradients(found, aim, model), strict=True))
    # The head is shared: of theirs the gradients of the cell alone.
    weight_ih, weight_hh, bias_ih, bias_hh = _gradients(wanted, aim, theirs)
    for name, theirs_own in (("stem.weight", weight_ih), ("recurrent.weight", weight_hh)):
        ours = torch.cat([gate(model, own[name], each) for each in order])
        torch.testing.assert_close(ours, theirs_own, rtol=0, atol=1e-12)
    for at, each in enumerate(order):
        rows = slice(at * WIDTH, (at + 1) * WIDTH)
        torch.testing.assert_close(own[f"biases.{each}"], bias_ih[rows], rtol=0, atol=1e-12)
    if cell == "gru":
        torch.testing.assert_close(own["biases.inner"], bias_hh[2 * WIDTH :], rtol=0, atol=1e-12)


def _gradients(output: Tensor, aim: Tensor, model: nn.Module) -> tuple[Tensor, ...]:
    return torch.autograd.grad((output * aim).sum(), list(model.parameters()), retain_graph=True)


def naive(model: Recurrent, x: Tensor) -> tuple[list[Tensor], list[Tensor]]:
    """(h, carried) of each step, gate by gate, as the formulas of the module say."""
    h = c = torch.zeros(len(x), WIDTH, dtype=x.dtype)
    states, carried = [], []
    for t in range(STEPS):
        a = {
            each: x[:, t] @ gate(model, model.stem.weight, each).T
            + h @ gate(model, model.recurrent.weight, each).T
            + bias(model, each)
            for each in GATES[model.cell]
            if each != "candidate" or model.cell != "gru"
        }
        if model.cell == "rnn":
            h = torch.tanh(a["state"])
        elif model.cell == "residual_rnn":
            h = h + torch.tanh(a["state"])
        elif model.cell == "gru":
            inner = h @ gate(model, model.recurrent.weight, "candidate").T + bias(model, "inner")
            outer = x[:, t] @ gate(model, model.stem.weight, "candidate").T + bias(model, "candidate")
            n = torch.tanh(outer + torch.sigmoid(a["reset"]) * inner)
            z = torch.sigmoid(a["update"])
            h = z * h + (1 - z) * n
        else:
            forget = torch.sigmoid(a["forget"]) if model.cell == "lstm" else 1.0
            c = forget * c + torch.sigmoid(a["input"]) * torch.tanh(a["candidate"])
            h = torch.sigmoid(a["output"]) * torch.tanh(c)
        states.append(h)
        carried.append(c if "lstm" in model.cell else h)
        carried[-1].retain_grad()
    return states, carried


@pytest.mark.parametrize("readout", ["last", "each"])
@pytest.mark.parametrize("cell", CELLS)
def test_each_cell_written_out(cell: str, readout: str) -> None:
    """Outputs, and what the probe measures of the carried state: its norm, and that of autograd's own gradient."""
    model = made(cell, readout=readout)
    x, y = batch()
    y = y[:, None].expand(-1, STEPS, -1) if readout == "each" else y
    states, carried = naive(model, x)
    output = model.head(states[-1] if readout == "last" else torch.stack(states, 1))
    torch.testing.assert_close(model(x), output, rtol=0, atol=1e-12)
    F.mse_loss(output, y).backward()  # type: ignore[no-untyped-call]
    found = profile(model, F.mse_loss, x, y, points=model.points(), additions=model.additions())
    assert [layer.name for layer in found.layers] == [*(f"times.{t}" for t in range(STEPS)), "head"]
    for t, each in enumerate(carried):
        assert each.grad is not None
        assert found.values("h_norm", 0)[t] == pytest.approx(float(each.detach().norm()), rel=1e-12)
        assert found.values("dh_norm", 0)[t] == pytest.approx(float(each.grad.norm()), rel=1e-11)


@pytest.mark.parametrize("cell", ["lstm_no_forget", "residual_rnn"])
def test_the_direct_path_carries_the_error_as_it_is(cell: str) -> None:
    """The constant error carousel: without the ways through U, dc/dc' is exactly 1, from the last step to the first."""
    model = made(cell)
    with torch.no_grad():
        model.recurrent.weight.zero_()
    x, y = batch()
    found = profile(model, F.mse_loss, x, y, points=model.points(), additions=model.additions())
    by_step = list(found.values("dh_norm", 0).values())[:STEPS]
    assert by_step == [by_step[-1]] * STEPS  # to the last bit


def test_the_forget_gate_is_the_factor_of_the_direct_path() -> None:
    """With U = 0, W = 0 and a bias b, dc/dc' = sigmoid(b) at every step."""
    model = made("lstm", forget_bias=1.0)
    with torch.no_grad():
        model.recurrent.weight.zero_()
        model.stem.weight.zero_()
        bias(model, "forget").fill_(1.0)
    x, y = batch()
    found = profile(model, F.mse_loss, x, y, points=model.points())
    assert found.factor("dh_norm", 0, 0, STEPS - 1) == pytest.approx(1 / (1 + np.exp(-1)), rel=1e-12)


@pytest.mark.parametrize("cell", ADDITIVE)
def test_what_is_added_at_each_step(cell: str) -> None:
    """|F|/|x| of a step is that of its operands; at the first nothing was carried, and there is no ratio."""
    model = made(cell)
    x, y = batch()
    found = profile(model, F.mse_loss, x, y, points=model.points(), additions=model.additions())
    carried = [each.detach() for each in naive(model, x)[1]]
    ratios = {
        t: float(((carried[t] - carried[t - 1]).norm(dim=1) / carried[t - 1].norm(dim=1)).mean())
        for t in range(1, STEPS)
    }
    assert found.values("f_over_x", 0) == pytest.approx(ratios, rel=1e-12)


def test_a_step_is_taken_out() -> None:
    """Without its branch a step carries on what it was given: as if the step's input had not been there."""
    model = made("residual_rnn")
    x, _ = batch()
    y = torch.zeros(len(x), dtype=torch.int64)
    found = lesions(model, x, y, _judge, points=model.points(), additions=model.additions())
    without = [each for each in found.rows if each.quantity == "lesion_loss"]
    assert len(without) == STEPS
    shorter = recurrent(depth=STEPS - 1, width=WIDTH, cell="residual_rnn", num_inputs=INPUTS, num_classes=2).double()
    shorter.load_state_dict(model.state_dict())
    for t, row in enumerate(without):
        logits = shorter(torch.cat((x[:, :t], x[:, t + 1 :]), dim=1))
        assert row.value == pytest.approx(_judge(logits, y)["loss"], rel=1e-12)


def _judge(logits: Tensor, y: Tensor) -> dict[str, float]:
    return {"loss": float(F.cross_entropy(logits.detach(), y))}


def test_tokens_are_rows_of_the_identity() -> None:
    for cell in CELLS:
        model = made(cell, readout="each")
        tokens = torch.randint(INPUTS, (4, STEPS), generator=torch.Generator().manual_seed(0))
        vectors = F.one_hot(tokens, INPUTS).double()
        torch.testing.assert_close(model(tokens), model(vectors), rtol=0, atol=1e-12)


def filled(cell: str, init: str, **kwargs: Any) -> Recurrent:
    model, _ = build(
        lambda: recurrent(depth=3, width=64, cell=cell, num_inputs=2, **kwargs), seed=5, init=init, dtype=torch.float64
    )
    return model


@pytest.mark.parametrize("cell", CELLS)
def test_gates_are_drawn_as_maps_of_their_own(cell: str) -> None:
    """Orthogonal each by itself; the variances of gaussian and xavier are those of one square map."""
    num = len(GATES[cell])
    model = filled(cell, "orthogonal")
    rng = stream(5, "init", "recurrent.weight")
    for part in torch.split_with_sizes(model.recurrent.weight.detach(), [64] * num):
        np.testing.assert_array_equal(part.numpy(), orthogonal(64, 64, rng))
    for part in torch.split_with_sizes(model.stem.weight.detach(), [64] * num):
        torch.testing.assert_close(part.T @ part, torch.eye(2, dtype=torch.float64))
    wanted = gaussian((64 * num, 64), 64, stream(5, "init", "recurrent.weight"))
    for init in ("gaussian", "xavier"):  # 2/(64 + 64) is 1/64
        np.testing.assert_allclose(filled(cell, init).recurrent.weight.detach().numpy(), wanted, rtol=1e-15)


def test_the_forget_gate_starts_open() -> None:
    for cell in CELLS:
        model = filled(cell, "gaussian")
        for name, value in model.biases.named_parameters():
            assert (value == (1.0 if name == "forget" else 0.0)).all(), f"{cell} {name}"
    assert (bias(filled("lstm", "gaussian", forget_bias=-2.0), "forget") == -2).all()
    assert (bias(recurrent(depth=1, forget_bias=3.0), "forget") == 3).all()


def test_more_steps_have_the_same_tensors() -> None:
    _, few = build(lambda: recurrent(depth=3), seed=1, init="orthogonal")
    _, many = build(lambda: recurrent(depth=30), seed=1, init="orthogonal")
    assert few == many


@pytest.mark.parametrize(("cell", "count"), [("rnn", 1), ("residual_rnn", 1), ("gru", 3), ("lstm", 4)])
def test_count(cell: str, count: int) -> None:
    """G maps of 2 + 64 inputs and a bias to 64 units, a second bias in the GRU, and the head."""
    model = recurrent(depth=9, cell=cell, width=64, num_inputs=2, num_classes=1)
    extra = 64 if cell == "gru" else 0
    assert sum(each.numel() for each in model.parameters()) == count * 64 * (2 + 64 + 1) + extra + 64 + 1


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"cell": "lstn"}, "Did you mean 'lstm'"),
        ({"readout": "first"}, "readout"),
        ({"shortcut": "identity"}, "shortcut of recurrent"),
        ({"activation": "relu"}, "activation of recurrent"),
        ({"norm": "layer"}, "norm of recurrent"),
        ({"width": 0}, "width: wanted 1 or more"),
    ],
)
def test_what_no_recurrent_network_has(wrong: dict[str, Any], words: str) -> None:
    with pytest.raises(UserError, match=words):
        recurrent(**{"depth": 3, **wrong})


def test_sequences_of_another_length() -> None:
    with pytest.raises(UserError, match="wanted sequences of 7 elements, got 6"):
        made("rnn")(batch()[0][:, 1:])
    assert recurrent(depth=3, length=8)(torch.zeros(1, 8, 2)).shape == (1, 1)
