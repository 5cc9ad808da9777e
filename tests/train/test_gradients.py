"""A diverged run says where the first gradient without a finite norm appeared."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.train.own import package
from tests.train.own import spec as own_spec
from tests.train.short import NET

torch = pytest.importorskip("torch")

from torch import nn  # noqa: E402

from depthscope.core.profile import Point  # noqa: E402
from depthscope.record.events import Ended, SafePoint, State  # noqa: E402
from depthscope.record.schema import Outcome  # noqa: E402
from depthscope.report.translate import phrases  # noqa: E402
from depthscope.study.expand import Task  # noqa: E402
from depthscope.study.run import RunSpec  # noqa: E402
from depthscope.train.build import Context  # noqa: E402
from depthscope.train.gradients import Gradients  # noqa: E402
from depthscope.train.measure import Overflow, diverged  # noqa: E402
from depthscope.train.start import run_task  # noqa: E402
from depthscope.train.state import Standing  # noqa: E402
from depthscope.train.torch_loop import Run  # noqa: E402

# |h| is about 1 after each layer; the gradient grows by 1e16 a layer on its way to the input. At `layers.1` it is about
# 1e32 and its squares are beyond float32; at `layers.0` it is itself.
GROWS = """
import torch
from torch import nn

class Net(nn.Module):
    def __init__(self, *, depth, width, num_inputs, num_classes):
        super().__init__()
        self.layers = nn.Sequential(*(nn.Linear(num_inputs if at == 0 else width, width) for at in range(depth)))
        self.unused = nn.Parameter(torch.zeros(2))
        self.head = nn.Linear(width, num_classes)

    def forward(self, x):
        for layer in self.layers:
            x = Grows.apply(torch.tanh(layer(x)))
        return self.head(x)

class Grows(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x.clone()

    @staticmethod
    def backward(ctx, gradient):
        return gradient * 1e16
"""


def outcome(spec: RunSpec, states: dict[str, State] | None = None) -> tuple[Outcome, list[State]]:
    saved: list[State] = []
    for event in run_task(Task((spec,)), Context(), states or {}):
        if isinstance(event, SafePoint):
            saved += event.take()
        if isinstance(event, Ended):
            return event.outcome, saved
    raise AssertionError


def test_the_layer_where_the_overflow_begins(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    name = package(monkeypatch, tmp_path, model=GROWS)
    fields: dict[str, Any] = {"depth": 3, "init": "torch", "batch_size": 8, "lr": 1e-30, "epochs": 1}
    told, saved = outcome(own_spec(name, **fields))
    assert (told.status, told.step) == ("diverged", 1)
    assert told.reason == (
        "training loss nan at step 1; at step 0 the gradients of 4 of 9 tensors, layers.1.weight nearest to the "
        "output, had no finite norm"
    )
    assert "the lr has no part in it" in str(told.remedy)
    # A run that was stopped in between still knows.
    assert saved[0].step == 1
    assert outcome(own_spec(name, **fields), {saved[0].run_id: saved[0]})[0] == told
    # The last update of a run: it shows in the evaluation.
    last, _ = outcome(own_spec(name, **{**fields, "epochs": None, "steps": 1}))
    assert (last.step, last.reason) == (1, told.reason)


def test_what_comes_back_from_a_loss_that_is_itself_beyond_bounds_tells_nothing() -> None:
    before = Overflow(step=2, parameter="a.weight", num=1, of=4)
    assert "a.weight" in str(diverged(3, float("nan"), before).reason)
    assert "a smaller lr" in str(diverged(3, float("nan"), before).remedy)
    assert diverged(2, float("inf"), before) == diverged(2, float("inf"))


@pytest.mark.parametrize(
    ("changes", "remedy"),
    [
        ({"norm": "none"}, "a smaller lr, a longer warm-up, or a normaliser"),
        ({"norm": "batch"}, "a smaller lr, a longer warm-up, or clipped gradients"),
        ({"norm": "none", "clip": "norm"}, "a smaller lr, a longer warm-up, or a normaliser"),
        ({"norm": "batch", "clip": "norm"}, "a smaller lr or a longer warm-up"),
    ],
)
def test_nothing_is_advised_that_the_run_has(changes: dict[str, Any], remedy: str) -> None:
    run = Run(RunSpec.model_validate({**NET, "steps": 1, **changes}), Context(), None, Standing())
    told = run._diverged(1, float("nan"))
    assert told.remedy == remedy
    assert phrases(told.remedy, "zh") != remedy


@pytest.mark.parametrize(
    ("changes", "remedy", "chinese"),
    [
        ({"norm": "none"}, "another initialiser; a normaliser; ", "换用其他初始化；加入归一化；"),
        ({"norm": "batch"}, "another initialiser; ", "换用其他初始化；"),
        ({"shortcut": "A"}, "another initialiser; branches that are scaled down; ", "换用其他初始化；缩小支路；"),
    ],
)
def test_at_step_0_no_rate_is_to_blame(changes: dict[str, Any], remedy: str, chinese: str) -> None:
    run = Run(RunSpec.model_validate({**NET, "steps": 1, **changes}), Context(), None, Standing())
    told = run._diverged(0, float("nan")).remedy
    assert told == remedy + "inputs and targets of a smaller scale; the lr has no part in it"
    assert phrases(told, "zh") == chinese + "缩小输入与目标的尺度；与 lr 无关"


def test_what_is_told_of_gradients_has_a_chinese_twin() -> None:
    for num in (1, 4):
        told = diverged(3, float("nan"), Overflow(step=0, parameter="a.weight", num=num, of=9))
        for text in (told.reason, told.remedy):
            assert text is not None
            assert all(phrases(each, "zh") != each for each in text.split("; ")), text


def test_a_normaliser_of_the_users_is_seen_and_the_laboratory_clips_nothing() -> None:
    class MyNorm(nn.Module):
        pass

    with_one, without = nn.Sequential(nn.Linear(1, 1), MyNorm()), nn.Sequential(nn.Linear(1, 1), nn.ReLU())
    assert str(diverged(1, float("nan"), model=with_one).remedy).endswith("or clipped gradients")
    assert str(diverged(1, float("nan"), model=without).remedy).endswith("or a normaliser")
    lab = {"backend": "numpy", "family": "mlp", "depth": 2, "width": 4, "activation": "tanh", "init": "gaussian"}
    spec = RunSpec.model_validate({**lab, "data": "spiral", "steps": 1, "norm": "batch"})
    assert diverged(1, float("nan"), spec=spec).remedy == "a smaller lr or a longer warm-up"


def test_a_run_whose_gradients_are_finite_names_no_layer() -> None:
    told, saved = outcome(RunSpec.model_validate({**NET, "data_options": {"num_train": 64}, "steps": 2, "lr": 1e4}))
    assert told.status == "diverged"
    assert "gradient" not in str(told.reason)
    assert not [key for key in saved[0].tensors if key.startswith("gradients")]


def test_the_first_step_of_each_parameter_and_the_one_nearest_to_the_output() -> None:
    model = nn.ModuleDict({name: nn.Linear(1, 1, bias=False) for name in ("z", "y", "x")})
    seen = Gradients(model, "cpu")
    for step, values in enumerate(
        [(1, 1, 1), (float("nan"), 1, None), (1, float("inf"), float("-inf")), (1, 1, float("nan"))]
    ):
        for module, value in zip(model.values(), values, strict=True):
            module.weight.grad = None if value is None else torch.tensor([[float(value)]])
        seen.see(step)
    assert seen.tensors()["gradients.first"].tolist() == [1, 2, 2]
    again = Gradients(model, "cpu")
    again.restore(seen.tensors())
    assert again.overflow(()) == seen.overflow(()) == Overflow(step=1, parameter="z.weight", num=1, of=3)
    both = Gradients(model, "cpu")
    both.see(7)
    for module in model.values():
        module.weight.grad = torch.tensor([[float("nan")]])
    both.see(8)
    # Forward order is what the points say; without them, the order in which the model holds its parameters.
    points = [Point(layer=name, kind="linear", weight=f"{name}.weight", output=name) for name in ("x", "z", "y")]
    assert both.overflow(()) == Overflow(step=7, parameter="x.weight", num=1, of=3)
    model["z"].weight.grad = model["y"].weight.grad = None
    fresh = Gradients(model, "cpu")
    for module in model.values():
        module.weight.grad = torch.tensor([[float("inf")]])
    fresh.see(0)
    assert fresh.overflow(points) == Overflow(step=0, parameter="y.weight", num=3, of=3)
    assert fresh.overflow(()) == Overflow(step=0, parameter="x.weight", num=3, of=3)
