"""A surface is the model's loss at the weights of each point, against closed forms and plain loops."""

from __future__ import annotations

import copy
import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from depthscope.core.errors import UserError
from depthscope.models.convnet import cifar_resnet
from depthscope.models.init import build
from depthscope.models.preact import preact_resnet
from depthscope.probes.landscape.directions import Directions, directions
from depthscope.probes.landscape.surface import Surface

POINTS = ((0.0, 0.0), (0.5, -0.25), (-1.0, 1.0))


def by_class(output: Any, targets: Tensor) -> dict[str, float]:
    logits = output.double()
    return {
        "loss": float(F.cross_entropy(logits, targets)),
        "accuracy": float((logits.argmax(1) == targets).double().mean()),
    }


def squared(output: Tensor, targets: Tensor) -> dict[str, float]:
    return {"loss": float(F.mse_loss(output.double(), targets.double()))}


def worn(model: nn.Module) -> nn.Module:
    """Statistics and scales that are no round numbers."""
    for module in model.modules():
        if isinstance(module, nn.BatchNorm1d | nn.BatchNorm2d):
            for tensor in (module.weight, module.bias, module.running_mean, module.running_var):
                if tensor is not None:
                    nn.init.uniform_(tensor, 0.5, 1.5)
    return model


class Own(nn.Module):
    """Somebody's own forward: one convolution is read twice, one batch norm follows an addition, a view is taken."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.bn1 = nn.Conv2d(3, 4, 3, padding=1), nn.BatchNorm2d(4)
        self.second, self.bn2 = nn.Conv2d(4, 4, 3, padding=1, bias=False), nn.BatchNorm2d(4, affine=False)
        self.bn3, self.relu = nn.BatchNorm2d(4), nn.ReLU()
        self.head = nn.Linear(4 * 16, 10)

    def forward(self, x: Tensor) -> Tensor:
        h = self.first(x)
        y = self.bn3(h + self.bn2(self.second(self.relu(self.bn1(h)))))
        logits: Tensor = self.head((y + self.relu(y)).view(len(x), -1))
        return logits


class Transposed(nn.Module):
    """Transposed convolutions with groups, a linear layer before a batch norm."""

    def __init__(self) -> None:
        super().__init__()
        self.up = nn.ConvTranspose2d(4, 6, 3, groups=2)
        self.bn1, self.relu = nn.BatchNorm2d(6), nn.ReLU()
        self.linear, self.bn2 = nn.Linear(6 * 36, 7), nn.BatchNorm1d(7)
        self.head = nn.Linear(7, 10)

    def forward(self, x: Tensor) -> Tensor:
        logits: Tensor = self.head(self.bn2(self.linear(self.relu(self.bn1(self.up(x))).flatten(1))))
        return logits


class Looking(nn.Module):
    """Reads its batch norm's statistics itself, so that the norm has to stay, and flattens by strides."""

    def __init__(self) -> None:
        super().__init__()
        self.conv, self.bn, self.relu = nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.ReLU()
        self.head = nn.Linear(4 * 4, 10)

    def forward(self, x: Tensor) -> Tensor:
        h = self.relu(self.bn(self.conv(x)))
        assert self.bn.running_mean is not None
        logits: Tensor = self.head(h.view(len(x), -1)) + self.bn.running_mean.mean()
        return logits


class Tied(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.tokens = nn.Embedding(10, 8)
        layer = nn.TransformerEncoderLayer(8, 2, 16, dropout=0.5, batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, 1, enable_nested_tensor=False)
        self.head = nn.Linear(8, 10, bias=False)
        self.head.weight = self.tokens.weight

    def forward(self, x: Tensor) -> Tensor:
        logits: Tensor = self.head(self.encoder(self.tokens(x)).mean(1))
        return logits


def resnet(shortcut: str) -> nn.Module:
    return build(lambda: cifar_resnet(depth=8, width=4, shortcut=shortcut), seed=0)[0]


IMAGES = (10, 3, 8, 8)
ZOO: dict[str, tuple[Callable[[], nn.Module], tuple[int, ...], int | None]] = {
    # name: (model, shape of the input, batch norms folded)
    "plain": (lambda: resnet("none"), IMAGES, 7),
    "A": (lambda: resnet("A"), IMAGES, 7),
    "B": (lambda: resnet("B"), IMAGES, 9),
    "preact": (lambda: build(lambda: preact_resnet(depth=8, width=4, shortcut="A"), seed=0)[0], IMAGES, 3),
    "own": (Own, (10, 3, 4, 4), 1),
    "transposed": (Transposed, (10, 4, 4, 4), 2),
    "looking": (Looking, (10, 3, 4, 4), 0),
    "tied": (Tied, (10, 5), 0),
}


@pytest.fixture(params=ZOO)
def case(request: pytest.FixtureRequest) -> tuple[nn.Module, list[tuple[Tensor, Tensor]], int]:
    make, shape, folds = ZOO[request.param]
    torch.manual_seed(0)
    model = worn(make())
    x = torch.randn(shape) if len(shape) > 2 else torch.randint(10, shape)
    y = torch.randint(10, (10,))
    return model, [(x[:8], y[:8]), (x[8:], y[8:])], folds or 0


def moved(model: nn.Module, axes: Directions, coordinates: tuple[float, ...]) -> Any:
    """The plain twin: a float64 copy with the weights of a point."""
    copied = copy.deepcopy(model).double().eval()
    with torch.no_grad():
        for name, parameter in copied.named_parameters():
            for coordinate, axis in zip(coordinates, axes.axes, strict=True):
                parameter.add_(axis[name], alpha=coordinate)
    return copied


def test_points_of_many_models(case: Any) -> None:
    model, batches, folds = case
    axes = directions(model, axes=2, seed=1)
    exact = Surface(model, batches, by_class, axes, precision="float64", fast=False)
    quick = Surface(model, batches, by_class, axes, precision="float64")
    single = Surface(model, batches, by_class, axes)
    assert len(getattr(quick._moved, "_folds", ())) == folds
    x, y = (torch.cat(each) for each in zip(*batches, strict=True))
    for point in POINTS:
        twin = moved(model, axes, point)
        with torch.no_grad():
            wanted = by_class(twin(x.double() if x.is_floating_point() else x), y)
        assert exact.at(*point) == pytest.approx(wanted, rel=1e-12)
        assert quick.at(*point) == pytest.approx(wanted, rel=1e-12)
        assert single.at(*point) == pytest.approx(wanted, rel=1e-4)
        with single.model_at(*point) as there:
            assert not there.training
            for (name, one), (_, other) in zip(there.named_parameters(), twin.named_parameters(), strict=True):
                assert one.dtype == torch.float64
                assert one.requires_grad
                assert torch.equal(one, other) or torch.allclose(one, other, rtol=1e-15, atol=1e-15), name


def test_the_centre_is_the_model_bitwise(case: Any) -> None:
    """Evaluated the same way: by a surface whose directions are of another model, 0 all over but for one entry."""
    model, batches, _ = case
    axes = directions(model, axes=2, seed=1)
    for fast in (False, True):
        surface = Surface(model, batches, by_class, axes, fast=fast)
        centre = surface.at(0.0, 0.0)
        assert surface.at(0.5, 0.5) != centre
        assert surface.at(0.0, 0.0) == centre
        if not fast:
            total = 0.0
            with torch.no_grad():
                for x, y in batches:
                    total += by_class(copy.deepcopy(model).eval()(x), y)["loss"] * len(x)
            assert centre["loss"] == total / 10


def test_the_trajectory_moves_norms_too(case: Any) -> None:
    """Folded norms whose gamma and beta move: not linear in the point, and right."""
    model, batches, _ = case
    torch.manual_seed(3)
    axis = {name: 0.1 * torch.randn_like(each).double() for name, each in model.named_parameters()}
    axes = Directions(axes=(axis,), facts={})
    quick = Surface(model, batches, by_class, axes, precision="float64")
    plain = Surface(model, batches, by_class, axes, precision="float64", fast=False)
    for point in (-1.0, 0.3, 2.0):
        assert quick.at(point) == pytest.approx(plain.at(point), rel=1e-11)


def test_a_linear_models_loss_is_a_parabola() -> None:
    """MSE of X w: along d it is the mean of (X w - y + a X d)^2, by hand."""
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(10, 4)), rng.normal(size=(10, 1))
    model = nn.Linear(4, 1, bias=False).double()
    axes = directions(model, axes=2, seed=0)
    w, d, e = (t.detach().numpy().T for t in (model.weight, axes.axes[0]["weight"], axes.axes[1]["weight"]))
    batches = [(torch.from_numpy(x[part]), torch.from_numpy(y[part])) for part in (slice(8), slice(8, 10))]
    surface = Surface(model, batches, squared, axes, precision="float64")
    for a in (-1.0, 0.0, 0.7):
        for b in (-0.5, 0.0, 1.0):
            wanted = float(np.mean((x @ (w + a * d + b * e) - y) ** 2))
            assert surface.at(a, b)["loss"] == pytest.approx(wanted, rel=1e-12)


@pytest.mark.parametrize("factor", [4.0, 3.0])
def test_rescaling_a_relu_network_leaves_the_surface(factor: float) -> None:
    """(W1, b1, W2) -> (c W1, c b1, W2 / c): the same function and surface; bitwise where c is a power of 2."""
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(5, 7), nn.ReLU(), nn.Linear(7, 3)).double()
    other: Any = copy.deepcopy(model)
    with torch.no_grad():
        other[0].weight *= factor
        other[0].bias *= factor
        other[2].weight /= factor
    x, y = torch.randn(6, 5), torch.arange(6) % 3
    surfaces = [
        Surface(each, [(x, y)], by_class, directions(each, axes=2, seed=0), precision="float64")
        for each in (model, other)
    ]
    unscaled = directions(model, axes=2, seed=0, normalise="none"), directions(other, axes=2, seed=0, normalise="none")
    bare = [Surface(m, [(x, y)], by_class, d) for m, d in zip((model, other), unscaled, strict=True)]
    for point in POINTS:
        one, two = (surface.at(*point)["loss"] for surface in surfaces)
        assert one == two if factor == 4.0 else one == pytest.approx(two, rel=1e-13)
    assert bare[0].at(0.5, 0.5)["loss"] != pytest.approx(bare[1].at(0.5, 0.5)["loss"], rel=1e-3)


def state(model: nn.Module) -> list[Any]:
    """Whatever a surface might leave changed, bit for bit."""
    legacy: Any = np.random.get_state()  # noqa: NPY002
    return [
        *(each.detach().clone().numpy().tobytes() for each in (*model.parameters(), *model.buffers())),
        *(None if each.grad is None else each.grad.clone().numpy().tobytes() for each in model.parameters()),
        *(each.training for each in model.modules()),
        *(each.requires_grad for each in model.parameters()),
        *(len(each._forward_hooks) + len(each._forward_pre_hooks) for each in model.modules()),
        torch.get_rng_state().numpy().tobytes(),
        random.getstate(),
        legacy[1].tobytes(),
        torch.is_grad_enabled(),
        torch.is_autocast_enabled("cpu"),
    ]


class Drawing(nn.Module):
    """Draws in evaluation mode too, counts its passes, keeps what it saw, and writes its input."""

    passes: Tensor

    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(3, 10)
        self.register_buffer("passes", torch.zeros(1))
        self.kept: list[Tensor] = []
        self.generator = torch.Generator().manual_seed(1)

    def forward(self, x: Tensor) -> Tensor:
        self.passes += 1
        self.kept.append(x)
        x.mul_(1 + 0.1 * random.random() + 0.1 * float(np.random.rand()))  # noqa: NPY002
        noise = torch.randn(10) + torch.randn(10, generator=self.generator)
        logits: Tensor = F.dropout(self.linear(x), 0.5) + noise + 0.01 * (self.passes + len(self.kept))
        return logits


def test_the_model_is_left_bitwise_and_points_do_not_depend_on_one_another() -> None:
    torch.manual_seed(0)
    model: Any = nn.Sequential(Drawing(), nn.BatchNorm1d(10), nn.Dropout(0.5)).train()
    x, y = torch.randn(6, 3), torch.arange(6)
    kept = x.clone()
    loss: Any = F.cross_entropy(model(x.clone()), y)
    loss.backward()
    before = state(model)
    drawn = torch.get_rng_state(), random.getstate(), np.random.get_state()  # noqa: NPY002
    axes = directions(model, axes=2, seed=0)
    for norm in ("eval", "batch"):
        for precision in ("float32", "bfloat16", "float64"):
            with Surface(model, [(x, y)], by_class, axes, norm=norm, precision=precision) as surface:
                found = {point: surface.at(*point) for point in POINTS}
                assert {point: surface.at(*point) for point in reversed(POINTS)} == found
                with surface.model_at(1.0, 1.0) as there:
                    for each in (*there.parameters(), *there.buffers()):
                        nn.init.zeros_(each)
            torch.manual_seed(5)
            random.seed(5)
            np.random.seed(5)  # noqa: NPY002
            again = Surface(model, [(x, y)], by_class, axes, norm=norm, precision=precision)
            assert again.at(*POINTS[1]) == found[POINTS[1]]
            torch.set_rng_state(drawn[0])
            random.setstate(drawn[1])
            np.random.set_state(drawn[2])  # noqa: NPY002
    assert state(model) == before
    assert torch.equal(x, kept)
    assert len(model[0].kept) == 1


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
@pytest.mark.parametrize("norm", ["eval", "batch"])
def test_after_an_exception_and_ctrl_c(error: type[BaseException], norm: Any) -> None:
    model = worn(resnet("A")).train()
    x, y = torch.randn(6, 3, 8, 8), torch.arange(6)
    calls = 0

    def judge(output: Tensor, targets: Tensor) -> dict[str, float]:
        nonlocal calls
        calls += 1
        if calls == 2:
            raise error("stop")
        return by_class(output, targets)

    before = state(model)
    surface = Surface(model, [(x, y)], judge, directions(model, axes=1, seed=0), norm=norm)
    centre = surface.at(0.0)
    with pytest.raises(error, match="stop"):
        surface.at(1.0)
    assert surface.at(0.0) == centre
    assert state(model) == before


def test_statistics_of_the_point() -> None:
    """By hand: batches' means and unbiased variances, weighted by their numbers of entries."""
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(3, 5), worn(nn.BatchNorm1d(5)), nn.Linear(5, 10)).double()
    x, y = torch.randn(10, 3).double(), torch.randint(10, (10,))
    axes = directions(model, axes=1, seed=0)
    batches = [(x[:7], y[:7]), (x[7:], y[7:])]
    surface = Surface(model, batches, by_class, axes, norm="batch", precision="float64")
    for a in (0.0, 1.0):
        twin = moved(model, axes, (a,))
        h = twin[0](x)
        mean = (7 * h[:7].mean(0) + 3 * h[7:].mean(0)) / 10
        variance = (7 * h[:7].var(0) + 3 * h[7:].var(0)) / 10
        norm: Any = twin[1]
        z = (h - mean) / (variance + norm.eps).sqrt() * norm.weight + norm.bias
        wanted = by_class(twin[2](z).detach(), y)
        assert surface.at(a) == pytest.approx(wanted, rel=1e-12)
        with surface.model_at(a) as there:
            assert dict(there.named_buffers())["1.running_var"] == pytest.approx(variance.detach().numpy(), rel=1e-12)
    assert Surface(model, batches, by_class, axes, precision="float64").at(0.0) != surface.at(0.0)
    nn.init.constant_(dict(model.named_buffers())["1.running_var"], float("inf"))  # what was found counts for nothing
    again = Surface(model, batches, by_class, axes, norm="batch", precision="float64")
    assert again.at(1.0) == surface.at(1.0)


def test_a_norm_that_runs_twice_weighs_by_its_entries() -> None:
    shared = nn.BatchNorm1d(2).double()
    linear = nn.Linear(2, 2).double()
    model = nn.Sequential(linear, shared, linear, shared)
    x, y = torch.tensor([[1.0, 2.0], [3.0, 5.0], [0.0, -1.0]]).double(), torch.zeros(3, 2).double()
    surface = Surface(model, [(x, y)], squared, directions(model, axes=1, seed=0), norm="batch", precision="float64")
    with surface.model_at(0.0) as there, torch.no_grad():
        h = linear(x)
        z = linear((h - h.mean(0)) / (h.var(0, correction=0) + shared.eps).sqrt())
        wanted = (h.mean(0) + z.mean(0)) / 2
        assert torch.allclose(dict(there.named_buffers())["1.running_mean"], wanted, rtol=1e-12)


def test_what_is_not_finite_stays_so_and_does_not_spread() -> None:
    model = nn.Sequential(nn.Linear(2, 2), nn.BatchNorm1d(2), nn.Linear(2, 1))
    axis = {name: torch.full_like(each, 1e38).double() for name, each in model.named_parameters() if each.ndim == 2}
    x, y = torch.ones(3, 2), torch.zeros(3, 1)
    x[0] = -1
    for norm in ("eval", "batch"):
        surface = Surface(model, [(x, y)], squared, Directions(axes=(axis,), facts={}), norm=norm)
        near = surface.at(0.0)
        assert np.isfinite(near["loss"])
        assert not np.isfinite(surface.at(3.0)["loss"])
        assert surface.at(0.0) == near


def test_bfloat16_is_autocast_and_near() -> None:
    model = worn(resnet("A"))
    torch.manual_seed(0)
    x, y = torch.randn(16, 3, 8, 8), torch.arange(16) % 10
    axes = directions(model, axes=2, seed=0)
    plain = Surface(model, [(x, y)], by_class, axes, precision="bfloat16", fast=False)
    with torch.no_grad(), torch.autocast("cpu", torch.bfloat16):
        output = copy.deepcopy(model).eval()(x)
    assert plain.at(0.0, 0.0) == by_class(output, y)
    quick = Surface(model, [(x, y)], by_class, axes, precision="bfloat16")
    exact = Surface(model, [(x, y)], by_class, axes, precision="float64")
    for point in POINTS:
        assert quick.at(*point)["loss"] == pytest.approx(exact.at(*point)["loss"], rel=0.03)


def test_weight_norm_by_torchs_own_hook_moves() -> None:
    model = nn.Sequential(nn.utils.parametrizations.weight_norm(nn.Linear(3, 10)), nn.Linear(10, 10))
    x, y = torch.randn(4, 3), torch.arange(4)
    surface = Surface(model, [(x, y)], by_class, directions(model, axes=1, seed=0))
    assert surface.at(1.0) != surface.at(0.0)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"batches": []}, "wanted one or more, got none"),
        ({"precision": "float16"}, "got float16 and eval"),
        ({"norm": "train"}, "got float32 and train"),
        ({"directions": Directions(axes=({"wieght": torch.zeros(2, 3)},), facts={})}, "wieght"),
        ({"directions": Directions(axes=({"weight": torch.zeros(3, 3)},), facts={})}, r"shape \[3, 3\]"),
    ],
)
def test_refusals(change: dict[str, Any], words: str) -> None:
    model = nn.Linear(3, 2)
    given = {
        "batches": [(torch.ones(1, 3), torch.tensor([0]))],
        "directions": directions(model, axes=1, seed=0),
        **change,
    }
    with pytest.raises(UserError, match=words):
        Surface(model, given.pop("batches"), by_class, given.pop("directions"), **given)


def test_another_number_of_coordinates_is_refused_and_a_models_own_error_told() -> None:
    model = nn.Linear(3, 2)
    axes = directions(model, axes=1, seed=0)
    with pytest.raises(UserError, match="wanted 1 coordinates"):
        Surface(model, [(torch.ones(1, 3), torch.tensor([0]))], by_class, axes).at(0.0, 0.0)
    with pytest.raises(UserError, match="raised RuntimeError on this batch"):
        Surface(model, [(torch.ones(1, 4), torch.tensor([0]))], by_class, axes)
