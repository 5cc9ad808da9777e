"""Compiled and parallel models: names without prefixes, and what cannot be read is said."""

from __future__ import annotations

import json
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from depthscope.core.readings import ModelProfile
from depthscope.probes.watching import Watching


class Plain(nn.Sequential):
    """With a forward of its own: torch compiles none of its own modules' in place."""

    def forward(self, x: Tensor) -> Tensor:
        for layer in self:
            x = layer(x)
        return x


def net() -> Plain:
    torch.manual_seed(0)
    return Plain(*(nn.Sequential(nn.Linear(4, 4), nn.Tanh()) for _ in range(4)), nn.Linear(4, 2))


def train(model: Any, watched: nn.Module | None, parameters: Any = None) -> tuple[list[Any], Watching | None]:
    optimizer = torch.optim.SGD(parameters or model.parameters(), 0.1)
    watching = None if watched is None else Watching(watched, optimizer, 1).start()
    generator = torch.Generator().manual_seed(1)
    for _ in range(3):
        optimizer.zero_grad()
        model(torch.randn(6, 4, generator=generator)).square().sum().backward()
        nn.utils.clip_grad_norm_(model.parameters(), 0.1)
        optimizer.step()
    if watching is not None:
        watching.stop()
    return [each.tolist() for each in model.parameters()], watching


def eager_profile() -> ModelProfile:
    model = net()
    _, watching = train(model, model)
    assert watching is not None
    return watching.profile


@pytest.fixture
def _no_dynamo_left() -> Any:
    yield
    torch.compiler.reset()


@pytest.mark.usefixtures("_no_dynamo_left")
def test_a_compiled_model_says_what_is_missing_and_its_parameters_are_measured() -> None:
    eager = eager_profile()
    for compiled_before in (True, False):
        plain, _ = train(torch.compile(net(), backend="eager", fullgraph=True), None)
        model: Any = torch.compile(net(), backend="eager", fullgraph=True)
        if compiled_before:
            model(torch.randn(6, 4))
        weights, watching = train(model, model)
        assert weights == plain
        assert watching is not None
        profile = watching.profile
        for record in watching.records():
            assert "the model is compiled" in record.conditions.silent
            assert "Probe the uncompiled" in record.conditions.silent
            assert record.conditions.clipped
        for quantity in ("weight_grad_norm", "clipped_grad_norm", "weight_norm"):
            assert profile.values("parameter", quantity, 1) == pytest.approx(eager.values("parameter", quantity, 1))
        assert [each.name for each in profile.structure.blocks] == [each.name for each in eager.structure.blocks]
        assert not profile.values("boundary", "norm", 1)


@cache
def compiled_alone() -> tuple[Any, ModelProfile]:
    plain, _ = train(torch.compile(net(), backend="eager", fullgraph=True), None)
    return plain, eager_profile()


@pytest.mark.usefixtures("_no_dynamo_left")
@pytest.mark.parametrize("early", [True, False], ids=["watched before it is compiled", "after"])
@pytest.mark.parametrize("in_place", [True, False])
def test_a_model_that_is_compiled_behind_the_watch_s_back(early: bool, in_place: bool) -> None:
    """The hooks lie inside of what is compiled: they break no graph (`fullgraph`), and their silence is told."""
    plain, eager = compiled_alone()
    model = net()
    called: Any = model
    if not in_place:
        called = torch.compile(model, backend="eager", fullgraph=True)
    elif not early:
        model.compile(backend="eager", fullgraph=True)
    if not early:
        called(torch.randn(6, 4))
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    generator = torch.Generator().manual_seed(1)
    with Watching(model, optimizer, 1) as watching:
        if early and in_place:
            model.compile(backend="eager", fullgraph=True)
        for _ in range(3):
            optimizer.zero_grad()
            called(torch.randn(6, 4, generator=generator)).square().sum().backward()
            nn.utils.clip_grad_norm_(model.parameters(), 0.1)
            optimizer.step()
    assert [each.tolist() for each in model.parameters()] == plain
    for record in watching.records():
        assert "compiled" in record.conditions.silent
        assert "at the optimiser" in record.conditions.silent
    profile = watching.profile
    # Nobody told of the end of the backward pass: the norm is the clipped one, and is said to be.
    assert profile.values("parameter", "weight_grad_norm", 1) == pytest.approx(
        eager.values("parameter", "clipped_grad_norm", 1)
    )


def test_data_parallel_on_one_device_is_the_model_itself() -> None:
    model = nn.DataParallel(net())
    _, watching = train(model, model)
    assert watching is not None
    eager = eager_profile()
    profile = watching.profile
    assert set(profile.statuses) == set(eager.statuses)
    for step in range(3):
        for place, quantity in (("boundary", "grad_norm"), ("block", "grad_multiplier"), ("parameter", "weight_norm")):
            assert profile.values(place, quantity, step) == eager.values(place, quantity, step)  # type: ignore[arg-type]


def test_replicas_in_threads_are_left_alone() -> None:
    """A replica of DataParallel is a shallow copy that carries our hooks: it tells nothing."""
    model = net()
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    with Watching(model, optimizer, 1) as watching:
        replica = model._replicate_for_data_parallel()  # type: ignore[no-untyped-call]
        out: Tensor = replica(torch.randn(6, 4))
        out.square().sum().backward()  # type: ignore[no-untyped-call]
        optimizer.step()
    (record,) = watching.records()
    assert "no training pass" in record.conditions.silent
    wide = nn.DataParallel(net())
    wide.device_ids = [0, 1]
    assert "DataParallel runs copies" in Watching(wide, every=1)._boundaries._why_not


RANK = """
import json, sys
import torch
from torch import nn
import torch.distributed as dist
from depthscope.probes.watching import Watching

rank, file, micro_batches = int(sys.argv[1]), sys.argv[2], int(sys.argv[3])
torch.set_num_threads(1)
dist.init_process_group("gloo", init_method=f"file://{file}", rank=rank, world_size=2)
torch.manual_seed(0)
model = nn.Sequential(*(nn.Sequential(nn.Linear(4, 4), nn.Tanh()) for _ in range(4)), nn.Linear(4, 2))
ddp = nn.parallel.DistributedDataParallel(model)
optimizer = torch.optim.SGD(ddp.parameters(), 0.1)
written = []
with Watching(ddp, optimizer, 1, writer=lambda values, step: written.append(step)) as watching:
    for step in range(2):
        optimizer.zero_grad()
        for micro in range(micro_batches):
            x = torch.randn(6, 4, generator=torch.Generator().manual_seed(100 * step + 10 * micro + rank))
            if micro < micro_batches - 1:
                with ddp.no_sync():
                    (ddp(x).square().sum() / micro_batches).backward()
            else:
                (ddp(x).square().sum() / micro_batches).backward()
        nn.utils.clip_grad_norm_(ddp.parameters(), 0.1)
        optimizer.step()
profile = watching.profile
print(json.dumps({
    "written": written,
    "silent": [each.conditions.silent for each in watching.records()],
    "names": [each.name for each in profile.structure.parameters],
    "weights": [each.tolist() for each in model.parameters()],
    "boundaries": profile.values("boundary", "grad_norm", 1),
    "gradients": profile.values("parameter", "weight_grad_norm", 1),
    "clipped": profile.values("parameter", "clipped_grad_norm", 1),
}))
dist.destroy_process_group()
"""


def test_gradients_are_read_after_their_reduction(tmp_path: Path) -> None:
    """One process, whose reduction halves: an un-reduced gradient would be told twice too large."""
    dist = torch.distributed
    dist.init_process_group("gloo", init_method=f"file://{tmp_path / 'meet'}", rank=0, world_size=1)
    try:
        ddp = nn.parallel.DistributedDataParallel(net())

        def halved(buffer: Tensor) -> Any:
            future: Any = torch.futures.Future()
            future.set_result(buffer * 0.5)
            return future

        ddp.register_comm_hook(None, lambda _state, bucket: halved(bucket.buffer()))
        _, watching = train(ddp, ddp)
    finally:
        dist.destroy_process_group()
    assert watching is not None
    eager = eager_profile()
    assert [each.conditions.silent for each in watching.records()] == [""] * 3
    for name, norm in eager.values("parameter", "weight_grad_norm", 0).items():
        assert watching.profile.values("parameter", "weight_grad_norm", 0)[name] == pytest.approx(norm / 2)
    found = watching.profile.values("boundary", "grad_norm", 0)
    assert found == pytest.approx(eager.values("boundary", "grad_norm", 0))


@pytest.mark.slow
def test_two_processes_each_tell_their_own_boundaries_and_the_averaged_gradients(tmp_path: Path) -> None:
    micro_batches = 2
    running = [
        subprocess.Popen(
            [sys.executable, "-c", RANK, str(rank), str(tmp_path / "meet"), str(micro_batches)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for rank in (0, 1)
    ]
    done = []
    for each in running:
        out, error = each.communicate(timeout=300)
        assert each.returncode == 0, error
        done.append(json.loads(out.splitlines()[-1]))
    first, second = done
    assert (first["written"], second["written"]) == ([0, 1], [])
    assert first["silent"] == second["silent"] == ["", ""]
    assert first["weights"] == second["weights"]
    assert first["gradients"] == second["gradients"]
    assert first["boundaries"] != second["boundaries"]
    # The same by hand, in one process: gradients of the mean over both ranks.
    model = net()
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    for step in range(2):
        optimizer.zero_grad()
        squares = [[0.0] * 4, [0.0] * 4]
        for rank in (0, 1):
            for micro in range(micro_batches):
                x = torch.randn(6, 4, generator=torch.Generator().manual_seed(100 * step + 10 * micro + rank))
                h = []
                for layer in list(model)[:-1]:
                    x = layer(x)
                    x.retain_grad()
                    h.append(x)
                (model[-1](x).square().sum() / micro_batches / 2).backward()
                for index, each in enumerate(h):
                    assert each.grad is not None
                    squares[rank][index] += float((each.grad.double() * 2).square().sum())
        norms = {name: float(each.grad.double().norm()) for name, each in model.named_parameters()}  # type: ignore[union-attr]
        nn.utils.clip_grad_norm_(model.parameters(), 0.1)
        optimizer.step()
    assert first["names"] == list(norms)
    assert first["gradients"] == pytest.approx(norms, rel=1e-5)
    assert set(first["clipped"]) == set(norms)
    for rank, found in enumerate(done):
        wanted = {str(index): each**0.5 for index, each in enumerate(squares[rank])}
        assert {name: found["boundaries"][name] for name in wanted} == pytest.approx(wanted, rel=1e-5)
