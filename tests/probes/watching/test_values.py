"""What is recorded is right: beside the same passes written out by hand, for every way in which a loop takes a step."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from depthscope.probes.watching import Record, Watching

Batch = tuple[Tensor, Tensor]
Values = dict[tuple[str, str, str], float]


class Residual(nn.Module):
    """x + W2 relu(W1 x), in place; `by_hand` is the same computation without hooks, modes or in-place operations."""

    def __init__(self, width: int = 8, dropout: float = 0.3, reentrant: bool | None = None) -> None:
        super().__init__()
        self.stem = nn.Sequential(nn.Linear(5, width), nn.BatchNorm1d(width))
        self.blocks: Any = nn.ModuleList(
            nn.Sequential(nn.Linear(width, width), nn.ReLU(inplace=True), nn.Dropout(dropout), nn.Linear(width, width))
            for _ in range(3)
        )
        self.head = nn.Linear(width, 3)
        self.reentrant = reentrant

    def forward(self, x: Tensor) -> Tensor:
        x = self.stem(x)
        for block in self.blocks:
            out = block(x) if self.reentrant is None else checkpoint(block, x, use_reentrant=self.reentrant)
            out += x
            x = out
        logits: Tensor = self.head(x)
        return logits

    def by_hand(self, x: Tensor) -> tuple[list[Tensor], list[tuple[Tensor, Tensor]]]:
        boundaries = [x, self.stem(x)]
        operands = []
        for block in self.blocks:
            first, _, dropout, last = block
            branch = last(dropout(F.relu(first(boundaries[-1]))))
            operands.append((branch, boundaries[-1]))
            boundaries.append(branch + boundaries[-1])
        return [*boundaries, self.head(boundaries[-1])], operands


BOUNDARIES = ("input", "stem", "blocks.0:add", "blocks.1:add", "blocks.2:add", "output")


def twin(model: Residual, batches: Sequence[Batch], seed: int, clip: float | None = None) -> Values:
    """All readings of one step, from sums over NumPy arrays."""
    model = copy.deepcopy(model)
    model.zero_grad()
    torch.manual_seed(seed)
    h: list[list[np.ndarray]] = [[] for _ in BOUNDARIES]
    g: list[list[np.ndarray]] = [[] for _ in BOUNDARIES]
    pairs: list[list[tuple[np.ndarray, np.ndarray]]] = [[], [], []]
    for x, y in batches:
        boundaries, operands = model.by_hand(x)
        for each in boundaries[1:]:
            each.retain_grad()
        (F.cross_entropy(boundaries[-1], y) / len(batches)).backward()  # type: ignore[no-untyped-call]
        for index, each in enumerate(boundaries):
            h[index].append(each.detach().double().numpy())
            if index:
                assert each.grad is not None
                g[index].append(each.grad.double().numpy())
        for index, (branch, skip) in enumerate(operands):
            pairs[index].append((branch.detach().double().numpy(), skip.detach().double().numpy()))
    values: Values = {}
    norms = {}
    for index, name in enumerate(BOUNDARIES):
        flat = np.concatenate([each.ravel() for each in h[index]])
        values["boundary", name, "norm"] = math.sqrt((flat**2).sum())
        values["boundary", name, "mean"] = flat.mean()
        values["boundary", name, "std"] = flat.std()
        values["boundary", name, "zeros"] = (flat == 0).mean()
        values["boundary", name, "nonfinite"] = 0
        if index:
            norms[index] = math.sqrt(sum((each**2).sum() for each in g[index]))
            values["boundary", name, "grad_norm"] = norms[index]
            values["boundary", name, "grad_nonfinite"] = 0
    for index in range(2, len(BOUNDARIES)):
        values["block", BOUNDARIES[index], "grad_multiplier"] = norms[index - 1] / norms[index]
    values["model", "", "grad_multiplier"] = norms[1] / norms[4]
    for index, name in enumerate(BOUNDARIES[2:5]):
        f = np.concatenate([branch for branch, _ in pairs[index]])
        x_all = np.concatenate([skip for _, skip in pairs[index]])
        ff, xx, fx = (f * f).sum(1), (x_all * x_all).sum(1), (f * x_all).sum(1)
        values["addition", name, "residual_ratio"] = np.sqrt(ff / xx).mean()
        values["addition", name, "cosine"] = (fx / np.sqrt(ff * xx)).mean()
        values["addition", name, "share"] = ((ff + fx) / (ff + 2 * fx + xx)).mean()
    squares = 0.0
    for name, parameter in model.named_parameters():
        assert parameter.grad is not None
        size = math.sqrt((parameter.detach().double().numpy() ** 2).sum())
        norm = math.sqrt((parameter.grad.double().numpy() ** 2).sum())
        squares += norm**2
        values["parameter", name, "weight_norm"] = size
        values["parameter", name, "weight_grad_norm"] = norm
        if size:
            values["parameter", name, "weight_grad_ratio"] = norm / size
    total = math.sqrt(squares)
    values["model", "", "grad_norm"] = total
    if clip is not None and total > clip:
        for name, _ in model.named_parameters():
            values["parameter", name, "clipped_grad_norm"] = (
                values["parameter", name, "weight_grad_norm"] * clip / (total + 1e-6)
            )
        values["model", "", "clipped_grad_norm"] = total * clip / (total + 1e-6)
    return values


def values_of(record: Record) -> Values:
    return {(each.place, each.name, each.quantity): each.value for each in record.readings}


def batches(step: int, sizes: Sequence[int] = (6,)) -> list[Batch]:
    generator = torch.Generator().manual_seed(1000 + step)
    return [
        (torch.randn(size, 5, generator=generator), torch.randint(3, (size,), generator=generator)) for size in sizes
    ]


def agree(found: Values, wanted: Values, tolerance: float = 1e-5) -> None:
    assert set(found) == set(wanted)
    for key, value in wanted.items():
        assert found[key] == pytest.approx(value, rel=tolerance, abs=1e-12), key


@pytest.mark.parametrize(
    ("sizes", "clip", "reentrant"),
    [  # every pair of the three once
        ((6,), None, None),
        ((6, 3, 4), 0.4, None),
        ((6, 3, 4), 1e6, None),
        ((6, 3, 4), None, False),
        ((6,), 0.4, False),
        ((6,), 1e6, False),
    ],
)
def test_every_reading_is_that_of_the_pass_by_hand(
    sizes: tuple[int, ...], clip: float | None, reentrant: bool | None
) -> None:
    torch.manual_seed(0)
    model = Residual(reentrant=reentrant)
    optimizer = torch.optim.SGD(model.parameters(), 0.1, momentum=0.9)
    wanted = []
    with Watching(model, optimizer, 1) as watching:
        for step in range(3):
            wanted.append(twin(model, batches(step, sizes), step, clip))
            optimizer.zero_grad()
            torch.manual_seed(step)
            for x, y in batches(step, sizes):
                (F.cross_entropy(model(x), y) / len(sizes)).backward()  # type: ignore[no-untyped-call]
            if clip is not None:
                nn.utils.clip_grad_norm_(model.parameters(), clip)
            optimizer.step()
    records = watching.records()
    assert [each.step for each in records] == [0, 1, 2]
    for record, values in zip(records, wanted, strict=True):
        agree(values_of(record), values)
        assert record.conditions.batch == sum(sizes)
        assert record.conditions.clipped == (clip == 0.4)
        assert set(record.statuses.values()) == {"ok"}


def loop(
    scaler: torch.amp.GradScaler | None,
    *,
    given: bool = True,
    fused: bool = False,
    clip: float | None = None,
    steps: int = 3,
    watched: Callable[[Residual, Any], Watching] | None = None,
) -> list[Record]:
    torch.manual_seed(0)
    model = Residual()
    optimizer = torch.optim.Adam(model.parameters(), 1e-3, fused=fused)
    make = watched or (lambda net, opt: Watching(net, opt, 1, scaler=scaler if given else None))
    with make(model, optimizer) as watching:
        for step in range(steps):
            ((x, y),) = batches(step)
            torch.manual_seed(step)
            loss = F.cross_entropy(model(x), y)
            optimizer.zero_grad()
            if scaler is None:
                loss.backward()  # type: ignore[no-untyped-call]
            else:
                scaler.scale(loss).backward()  # type: ignore[no-untyped-call]
                if clip is not None:
                    scaler.unscale_(optimizer)
            if clip is not None:
                nn.utils.clip_grad_norm_(model.parameters(), clip)
            if scaler is None:
                optimizer.step()
            else:
                scaler.step(optimizer)
                scaler.update()
    return list(watching.records())


@pytest.mark.parametrize("given", [True, False])
@pytest.mark.parametrize("fused", [False, True])
@pytest.mark.parametrize("clip", [None, 0.3])
def test_a_scaler_s_factor_is_taken_out_wherever_it_still_is(given: bool, fused: bool, clip: float | None) -> None:
    plain = loop(None, fused=fused, clip=clip)
    # Doubled after each step.
    scaler = torch.amp.GradScaler("cpu", init_scale=2.0**13, growth_interval=1)
    scaled = loop(scaler, given=given, fused=fused, clip=clip)
    for one, other in zip(plain, scaled, strict=True):
        agree(values_of(other), values_of(one), tolerance=1e-3)
        assert other.conditions.clipped == one.conditions.clipped == (clip is not None)
        assert ("not given" in other.conditions.silent) is not given
    assert [each.conditions.loss_scale for each in scaled] == [2.0**13, 2.0**14, 2.0**15]
    assert not any(each.conditions.skipped for each in scaled)


class Spike(torch.autograd.Function):
    """The identity, whose gradient overflows in float32 where a scaler has multiplied it."""

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        return x.clone()

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Tensor:
        return grad * 1e30


class Gate(nn.Module):
    """Spikes where it is told to; else as many operations that do nothing."""

    spiking = False

    def forward(self, x: Tensor) -> Tensor:
        spike: Any = Spike.apply
        out: Tensor = spike(x) if self.spiking else x.clone()
        return out


@pytest.mark.parametrize("fused", [False, True])
@pytest.mark.parametrize("given", [True, False])
@pytest.mark.parametrize("every", [1, 100])
def test_a_skipped_step_is_a_record_that_names_the_layer(fused: bool, given: bool, every: int) -> None:
    torch.manual_seed(0)
    model: Any = nn.Sequential(*(nn.Sequential(nn.Linear(4, 4), Gate(), nn.Tanh()) for _ in range(5)), nn.Linear(4, 2))
    optimizer = torch.optim.Adam(model.parameters(), 1e-3, fused=fused)
    scaler = torch.amp.GradScaler("cpu", init_scale=1024.0)
    with Watching(model, optimizer, every, scaler=scaler if given else None) as watching:
        for step in range(7):
            model[2][1].spiking = step in (3, 5)
            loss = model(torch.randn(6, 4)).square().mean() * 1e12
            optimizer.zero_grad(set_to_none=step < 5)
            scaler.scale(loss).backward()
            scaler.step(optimizer)
            scaler.update()
    records = {each.step: each for each in watching.records()}
    assert watching.num_steps == 7
    skipped = {step: each.conditions.skipped for step, each in records.items() if each.conditions.skipped}
    assert skipped == dict.fromkeys((3, 5), "non-finite gradient in 2, and from there back to 0")
    assert list(records) == (list(range(7)) if every == 1 else [0, 1, 2, 3, 4, 5])
    assert not math.isfinite(values_of(records[3])["parameter", "0.0.weight", "weight_grad_norm"])
    assert math.isfinite(values_of(records[3])["parameter", "3.0.weight", "weight_grad_norm"])
    assert records[3].conditions.loss_scale == 1024.0
    assert records[5].conditions.loss_scale == 512.0


def test_a_skip_for_an_activation_names_the_first_in_the_forward_order() -> None:
    torch.manual_seed(0)
    model: Any = nn.Sequential(*(nn.Sequential(nn.Linear(4, 4), nn.ReLU()) for _ in range(4)), nn.Linear(4, 2))
    with torch.no_grad():
        model[1][0].bias.fill_(math.inf)
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    with Watching(model, optimizer) as watching:
        # A careful loop without a scaler skips too.
        for _ in range(2):
            optimizer.zero_grad()
            model(torch.randn(3, 4)).sum().backward()
    first, second = watching.records()
    assert first.conditions.skipped == second.conditions.skipped == "non-finite activation, first in 1"


def test_gradients_of_1e_24_have_a_finite_logarithm() -> None:
    torch.manual_seed(0)
    model = Residual(dropout=0.0)
    ((x, y),) = batches(0)
    records = []
    for factor in (1.0, 2.0**-80):
        net = copy.deepcopy(model)
        optimizer = torch.optim.SGD(net.parameters(), 0.1)
        with Watching(net, optimizer) as watching:
            (F.cross_entropy(net(x), y) * factor).backward()  # type: ignore[no-untyped-call]
            optimizer.step()
        records.append(values_of(watching.records()[0]))
    for key, value in records[0].items():
        if key[2] in ("grad_norm", "weight_grad_norm") and value:
            assert math.log10(records[1][key]) == pytest.approx(math.log10(value) - 80 * math.log10(2), abs=1e-4)


class Partly(nn.Module):
    """Of every status one."""

    def __init__(self) -> None:
        super().__init__()
        self.frozen = nn.Linear(4, 4)
        self.used = nn.Linear(4, 4)
        self.detached = nn.Linear(4, 4)
        self.unused = nn.Linear(4, 4)
        self.shared = self.used
        self.frozen.requires_grad_(False)

    def forward(self, x: Tensor) -> Tensor:
        out: Tensor = self.used(self.frozen(x)) + self.detached(x).detach()
        return out


@pytest.mark.parametrize("to_none", [True, False])
def test_a_parameter_without_gradient_has_a_status_and_no_number(to_none: bool) -> None:
    model = Partly()
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    model.unused.weight.grad = torch.zeros(4, 4)  # as an earlier loop may have left it
    with Watching(model, optimizer) as watching:
        for _ in range(2):
            optimizer.zero_grad(set_to_none=to_none)
            model(torch.randn(3, 4)).square().sum().backward()
            optimizer.step()
    for record in watching.records():
        for part, status in (
            ("frozen", "frozen"),
            ("used", "ok"),
            ("detached", "no grad"),
            ("unused", "unused"),
            ("shared", "shared"),
        ):
            for name in (f"{part}.weight", f"{part}.bias"):
                assert record.statuses[name] == status
                assert (("parameter", name, "weight_grad_norm") in values_of(record)) == (status == "ok"), name
                assert (("parameter", name, "weight_norm") in values_of(record)) == (status != "shared"), name


def test_a_reentrant_checkpoint_hides_gradients_and_says_so() -> None:
    torch.manual_seed(0)
    model = Residual(reentrant=True)
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    ((x, y),) = batches(0)
    wanted = twin(model, [(x, y)], 0)
    with Watching(model, optimizer) as watching:
        torch.manual_seed(0)
        F.cross_entropy(model(x), y).backward()  # type: ignore[no-untyped-call]
        optimizer.step()
    (record,) = watching.records()
    # The blocks' ends lie outside of the checkpoints here, so that only what is inside would be missing.
    agree(values_of(record), wanted)

    class Inside(Residual):
        def forward(self, x: Tensor) -> Tensor:
            def run(x: Tensor) -> Tensor:
                for block in self.blocks:
                    x = block(x) + x
                return x

            logits: Tensor = self.head(checkpoint(run, self.stem(x), use_reentrant=True))
            return logits

    model = Inside()
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    with Watching(model, optimizer) as watching:
        F.cross_entropy(model(x), y).backward()  # type: ignore[no-untyped-call]
        optimizer.step()
    (record,) = watching.records()
    seen = values_of(record)
    assert ("boundary", "blocks.0:add", "norm") in seen
    assert ("boundary", "blocks.0:add", "grad_norm") not in seen
    assert ("block", "blocks.1:add", "grad_multiplier") not in seen
    assert "re-entrant" in record.conditions.silent
    assert record.statuses["blocks.0.0.weight"] == "ok"


def test_rezero_at_step_0_multiplies_by_exactly_1() -> None:
    """Blocks x + a F(x) with a = 0: healthy raw material, however small the gradients inside of the branches are."""

    class ReZero(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.stem = nn.Linear(5, 8)
            self.layers = nn.ModuleList(nn.Linear(8, 8) for _ in range(6))
            self.scales = nn.Parameter(torch.zeros(6))
            self.head = nn.Linear(8, 3)

        def forward(self, x: Tensor) -> Tensor:
            x = self.stem(x)
            for scale, layer in zip(self.scales, self.layers, strict=True):
                x = x + scale * torch.tanh(layer(x))
            logits: Tensor = self.head(x)
            return logits

    torch.manual_seed(0)
    model = ReZero()
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    with Watching(model, optimizer) as watching:
        for step in range(2):
            ((x, y),) = batches(step)
            optimizer.zero_grad()
            F.cross_entropy(model(x), y).backward()  # type: ignore[no-untyped-call]
            optimizer.step()
    profile = watching.profile
    body = [block.name for block in profile.structure.body]
    multipliers = profile.values("block", "grad_multiplier", 0)
    assert [multipliers[name] for name in body] == [1.0] * 6
    assert list(profile.values("addition", "residual_ratio", 0).values()) == [0.0] * 6
    assert profile.values("parameter", "weight_grad_norm", 0)["layers.0.weight"] == 0
    assert profile.statuses["layers.0.weight"] == "ok"
    assert profile.value("grad_multiplier", 1) == pytest.approx(
        math.prod(profile.values("block", "grad_multiplier", 1)[name] for name in body), rel=1e-12
    )
