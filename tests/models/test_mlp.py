"""The MLP against the hand-derived laboratory, and every shortcut against its formula written out."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional as F

from depthscope.core.errors import UserError
from depthscope.data.synthetic import spiral
from depthscope.lab import Adam, Momentum, Stack, fit, gradients, init_params, parameter_shapes
from depthscope.models.mlp import MLP, mlp
from depthscope.probes.watch import profile
from depthscope.study.catalog import CATALOG

Array = NDArray[Any]

SHORTCUTS = CATALOG["family"]["mlp"].accepts["shortcut"]
WRITTEN_OUT = (
    *("none", "identity", "identity_2", "constant_scaling", "highway", "dense", "scaled"),
    *("rezero", "skipinit", "stochastic_depth"),
)
"""What `written_out` has; the formula of any other is its conformance case's."""


def twin(shortcut: str, activation: str, norm: str, depth: int = 8) -> tuple[Stack, dict[str, Array], MLP]:
    """A stack, its parameters, and the MLP that holds the same ones, in float64."""
    shape: dict[str, Any] = {"shortcut": shortcut, "activation": activation, "norm": norm, "depth": depth}
    stack = Stack(width=16, num_inputs=2, num_classes=3, **shape)
    params = init_params(stack, [3], gain=1.1, stem_gain=1.7)
    model = mlp(width=16, **shape).double()
    # Strict: names and shapes are the laboratory's, and there is nothing else.
    model.load_state_dict({name: torch.tensor(value[0]) for name, value in params.items()})
    return stack, params, model


def close(found: Tensor, wanted: Array) -> None:
    """Equal to 1e-12 of the tensor's largest entry."""
    np.testing.assert_allclose(found.detach().numpy(), wanted, rtol=0, atol=1e-12 * max(abs(wanted).max(), 1e-300))


@pytest.mark.parametrize("norm", ["none", "batch"])
@pytest.mark.parametrize("activation", ["tanh", "relu"])
@pytest.mark.parametrize("shortcut", ["none", "identity", "identity_2"])
def test_the_laboratory_has_the_same_network(shortcut: str, activation: str, norm: str) -> None:
    """Logits, loss, every gradient, and five steps of either optimiser, on the spiral."""
    stack, params, model = twin(shortcut, activation, norm)
    data = spiral(3)
    x, y = torch.from_numpy(data.train.x), torch.from_numpy(data.train.y)
    net, grads = gradients(stack, params, data.train.x[None], data.train.y[None])
    logits = model(x)
    close(logits, net.inputs[-1][0].T)
    F.cross_entropy(logits, y).backward()  # type: ignore[no-untyped-call]
    for name, parameter in model.named_parameters():
        assert parameter.grad is not None
        close(parameter.grad, grads[name][0])
    model.eval()
    close(model(x), net.inputs[-1][0].T)  # the batch's statistics, in either mode

    for by_hand, make in (
        (Adam(beta2=0.99), lambda each: torch.optim.Adam(each, lr=2e-3, betas=(0.9, 0.99))),
        (Momentum(momentum=0.8), lambda each: torch.optim.SGD(each, lr=0.03, momentum=0.8)),
    ):
        _, _, model = twin(shortcut, activation, norm)
        optimizer: Any = make(model.parameters())
        rate = optimizer.param_groups[0]["lr"]
        reports = fit(
            stack,
            params,
            data.train.x[None],
            data.train.y[None],
            optimizer=by_hand,
            lr=[rate] * 5,
            num_steps=5,
            every=1,
        )
        for report in reports:
            optimizer.zero_grad()
            loss = F.cross_entropy(model(x), y)
            assert loss.item() == pytest.approx(report.loss[0], rel=1e-12)
            for name, parameter in model.named_parameters():
                close(parameter, report.params[name][0])
            loss.backward()  # type: ignore[no-untyped-call]
            optimizer.step()


def test_parameters_stand_in_the_laboratory_s_order() -> None:
    for shortcut in ("none", "identity_2"):
        stack, _, model = twin(shortcut, "tanh", "batch")
        found = {name: tuple(parameter.shape) for name, parameter in model.named_parameters()}
        assert list(found.items()) == list(parameter_shapes(stack).items())


# ---- each shortcut, written out ------------------------------------------------------------------------

WIDTH, DEPTH, GROWTH = 5, 4, 3
OPTIONS: dict[str, dict[str, Any]] = {
    "constant_scaling": {"skip": 0.7, "branch": 0.4},
    "highway": {"bias": -1.0},
    "dense": {"growth": GROWTH},
    "stochastic_depth": {"survival": 0.6},
}


def written_out(shortcut: str, state: dict[str, Tensor], x: Tensor) -> Tensor:
    """The logits in evaluation of an MLP of `DEPTH` tanh layers without a normaliser, from its tensors alone."""

    def affine(name: str, h: Tensor) -> Tensor:
        return h @ state[f"{name}.weight"].T + state[f"{name}.bias"]

    h = torch.tanh(affine("stem", x))
    if shortcut == "identity_2":
        for at in range(DEPTH // 2):
            h = h + affine(f"blocks.{at}.linear2", torch.tanh(affine(f"blocks.{at}.linear1", h)))
        return affine("head", h)
    for at in range(DEPTH):
        f = torch.tanh(affine(f"layers.{at}", h))
        match shortcut:
            case "none":
                h = f
            case "identity":
                h = h + f
            case "constant_scaling":
                h = 0.7 * h + 0.4 * f
            case "highway":
                gate = state[f"layers.{at}.join.gate.layer.weight"], state[f"layers.{at}.join.gate.bias"]
                transform = 1 / (1 + torch.exp(-(h @ gate[0].T + gate[1])))
                h = f * transform + h * (1 - transform)
            case "dense":
                h = torch.cat((h, f), dim=1)
            case "scaled":
                h = h + f / math.sqrt(DEPTH)
            case "rezero" | "skipinit":
                h = h + state[f"layers.{at}.join.a"] * f
            case "stochastic_depth":
                h = h + (1 - (at + 1) / DEPTH * 0.4) * f
            case _:
                raise AssertionError(shortcut)
    return affine("head", h)


def drawn(model: nn.Module) -> nn.Module:
    """The model in float64, every parameter drawn."""
    generator = torch.Generator().manual_seed(0)
    model = model.double()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.normal_(generator=generator)
    return model


def points(num: int = 7) -> Tensor:
    return torch.randn(num, 2, dtype=torch.float64, generator=torch.Generator().manual_seed(1))


@pytest.mark.parametrize("shortcut", WRITTEN_OUT)
def test_a_shortcut_is_its_formula(shortcut: str) -> None:
    model = drawn(mlp(depth=DEPTH, width=WIDTH, shortcut=shortcut, shortcut_options=OPTIONS.get(shortcut, {})))
    model.eval()
    torch.testing.assert_close(model(points()), written_out(shortcut, model.state_dict(), points()), rtol=1e-12, atol=0)


@pytest.mark.parametrize("shortcut", SHORTCUTS)
def test_what_it_says_of_itself_can_be_measured(shortcut: str) -> None:
    """Points and additions name modules that run once; |F|/|x| is that of the two operands of the plus sign."""
    model = drawn(mlp(depth=DEPTH, width=WIDTH, shortcut=shortcut, shortcut_options=OPTIONS.get(shortcut, {})))
    assert isinstance(model, MLP)
    additions = model.additions()
    y = torch.arange(7) % 3
    found = profile(model, nn.CrossEntropyLoss(), points(), y, points=model.points(), additions=additions)
    assert (found.layers[0].name, found.layers[-1].name) == ("stem", "head")
    assert len(found.layers) == DEPTH + 2
    num = {"none": 0, "dense": 0, "identity_2": DEPTH // 2}.get(shortcut, DEPTH)
    assert len(additions) == len(model.branches()) == len(found.values("f_over_x", 0)) == num
    weighted = {name for name, module in model.named_modules() if isinstance(module, nn.Linear)}
    assert {layer for branch in model.branches() for layer in branch} <= weighted
    # The last block's output is what the head is fed: the h of its last point is that of the operands' sum.
    if num:
        seen: dict[str, Tensor] = {}
        modules = dict(model.named_modules())
        last = additions[-1]
        for name in (last.branch, last.skip, last.block):
            modules[name].register_forward_hook(lambda _m, _i, out, name=name: seen.__setitem__(name, out))
        model.eval()
        model(points())
        scale = 0.6 if shortcut == "stochastic_depth" else 1.0  # its F is measured undropped and unscaled
        torch.testing.assert_close(seen[last.block], scale * seen[last.branch] + seen[last.skip])


def count(depth: int = 56, **shape: Any) -> int:
    with torch.device("meta"):
        model = mlp(depth=depth, width=16, **shape)
    return sum(parameter.numel() for parameter in model.parameters())


def test_parameter_counts() -> None:
    square, stem, head = 16 * 16 + 16, 2 * 16 + 16, 16 * 3 + 3
    plain = stem + 56 * square + head
    assert plain == 15_331
    equal = ("none", "identity", "identity_2", "constant_scaling", "scaled", "stochastic_depth")
    assert {count(shortcut=shortcut) for shortcut in equal} == {plain}
    assert {count(shortcut=shortcut) for shortcut in ("rezero", "skipinit")} == {plain + 56}
    assert count(shortcut="highway") == plain + 56 * square
    fan_ins = [16 + 4 * at for at in range(57)]
    assert count(shortcut="dense") == stem + sum(4 * (each + 1) for each in fan_ins[:-1]) + 3 * (fan_ins[-1] + 1)
    # A normaliser has a scale and a shift a unit, and takes the bias's place.
    assert {count(norm=norm) for norm in ("batch", "layer")} == {plain + 57 * 16}
    assert count(norm="batch", shortcut="identity_2") == plain + 29 * 16
    assert count(norm="batch", shortcut="identity_2", norm_ends_branch=True) == plain + 57 * 16
    assert count(norm="ws") == plain
    # Fixup: no bias but the head's; a scalar before each of 58 weights, one before each of 29 activations, and a
    # multiplier and a scalar at the end of each of 28 branches.
    assert count(norm="fixup", shortcut="identity_2") == plain - 57 * 16 + 58 + 29 + 2 * 28


# ---- normalisers ---------------------------------------------------------------------------------------


def test_weight_standardisation_leaves_the_two_inputs_of_the_stem_alone() -> None:
    model = drawn(mlp(depth=2, width=WIDTH, norm="ws"))
    state = model.state_dict()
    h = torch.tanh(points() @ state["stem.weight"].T + state["stem.bias"])
    for at in range(2):
        weight = state[f"layers.{at}.weight"]
        centred = weight - weight.mean(dim=1, keepdim=True)
        scaled = centred / (centred.square().sum(dim=1, keepdim=True) + 1e-5).sqrt()
        h = torch.tanh(h @ scaled.T + state[f"layers.{at}.bias"])
    wanted = h @ state["head.weight"].T + state["head.bias"]
    torch.testing.assert_close(model(points()), wanted, rtol=1e-12, atol=0)


def test_a_two_layer_branch_ends_in_a_normaliser_on_demand() -> None:
    model = drawn(mlp(depth=2, width=WIDTH, shortcut="identity_2", norm="layer", norm_ends_branch=True))
    state = model.state_dict()

    def normalised(name: str, h: Tensor) -> Tensor:
        z = h @ state[f"{name}.weight"].T
        z = (z - z.mean(1, keepdim=True)) / (z.var(1, correction=0, keepdim=True) + 1e-5).sqrt()
        moved: Tensor = z * state[f"{name}.norm.weight"] + state[f"{name}.norm.bias"]
        return moved

    h = torch.tanh(normalised("stem", points()))
    h = h + normalised("blocks.0.linear2", torch.tanh(normalised("blocks.0.linear1", h)))
    wanted = h @ state["head.weight"].T + state["head.bias"]
    torch.testing.assert_close(model(points()), wanted, rtol=1e-12, atol=0)


def test_fixup_has_its_scalars_in_a_branch_of_two_layers() -> None:
    model = drawn(mlp(depth=2, width=WIDTH, shortcut="identity_2", norm="fixup", activation="relu"))
    state = model.state_dict()

    def shifted(name: str, h: Tensor) -> Tensor:
        moved: Tensor = (h + state[f"{name}.shift"]) @ state[f"{name}.weight"].T
        return moved

    h = torch.relu(shifted("stem", points()) + state["stem.norm.shift"])
    f = torch.relu(shifted("blocks.0.linear1", h) + state["blocks.0.linear1.norm.shift"])
    end = "blocks.0.linear2.norm"
    h = h + state[f"{end}.multiplier"] * shifted("blocks.0.linear2", f) + state[f"{end}.shift"]
    wanted = shifted("head", h) + state["head.bias"]
    torch.testing.assert_close(model(points()), wanted, rtol=1e-12, atol=0)


# ---- square layers alone ---------------------------------------------------------------------------------


def vectors(num: int = 7) -> Tensor:
    return torch.randn(num, WIDTH, dtype=torch.float64, generator=torch.Generator().manual_seed(2))


def bare(**shape: Any) -> nn.Module:
    return drawn(mlp(**{"depth": 4, "width": WIDTH, "num_inputs": WIDTH, "num_classes": WIDTH, "bare": True} | shape))


@pytest.mark.parametrize("shortcut", ["none", "identity"])
@pytest.mark.parametrize("linear_end", [False, True])
def test_a_bare_network_is_its_square_layers(shortcut: str, linear_end: bool) -> None:
    model = bare(shortcut=shortcut, linear_end=linear_end)
    state = model.state_dict()
    assert set(state) == {f"layers.{at}.{part}" for at in range(4) for part in ("weight", "bias")}
    h = vectors()
    for at in range(4):
        z = h @ state[f"layers.{at}.weight"].T + state[f"layers.{at}.bias"]
        f = z if linear_end and at == 3 else torch.tanh(z)
        h = h + f if shortcut == "identity" else f
    torch.testing.assert_close(model(vectors()), h, rtol=1e-12, atol=0)


def test_a_bare_network_of_two_layer_branches() -> None:
    model = bare(shortcut="identity_2")
    state = model.state_dict()
    h = vectors()
    for at in range(2):
        z = h @ state[f"blocks.{at}.linear1.weight"].T + state[f"blocks.{at}.linear1.bias"]
        h = h + torch.tanh(z) @ state[f"blocks.{at}.linear2.weight"].T + state[f"blocks.{at}.linear2.bias"]
    torch.testing.assert_close(model(vectors()), h, rtol=1e-12, atol=0)


def test_the_last_layer_of_a_bare_network_can_go_without_its_normaliser() -> None:
    model = bare(norm="batch", linear_end=True)
    assert {name for name in model.state_dict() if name.startswith("layers.3")} == {"layers.3.weight", "layers.3.bias"}
    assert "layers.2.norm.weight" in model.state_dict()


@pytest.mark.parametrize("shortcut", ["none", "identity", "identity_2"])
def test_a_bare_network_is_measured_at_its_layers_alone(shortcut: str) -> None:
    model = bare(shortcut=shortcut)
    assert isinstance(model, MLP)
    found = profile(model, nn.MSELoss(), vectors(), vectors(), points=model.points(), additions=model.additions())
    assert len(found.layers) == 4
    assert all(name.name.startswith(("layers", "blocks")) for name in found.layers)
    assert len(found.values("f_over_x", 0)) == {"none": 0, "identity": 4, "identity_2": 2}[shortcut]


def test_the_slope_of_a_bare_network_goes_by_its_activations() -> None:
    """`tat` wants 20 activations in a row for the slope that the paper gives 21 weighted layers."""
    shape: dict[str, Any] = {"width": 4, "num_inputs": 4, "num_classes": 4, "bare": True, "activation": "tat"}
    for depth, linear_end in ((20, False), (21, True)):
        found = mlp(depth=depth, linear_end=linear_end, **shape).derived()
        assert found == {"tat_slope": pytest.approx(0.18138, abs=1e-5)}


# ---- what depth decides, and what no network has -------------------------------------------------------


def test_what_the_depth_decided() -> None:
    assert mlp(depth=4).derived() == {}
    assert mlp(depth=4, shortcut="scaled").derived() == {"branch_scale": 0.5}
    dropped = mlp(depth=4, shortcut="stochastic_depth", shortcut_options={"survival": 0.6})
    assert dropped.derived() == {"survival_last": pytest.approx(0.6)}
    # 19 square layers and the stem's are 20 activations in a row; the paper's slope for them is known.
    assert mlp(depth=19, activation="tat").derived() == {"tat_slope": pytest.approx(0.18138, abs=1e-5)}


@pytest.mark.parametrize(
    ("shape", "says"),
    [
        ({"depth": -1}, "depth: wanted 0 or more, got -1."),
        ({"width": 0}, "width: wanted 1 or more"),
        ({"depth": 3, "shortcut": "identity_2"}, "The nearest even depths are 2 and 4."),
        ({"shortcut": "conv1x1"}, "this family is of vectors"),
        ({"norm": "btach"}, "Did you mean 'batch'"),
        ({"norm": "batch", "norm_ends_branch": True}, "norm_ends_branch: wanted shortcut identity_2"),
        ({"shortcut": "highway", "shortcut_options": {"bais": 1.0}}, "unknown option of shortcut 'highway'"),
        ({"activation": "tat"}, "tat"),
        ({"bare": True}, "bare: wanted square layers alone"),
        ({"bare": True, "width": 2, "num_inputs": 2, "num_classes": 2, "depth": 0}, "bare: wanted"),
        ({"linear_end": True}, "linear_end: wanted a bare network"),
    ],
)
def test_faults_are_told(shape: dict[str, Any], says: str) -> None:
    with pytest.raises(UserError) as told:
        mlp(**{"depth": 2, **shape})
    assert says in str(told.value)
