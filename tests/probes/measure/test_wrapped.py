"""A wrapped model is measured as the one inside, under its own names, and trains on as if nothing had been."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import nn

from depthscope.core.errors import UserError
from depthscope.probes.guard import unwrapped
from depthscope.probes.measure.profile import profile_model

if TYPE_CHECKING:
    from tests.probes.measure.conftest import Case

    Make = Callable[[str], Case]


@pytest.fixture
def group(tmp_path: Path) -> object:
    dist.init_process_group("gloo", init_method=f"file://{tmp_path / 'store'}", rank=0, world_size=1)
    yield
    dist.destroy_process_group()


def test_data_parallel_inside_and_outside(make: Make) -> None:
    case = make("stack")
    expected = profile_model(case.model, case.batch, case.loss_fn)
    assert profile_model(nn.DataParallel(case.model), case.batch, case.loss_fn) == expected
    inside = nn.Sequential(nn.DataParallel(case.model[0]), *case.model[1:])  # type: ignore[index]
    assert profile_model(inside, case.batch, case.loss_fn) == expected
    assert isinstance(inside[0], nn.DataParallel)


class Calls(nn.Module):
    def __init__(self, function: Callable[[torch.Tensor], torch.Tensor]) -> None:
        super().__init__()
        self.function = function

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.function(x)


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_compiled_whole_in_part_and_as_a_function(make: Make) -> None:
    case = make("stack")
    expected = profile_model(case.model, case.batch, case.loss_fn)
    compilations: list[object] = []

    def backend(graph: torch.fx.GraphModule, _inputs: object) -> Callable[..., object]:
        compilations.append(graph)
        return graph.forward

    compiled: Any = torch.compile
    whole = compiled(case.model, backend=backend)
    part = nn.Sequential(compiled(case.model[0], backend=backend), *case.model[1:])  # type: ignore[index]
    for model in (whole, part):
        assert profile_model(model, case.batch, case.loss_fn) == expected
    case.model.compile(backend=backend)
    assert profile_model(case.model, case.batch, case.loss_fn) == expected
    assert compilations == []
    function = compiled(torch.tanh, backend=backend)
    by_function = nn.Sequential(case.model[0], Calls(function), *case.model[2:])  # type: ignore[index]
    found = profile_model(by_function, case.batch, case.loss_fn)
    assert found.value("grad_multiplier") == expected.value("grad_multiplier")
    if hasattr(torch.compiler, "set_stance"):  # older versions cannot run a compiled function as written
        assert compilations == []
    compilations.clear()
    out = part(case.batch[0])
    assert len(compilations) == 1
    assert torch.equal(out, unwrapped(whole).forward(case.batch[0]))


def test_distributed_and_trains_on(make: Make, group: object) -> None:
    """A gradient by `backward` would count as a step of the reducer, and the next would fail or be averaged wrong."""

    def trained(profiled: bool) -> list[float]:
        case = make("stack")
        expected = profile_model(case.model, case.batch, case.loss_fn)
        model = nn.parallel.DistributedDataParallel(case.model)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for step in range(2):
            optimizer.zero_grad()
            loss = F.cross_entropy(model(case.batch[0]), case.batch[1])
            if profiled:
                found = profile_model(model, case.batch, case.loss_fn)
                assert step or found == expected
            loss.backward()  # type: ignore[no-untyped-call]
            optimizer.step()
        return [number for each in model.parameters() for number in each.flatten().tolist()]

    assert trained(True) == trained(False)


def test_a_sharded_model_is_refused(make: Make, group: object) -> None:
    fully_shard = pytest.importorskip("torch.distributed.fsdp").fully_shard
    case = make("stack")
    fully_shard(case.model, mesh=dist.device_mesh.init_device_mesh("cpu", (1,)))
    with pytest.raises(UserError, match=r"FSDP holds each weight in shards.* before it is sharded"):
        profile_model(case.model, case.batch, case.loss_fn)


TWO = """
import sys
import torch, torch.distributed as dist
from torch import nn
from depthscope.probes.measure.profile import profile_model

rank = int(sys.argv[1])
dist.init_process_group("gloo", init_method=f"file://{sys.argv[2]}", rank=rank, world_size=2)
torch.manual_seed(0)
layers = nn.Sequential(nn.Linear(6, 6), nn.Tanh(), nn.Linear(6, 6), nn.Tanh(), nn.Linear(6, 3))
model = nn.parallel.DistributedDataParallel(layers)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
torch.manual_seed(rank)
for step in range(3):
    x, y = torch.randn(4, 6), torch.randint(3, (4,))
    if rank == step % 2:  # one alone, while the other trains: nothing of a profile is collective
        profile = profile_model(model, (x, y), nn.functional.cross_entropy)
        assert list(profile.values("boundary", "grad_norm")) == ["input", "1", "3", "output"], profile
        layers.zero_grad()
    optimizer.zero_grad()
    nn.functional.cross_entropy(model(x), y).backward()
    optimizer.step()
print(sum(each.double().sum().item() for each in layers.parameters()).hex())
dist.destroy_process_group()
"""


@pytest.mark.slow
def test_two_processes_stay_in_step(tmp_path: Path) -> None:
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", TWO, str(rank), str(tmp_path / "store")], stdout=subprocess.PIPE, text=True
        )
        for rank in (0, 1)
    ]
    sums = [process.communicate(timeout=300)[0].strip() for process in processes]
    assert [process.returncode for process in processes] == [0, 0]
    assert sums[0] == sums[1] != ""
