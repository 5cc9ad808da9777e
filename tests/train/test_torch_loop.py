"""A run in PyTorch: a slow twin, side effects of measuring, divergence, failure."""

from __future__ import annotations

import gc
import weakref
from pathlib import Path
from typing import Any

import pytest
from tests.train.own import package
from tests.train.short import TRAINED

torch = pytest.importorskip("torch")

from depthscope.models.convnet import cifar_resnet  # noqa: E402
from depthscope.models.init import build  # noqa: E402
from depthscope.probes.numbers import weights_digest  # noqa: E402
from depthscope.record.events import Ended, Rows, SafePoint, Started  # noqa: E402
from depthscope.study.expand import Task  # noqa: E402
from depthscope.study.run import RunSpec  # noqa: E402
from depthscope.train.build import Context, load_data  # noqa: E402
from depthscope.train.feed import Feed  # noqa: E402
from depthscope.train.forward_backward import ForwardBackward  # noqa: E402
from depthscope.train.start import run_task  # noqa: E402
from depthscope.train.state import Standing  # noqa: E402
from depthscope.train.torch_loop import Run  # noqa: E402


def spec(**changes: Any) -> RunSpec:
    values: dict[str, Any] = {
        **TRAINED,
        "shortcut": "A",
        "optimizer_options": {"weight_decay": 1e-3},
        "lr": 0.05,
        "schedule": "step",
        "warmup_steps": 2,
    }
    return RunSpec.model_validate({**values, **changes})


def events(*specs: RunSpec) -> list[Any]:
    return [event for event in run_task(Task(specs), Context()) if not isinstance(event, SafePoint)]


def end(found: list[Any], run_id: str) -> Ended:
    (ended,) = [event for event in found if isinstance(event, Ended) and event.run_id == run_id]
    return ended


def column(found: list[Any], table: str, name: str, **where: Any) -> list[Any]:
    out = []
    for event in found:
        if isinstance(event, Rows) and event.table == table:
            rows = zip(event.columns[name], *(event.columns[key] for key in where), strict=True)
            out += [row[0] for row in rows if list(row[1:]) == list(where.values())]
    return out


def test_the_run_equals_a_loop_written_plainly() -> None:
    one = spec(seed=5)
    found = events(one)
    model, _ = build(lambda: cifar_resnet(depth=8, width=4, shortcut="A"), seed=5)
    # The layout in memory decides the last bits. (torch leaves the argument out of its type hints.)
    model.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
    feed = Feed(load_data(one, Context()), one, "cpu", torch.float32)
    optimizer = torch.optim.SGD(model.parameters(), lr=1.0, momentum=0.9, weight_decay=1e-3)
    # 6 updates; warm-up over 2; a tenth from update 3 and a hundredth from update 5 (ceil of 4.5) on.
    rates = [0.025, 0.05, 0.05, 0.005, 0.005, 0.0005]
    losses: list[tuple[float, int]] = []
    for epoch in range(2):
        for x, y in feed.epoch(epoch):
            optimizer.param_groups[0]["lr"] = rates[len(losses)]
            loss = torch.nn.functional.cross_entropy(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append((float(loss.detach()), len(y)))
    ended = end(found, one.run_id)
    assert ended.final == weights_digest(model.state_dict())
    assert ended.outcome.step == 6
    assert column(found, "metrics", "value", split="schedule", quantity="lr") == pytest.approx(rates)
    last = losses[3:]
    wanted = sum(loss * count for loss, count in last) / 64
    assert ended.summary["train_loss_running"] == pytest.approx(wanted, rel=1e-6)
    model.eval()
    with torch.no_grad():
        x, y = feed.train
        assert ended.summary["train_accuracy"] == float((model(x).argmax(1) == y).double().mean())


def test_measuring_layers_changes_no_bit_of_the_training() -> None:
    plain, measured = spec(), spec(measures=("layers",))
    assert plain.run_id == measured.run_id
    first, second = events(plain), events(measured)
    assert end(first, plain.run_id).final == end(second, plain.run_id).final
    assert column(first, "metrics", "value") == column(second, "metrics", "value")
    steps = set(column(second, "layers", "step"))
    assert steps == {0, 1, 2, 3, 4, 6}  # 0, 1, 2, 4 and the ends of the epochs of 3 steps
    assert not column(first, "layers", "step")


def test_a_seed_alone_equals_the_seed_in_a_group() -> None:
    group = [spec(seed=seed) for seed in range(3)]
    together, alone = events(*group), events(group[2])
    run_id = group[2].run_id
    assert end(together, run_id) == end(alone, run_id)
    mine = [event for event in together if event.run_id == run_id]
    assert mine == alone


def test_plain_and_residual_start_from_the_same_tensors_and_see_the_same_batches() -> None:
    (plain,) = [e for e in events(spec(shortcut="none", depth=14)) if isinstance(e, Started)]
    (residual,) = [e for e in events(spec(shortcut="A", depth=14)) if isinstance(e, Started)]
    (projected,) = [e for e in events(spec(shortcut="B", depth=14)) if isinstance(e, Started)]
    assert plain.digests == residual.digests
    shared = {name: value for name, value in projected.digests.init.items() if ".shortcut." not in name}
    assert shared == plain.digests.init
    assert projected.digests.order == plain.digests.order
    assert projected.digests.augment == plain.digests.augment
    assert projected.parameters > plain.parameters


def test_an_absurd_learning_rate_is_a_record_of_divergence() -> None:
    one = spec(lr=1000.0, warmup_steps=0)
    ended = end(events(one), one.run_id)
    assert ended.outcome.status == "diverged"
    assert 1 <= ended.outcome.step <= 6
    assert ended.final is None
    assert "loss" in str(ended.outcome.reason)
    assert "lr" in str(ended.outcome.remedy)
    assert "train_accuracy" not in ended.summary


def test_weights_that_only_the_last_update_made_infinite_are_a_divergence_too() -> None:
    one = spec(lr=1e30, warmup_steps=0, epochs=None, steps=1)
    ended = end(events(one), one.run_id)
    assert (ended.outcome.status, ended.outcome.step) == ("diverged", 1)
    assert not {"train_accuracy", "test_accuracy"} & set(ended.summary)


def test_a_divergence_is_told_at_the_number_of_updates_that_led_to_it() -> None:
    # The first update makes the weights infinite, so the second batch's loss is the first that is not finite.
    one = spec(lr=1e30, warmup_steps=0)
    assert end(events(one), one.run_id).outcome.step == 1


def test_the_settings_of_torch_come_back() -> None:
    before = (torch.get_num_threads(), torch.backends.cudnn.deterministic, torch.backends.cudnn.allow_tf32)
    torch.set_num_threads(2)
    try:
        events(spec(epochs=None, steps=0))
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(before[0])
    assert before == (torch.get_num_threads(), torch.backends.cudnn.deterministic, torch.backends.cudnn.allow_tf32)


def test_an_error_in_the_code_is_a_record_of_failure_for_each_run_that_was_open(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    real = Feed.epoch

    def broken(self: Any, epoch: int, first: int = 0) -> Any:
        if self._spec.seed == 1:
            raise RuntimeError("the kernel is on fire")
        return real(self, epoch, first)

    monkeypatch.setattr(Feed, "epoch", broken)
    group = [spec(seed=seed) for seed in range(3)]
    found = events(*group)
    assert end(found, group[0].run_id).outcome.status == "completed"
    assert end(found, group[1].run_id).outcome.status == "failed"
    assert "the kernel is on fire" in str(end(found, group[1].run_id).outcome.reason)
    assert end(found, group[2].run_id).outcome.status == "completed"


def test_bfloat16_is_another_run() -> None:
    exact, rough = spec(), spec(precision="bfloat16")
    assert exact.run_id != rough.run_id
    assert end(events(exact), exact.run_id).final != end(events(rough), rough.run_id).final


def test_no_steps_measures_an_untrained_network() -> None:
    one = spec(epochs=None, steps=0, measures=("layers",))
    ended = end(events(one), one.run_id)
    assert ended.outcome.status == "completed"
    assert ended.summary["dh_factor_first"] == ended.summary["dh_factor_last"]
    assert "train_loss_running" not in ended.summary


def test_what_overwrites_its_input_in_an_update(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def overwriters(one: RunSpec) -> int:
        passes = Run(one, Context(), None, Standing()).passes
        assert isinstance(passes, ForwardBackward)
        return len(passes.overwriters)

    assert overwriters(spec()) == 10
    assert overwriters(spec(precision="bfloat16")) == 0
    norm = "import torch\n\ndef same(num):\n    return torch.nn.BatchNorm2d(num)\n"
    name = package(monkeypatch, tmp_path, mine=norm)
    assert overwriters(spec(norm=f"{name}.mine:same")) == 0
    assert overwriters(spec(measures=("layers",))) == 10
    assert overwriters(spec(measures=(f"{name}.probes:norms",))) == 0  # it may leave hooks


def test_a_run_that_is_over_leaves_nothing_to_the_collector() -> None:
    """Else a worker holds the data of the last run beside that of the next."""
    run = Run(spec(), Context(), None, Standing())
    for _ in run.events():
        pass
    model = weakref.ref(run.model)
    gc.disable()
    try:
        del run
        assert model() is None
    finally:
        gc.enable()
