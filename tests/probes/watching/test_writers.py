"""Where the numbers go: every sort of writer by what it can do, names, filters, failures."""

from __future__ import annotations

import logging
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from depthscope.core.errors import UserError
from depthscope.probes.watching import Watching
from depthscope.probes.watching.writers import as_write

VALUES = {"depth/grad_norm/h.0": 1.0, "depth/grad_norm/h.0#1": 2.0, "depth/residual_ratio/h.0:add": math.nan}
Heard = list[tuple[Any, ...]]


def tensorboard(heard: Heard) -> object:
    class SummaryWriter:
        def add_scalar(self, tag: str, value: float, global_step: int | None = None) -> None:
            heard.append((tag, value, global_step))

    return SummaryWriter()


def wandb(heard: Heard) -> object:
    class Run:
        def log(self, data: dict[str, Any], step: int | None = None, commit: bool | None = None) -> None:
            heard.extend((name, value, step) for name, value in data.items())

    return Run()


def by_position(heard: Heard) -> object:
    class Log:
        def log(self, values: dict[str, float], at: int) -> None:
            heard.extend((name, value, at) for name, value in values.items())

    return Log()


def function(heard: Heard) -> object:
    return lambda values, at: heard.extend((name, value, at) for name, value in values.items())


@pytest.mark.parametrize("make", [tensorboard, wandb, by_position, function])
def test_each_sort_of_writer_gets_every_value_at_its_step(make: Any) -> None:
    heard: Heard = []
    as_write(make(heard))(VALUES, 7)
    assert repr(heard) == repr([(name, value, 7) for name, value in VALUES.items()])


def test_several_writers_and_none() -> None:
    heard: Heard = []
    as_write([tensorboard(heard), wandb(heard)])(VALUES, 1)
    assert len(heard) == 2 * len(VALUES)
    as_write(None)(VALUES, 1)


MLFLOW = ["depth/grad_norm/h.0", "depth/grad_norm/h.0.call1", "depth/residual_ratio/h.0-add"]


def test_mlflow_gets_names_that_it_allows_and_it_is_said() -> None:
    heard: Heard = []

    class Mlflow:
        def log_metrics(self, metrics: dict[str, float], step: int | None = None) -> None:
            heard.append((list(metrics), step))

    class Client:
        def log_metric(self, run_id: str, key: str, value: float, timestamp: int = 0, step: int = 0) -> None:
            heard.append((run_id, key, step))

        def log_batch(self, run_id: str, metrics: object = ()) -> None: ...

    write = as_write(Mlflow())
    with pytest.warns(UserWarning, match=r"h\.0#1 is written as depth/grad_norm/h\.0\.call1"):
        write(VALUES, 3)
    write(VALUES, 4)  # told once
    assert heard == [(MLFLOW, 3), (MLFLOW, 4)]
    heard.clear()
    with pytest.warns(UserWarning, match="is written as"):
        as_write((Client(), "run"))(VALUES, 5)
    assert heard == [("run", name, 5) for name in MLFLOW]
    with pytest.raises(UserError, match=r"writer=\(client, run_id\)"):
        as_write(Client())


@pytest.mark.parametrize("bad", [3, "runs/1", object(), logging.getLogger("x"), lambda: None, dict])
def test_what_is_no_writer_is_refused(bad: object) -> None:
    with pytest.raises(UserError, match="writer: wanted a TensorBoard SummaryWriter"):
        as_write(bad)


def test_a_writer_that_fails_warns_once_and_the_training_goes_on() -> None:
    def fail(_values: Mapping[str, float], _step: int) -> None:
        raise OSError("no space left")

    model = nn.Linear(2, 2)
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    watching = Watching(model, optimizer, 1, writer=fail)

    def run() -> None:
        with watching:
            for _ in range(3):
                model(torch.randn(3, 2)).sum().backward()
                optimizer.step()

    with pytest.warns(UserWarning, match="failed at step 0: OSError: no space left") as caught:
        run()
    assert len(caught) == 1
    assert len(watching.records()) == 3


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Linear(3, 4)
        self.h = nn.ModuleList(nn.Linear(4, 4) for _ in range(4))
        self.head = nn.Linear(4, 2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.stem(x)
        for layer in self.h:
            x = x + torch.tanh(layer(x))
        out: torch.Tensor = self.head(x)
        return out


def written(filter: object, writer: object = None) -> set[str]:
    torch.manual_seed(0)
    model = Net()
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    names: set[str] = set()
    with Watching(model, optimizer, writer=writer or (lambda values, _step: names.update(values)), filter=filter):
        model(torch.randn(5, 3)).sum().backward()
        optimizer.step()
    return names


def parts(names: set[str]) -> set[str]:
    return {name.rpartition("/")[2] for name in names if "/model/" not in name}


def test_names_are_quantity_and_layer() -> None:
    names = written(None)
    assert {
        "depth/grad_norm/h.1:add",
        "depth/grad_multiplier/h.0:add",
        "depth/residual_ratio/h.3:add",
        "depth/norm/input",
        "depth/weight_grad_norm/h.0.weight",
        "depth/weight_grad_ratio/head.bias",
        "depth/model/grad_multiplier",
        "depth/model/grad_norm",
    } <= names
    assert all(name.startswith("depth/") for name in names)


@pytest.mark.parametrize(
    ("filter", "layers"),
    [
        (0, {"stem", "stem.weight", "stem.bias"}),
        ([0, "mid"], {"stem", "stem.weight", "stem.bias", "h.2:add", "h.2.weight", "h.2.bias"}),
        ([-2, -1], {"h.3:add", "h.3.weight", "h.3.bias", "output", "head.weight", "head.bias"}),
        ("h.1.*", {"h.1.weight", "h.1.bias"}),
        (["*.bias", 1], {*(f"h.{i}.bias" for i in range(4)), "stem.bias", "head.bias", "h.0:add", "h.0.weight"}),
    ],
)
def test_a_filter_takes_blocks_by_index_and_names_by_pattern(filter: object, layers: set[str]) -> None:
    names = written(filter)
    assert parts(names) == layers
    assert "depth/model/grad_norm" in names


@pytest.mark.parametrize(
    ("filter", "message"),
    [
        (6, "has no block 6; it has 0 to 5 or -1 to -6"),
        (-7, "no block -7"),
        ("layer9*", "'layer9\\*' matches no layer. Known, among"),
        ([], "an empty list"),
        (1.5, 'wanted a glob pattern of names .*"mid".* got 1.5'),
        ([True], "got True"),
    ],
)
def test_a_filter_that_fits_nothing_is_refused(filter: object, message: str) -> None:
    with pytest.raises(UserError, match=message):
        written(filter)


def test_a_real_tensorboard_file(tmp_path: Path) -> None:
    tensorboard = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")
    from torch.utils.tensorboard import SummaryWriter

    writer: Any = SummaryWriter(str(tmp_path))
    written(0, writer)
    writer.close()
    events = tensorboard.EventAccumulator(str(tmp_path))
    events.Reload()
    assert {"depth/grad_norm/stem", "depth/weight_norm/stem.bias", "depth/model/grad_norm"} <= set(
        events.Tags()["scalars"]
    )


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"model": 3}, "model: wanted a torch.nn.Module, got 3"),
        ({"every": 0}, "every: wanted a whole number of steps, 1 or more; got 0"),
        ({"every": True}, "got True"),
        ({"optimizer": "adam"}, "wanted a torch.optim.Optimizer or a list of them; got 'adam'"),
        ({"optimizer": torch.optim.SGD(nn.Linear(1, 1).parameters(), 0.1)}, "it holds no parameter of the model"),
        ({"scaler": 65536.0}, "scaler: wanted a torch.amp.GradScaler, got 65536.0"),
        ({"first_step": -1}, "first_step: wanted a whole number"),
    ],
)
def test_arguments_are_checked(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(UserError, match=message):
        Watching(**{"model": nn.Linear(2, 2), **arguments})
