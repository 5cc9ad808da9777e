"""Probes of the user's: what they measure, and that they change no bit of a run; models that draw."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")
from tests.train.own import package, spec  # noqa: E402
from tests.train.short import LAB  # noqa: E402
from torch import nn  # noqa: E402

from depthscope.probes.points import find_points  # noqa: E402
from depthscope.record.events import Ended, Rows, SafePoint, Started  # noqa: E402
from depthscope.study.expand import Task  # noqa: E402
from depthscope.study.run import RunSpec  # noqa: E402
from depthscope.train.build import Context  # noqa: E402
from depthscope.train.start import run_task  # noqa: E402

CODE = """
import numpy as np, random, torch

def busy(model, x, y, step):
    x.zero_(), random.random(), np.random.rand(3), torch.rand(5)
    loss = torch.nn.functional.cross_entropy(model(x), y)
    loss.backward()
    return {"gradient": model.head.weight.grad.norm(), "draw": torch.rand(()), "step": step}

def lab(stack, params, x, y, step):
    return {"norm": np.linalg.norm(params["head.weight"]), "depth": stack.depth, "rows": len(x) + len(y), "step": step}

def writes(params):
    params["head.weight"][:] = 0
    return {}
"""


def events(*specs: RunSpec) -> list[Any]:
    return [event for event in run_task(Task(specs), Context()) if not isinstance(event, SafePoint)]


def probed(found: list[Any], quantity: str) -> list[tuple[int, float]]:
    rows = []
    for event in found:
        if isinstance(event, Rows) and event.table == "metrics":
            for at, split in enumerate(event.columns["split"]):
                if split == "probe" and event.columns["quantity"][at] == quantity:
                    rows.append((event.columns["step"][at], event.columns["value"][at]))
    return rows


def ends(found: list[Any]) -> list[Ended]:
    return [event for event in found if isinstance(event, Ended)]


@pytest.mark.parametrize("dropout", [0.0, 0.3])
def test_a_probe_changes_no_bit_of_a_run(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, dropout: float) -> None:
    name = package(monkeypatch, tmp_path, code=CODE)
    options = {"model_options": {"dropout": dropout}}
    plain = spec(name, **options)
    measured = spec(name, measures=("layers", f"{name}.code:busy"), **options)
    assert plain.run_id == measured.run_id
    first, second, again = events(plain), events(measured), events(measured)
    assert ends(first)[0].outcome.status == "completed"
    assert ends(first)[0].final == ends(second)[0].final
    assert {key: value for key, value in ends(second)[0].summary.items() if key in ends(first)[0].summary} == dict(
        ends(first)[0].summary
    )
    # 40 examples in batches of 16: 3 steps an epoch. Its own draws repeat with the run.
    assert [step for step, _ in probed(second, "busy.step")] == [0, 1, 2, 3, 4, 6]
    assert probed(second, "busy.draw") == probed(again, "busy.draw")
    assert ends(second)[0].summary["probe:busy.step"] == 6.0
    assert len({value for _, value in probed(second, "busy.draw")}) == 6


def test_dropout_draws_by_seed_and_step_alone(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    name = package(monkeypatch, tmp_path)
    with_dropout = spec(name, model_options={"dropout": 0.3})
    before = torch.get_rng_state()
    (one,) = ends(events(with_dropout))
    assert torch.equal(before, torch.get_rng_state())
    torch.rand(7)  # wherever the caller's generator stands
    (same,) = ends(events(with_dropout))
    (none,) = ends(events(spec(name)))
    (other,) = ends(events(spec(name, model_options={"dropout": 0.3}, seed=1)))
    assert one.final == same.final
    assert len({one.final, none.final, other.final}) == 3


def test_a_probe_that_changes_the_model_in_mid_run_fails_the_run(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    code = "def late(model, step):\n if step == 2: model.stem.bias.data += 1\n return {}"
    name = package(monkeypatch, tmp_path, code=code)
    (ended,) = ends(events(spec(name, measures=(f"{name}.code:late",))))
    assert ended.outcome.status == "failed"
    assert "changed stem.bias of the model" in str(ended.outcome.reason)


def lab_spec(**changes: Any) -> RunSpec:
    values: dict[str, Any] = {**LAB, "steps": 5}
    return RunSpec.model_validate({**values, **changes})


def test_the_laboratory_is_probed_seed_by_seed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    name = package(monkeypatch, tmp_path, code=CODE)
    plain = [lab_spec(seed=seed) for seed in (0, 1)]
    measured = [lab_spec(seed=seed, measures=(f"{name}.code:lab",)) for seed in (0, 1)]
    first, second = events(*plain), events(*measured)
    assert [each.final for each in ends(first)] == [each.final for each in ends(second)]
    assert [each.summary["probe:lab.depth"] for each in ends(second)] == [3.0, 3.0]
    assert [each.summary["probe:lab.rows"] for each in ends(second)] == [48.0, 48.0]
    assert ends(second)[0].summary["probe:lab.norm"] != ends(second)[1].summary["probe:lab.norm"]
    assert [step for step, _ in probed(second, "lab.step")] == [step for step in (0, 1, 2, 4, 5) for _ in "01"]


def test_the_laboratorys_arrays_cannot_be_written(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    name = package(monkeypatch, tmp_path, code=CODE)
    (ended,) = ends(events(lab_spec(measures=(f"{name}.code:writes",))))
    assert ended.outcome.status == "failed"
    assert "read-only" in str(ended.outcome.reason)


def test_data_of_ones_own_in_the_laboratory(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    name = package(monkeypatch, tmp_path)
    found = events(*(lab_spec(data=f"{name}.data:points", data_options={"num": 24}, seed=seed) for seed in (0, 1)))
    assert [each.outcome.status for each in ends(found)] == ["completed", "completed"]
    started = [event for event in found if isinstance(event, Started)]
    # The function takes the seed: each run has its own points, and says which.
    assert started[0].digests.data != started[1].digests.data
    assert set(started[0].digests.code) == {f"{name}.data:points"}


def test_data_without_a_seed_is_shared(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    code = "import numpy as np\ndef fixed(): return np.eye(3)[[0, 1, 2, 0]], np.array([0, 1, 1, 0])"
    name = package(monkeypatch, tmp_path, code=code)
    found = events(*(spec(name, data=f"{name}.code:fixed", seed=seed) for seed in (0, 1)))
    started = [event for event in found if isinstance(event, Started)]
    assert started[0].digests.data == started[1].digests.data
    assert [each.outcome.status for each in ends(found)] == ["completed", "completed"]
    # Without a test split there is no test figure.
    assert "test_accuracy" not in ends(found)[0].summary


class Tangled(nn.Module):
    """Registered in another order than called; one layer is called twice, one never, one gives no tensor."""

    def __init__(self) -> None:
        super().__init__()
        self.last = nn.Linear(4, 2)
        self.first = nn.Conv1d(1, 1, 3, padding=1)
        self.twice = nn.Linear(4, 4)
        self.never = nn.Linear(4, 4)
        self.norm = nn.BatchNorm1d(4)

    def forward(self, x: Any) -> Any:
        h = self.norm(self.first(x[:, None])[:, 0])
        return self.last(self.twice(self.twice(h)))


def test_layers_are_found_in_the_order_of_a_pass() -> None:
    model = Tangled()
    before = {name: value.clone() for name, value in model.state_dict().items()}
    points = find_points(model, torch.from_numpy(np.ones((2, 4), np.float32)))
    assert [(point.layer, point.kind, point.weight) for point in points] == [
        ("first", "conv", "first.weight"),
        ("last", "linear", "last.weight"),
    ]
    assert model.training
    assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items())
    assert not model.last._forward_hooks
