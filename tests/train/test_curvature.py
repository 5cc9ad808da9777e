"""Along the step, and sharpness against the edge, of runs: closed forms, the steps, a training left alone."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from tests.train.short import LAB, TRAINED

torch = pytest.importorskip("torch")

from torch import Tensor, nn  # noqa: E402

from depthscope.core.streams import stream  # noqa: E402
from depthscope.data.dataset import Dataset, Split, make_dataset  # noqa: E402
from depthscope.models.hints import ParamHint  # noqa: E402
from depthscope.probes.step import FACTORS  # noqa: E402
from depthscope.record.events import Ended, Rows  # noqa: E402
from depthscope.study.expand import Task  # noqa: E402
from depthscope.study.run import RunSpec  # noqa: E402
from depthscope.train.build import Context  # noqa: E402
from depthscope.train.curvature import edge, keep_curvature, rate_at  # noqa: E402
from depthscope.train.schedules import learning_rates  # noqa: E402
from depthscope.train.start import run_task  # noqa: E402

X = stream(7, "data", "line").normal(size=(24, 3)) * np.array([3.0, 1.0, 0.2])
Y = X @ np.array([[1.0], [-2.0], [0.5]]) + 0.3
HESSIAN = 2 / len(X) * X.T @ X


def line(seed: int) -> Dataset:
    """A regression on three features of unequal size."""
    del seed
    return make_dataset("line", Split(X, Y), test=Split(X[:2], Y[:2]), task="regression", facts={})


class Line(nn.Module):
    """y = X w: its mean squared error has the Hessian 2/N X^T X, wherever w is."""

    def __init__(self, *, num_inputs: int, num_classes: int) -> None:
        super().__init__()
        self.linear = nn.Linear(num_inputs, num_classes, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        y: Tensor = self.linear(x)
        return y


LINE: dict[str, Any] = {
    "backend": "torch",
    "family": "tests.train.test_curvature:Line",
    "data": "tests.train.test_curvature:line",
    "depth": 1,
    "width": 1,
    "activation": "linear",
    "init": "torch",
    "precision": "float64",
    "optimizer": "sgd",
    "optimizer_options": {"momentum": 0.5, "weight_decay": 0.01},
    "lr": 0.02,
    "steps": 20,
    "warmup_steps": 10,
    "measures": ["sharpness", "smoothness"],
    "measure_steps": [4, 12],
}


def ran(**fields: Any) -> tuple[dict[tuple[int, str, str], float], Ended]:
    """The rows of the metrics table, and the end."""
    task = Task((RunSpec.model_validate(fields),))
    found: dict[tuple[int, str, str], float] = {}
    ended = None
    for event in run_task(task, Context()):
        if isinstance(event, Rows) and event.table == "metrics":
            names = ("step", "split", "quantity", "value")
            for step, split, quantity, value in zip(*(event.columns[name] for name in names), strict=True):
                assert (step, split, quantity) not in found
                found[step, split, quantity] = value
        elif isinstance(event, Ended):
            ended = event
    assert ended is not None
    return found, ended


def of(rows: dict[tuple[int, str, str], float], split: str, quantity: str) -> dict[int, float]:
    return {step: value for (step, where, what), value in rows.items() if (where, what) == (split, quantity)}


def test_a_line_has_closed_forms_at_every_step() -> None:
    rows, end = ran(**LINE)
    values = np.linalg.eigvalsh(HESSIAN)
    rates = learning_rates(RunSpec.model_validate(LINE), 20)
    for name, wanted in (("lambda_max", values[-1]), ("lambda_min", values[0])):
        assert of(rows, "sharpness", name) == pytest.approx(dict.fromkeys((0, 4, 12, 20), wanted), rel=1e-9)
    for name in ("residual_max", "residual_min"):
        assert max(of(rows, "sharpness", name).values()) < 1e-9
    # Of the update that follows; of step 20 none does.
    bounds = {step: 3 / rates[min(step, 19)] - 0.01 for step in (0, 4, 12, 20)}
    assert bounds[0] == pytest.approx(3 / 0.002 - 0.01)
    assert of(rows, "sharpness", "edge") == pytest.approx(bounds, rel=1e-12)
    losses, norms = of(rows, "smoothness", "loss"), of(rows, "smoothness", "gradient_norm")
    assert losses[20] < losses[12] < losses[4] < losses[0]
    smooth = of(rows, "smoothness", "smoothness")
    for step in (0, 4, 12, 20):
        assert values[0] <= smooth[step] <= values[-1] * (1 + 1e-12)
        lr = rates[min(step, 19)]
        # |g(w') - g(w)| = eta |H g|, and |H g| = smoothness |g|.
        assert of(rows, "smoothness", "change_low")[step] == pytest.approx(lr / 2 * smooth[step] * norms[step])
        assert of(rows, "smoothness", "change_high")[step] == pytest.approx(lr * 4 * smooth[step] * norms[step])
    assert end.summary["sharpness_first"] == pytest.approx(values[-1])
    assert end.summary["sharpness_ratio_last"] == pytest.approx(values[-1] / bounds[20])
    assert end.summary["smoothness_last"] == smooth[20]
    assert end.summary["smoothness_first"] == smooth[0]
    assert end.summary["smoothness_most"] == max(smooth.values())


def test_the_loss_along_the_step_is_the_one_of_descent() -> None:
    """One update of plain descent is the point eta = lr of the way."""
    rows, _ = ran(
        **{**LINE, "optimizer_options": {"momentum": 0.0}, "warmup_steps": 0, "steps": 1, "measure_steps": []}
    )
    losses, norm = of(rows, "smoothness", "loss"), of(rows, "smoothness", "gradient_norm")[0]
    smooth = of(rows, "smoothness", "smoothness")[0]
    assert of(rows, "smoothness", "loss_low")[0] <= losses[1] <= of(rows, "smoothness", "loss_high")[0]
    # The gradient of a quadratic moves by eta |H g| over eta |g|: no more than lambda.
    assert smooth * norm <= np.linalg.eigvalsh(HESSIAN)[-1] * norm
    assert FACTORS[1] == 1.0


@pytest.mark.parametrize("momentum", [0.0, 0.5, 0.9])
@pytest.mark.parametrize("decay", [0.0, 0.3])
def test_the_edge_is_where_descent_turns_unstable(momentum: float, decay: float) -> None:
    """Of torch's own SGD on x^2 l / 2, a little to either side of the bound."""
    options = {"momentum": momentum, "weight_decay": decay}
    spec = RunSpec.model_validate({**LINE, "optimizer_options": options})
    bound = edge(spec, nn.Linear(1, 1), 0.1)
    assert bound is not None

    def end(curvature: float) -> float:
        x = torch.ones((), dtype=torch.float64, requires_grad=True)
        optimizer = torch.optim.SGD([x], lr=0.1, **options)
        for _ in range(2000):
            optimizer.zero_grad()
            (curvature * x**2 / 2).backward()
            optimizer.step()
        return abs(float(x.detach()))

    assert end(bound * 0.99) < 1e-2
    assert end(bound * 1.01) > 1e2


def test_without_one_learning_rate_for_all_there_is_no_edge() -> None:
    class Own(nn.Module):
        def __init__(self, hint: ParamHint) -> None:
            super().__init__()
            self.a, self.w, self.hints = nn.Parameter(torch.ones(())), nn.Parameter(torch.ones(())), {"a": hint}

    plain = RunSpec.model_validate({**LINE, "optimizer_options": {"momentum": 0.0, "weight_decay": 0.0}})
    decayed = RunSpec.model_validate(LINE)
    assert edge(plain, Own(ParamHint(lr_scale=0.1)), 0.5) is None
    assert edge(plain, Own(ParamHint(weight_decay=False)), 0.5) == 4
    assert edge(decayed, Own(ParamHint(weight_decay=False)), 0.5) is None
    adam = RunSpec.model_validate({**LINE, "optimizer": "adam", "optimizer_options": {}})
    assert edge(adam, nn.Linear(1, 1), 0.5) is None
    clipped = plain.model_copy(update={"clip": "norm"})
    assert edge(clipped, nn.Linear(1, 1), 0.5) is None
    rows, end = ran(**adam.model_dump() | {"steps": 1, "warmup_steps": 0})
    assert not of(rows, "sharpness", "edge")
    assert "sharpness_ratio_last" not in end.summary
    assert end.summary["sharpness_last"] == pytest.approx(np.linalg.eigvalsh(HESSIAN)[-1])


def test_the_rate_of_an_untrained_network_is_the_peak() -> None:
    spec = RunSpec.model_validate({**LINE, "steps": 0, "warmup_steps": 0, "measure_steps": []})
    assert rate_at(spec, [], 0) == 0.02
    rows, end = ran(**spec.model_dump())
    assert set(of(rows, "sharpness", "lambda_max")) == {0} == set(of(rows, "smoothness", "smoothness"))
    assert end.summary["sharpness_last"] == end.summary["sharpness_first"]


def test_the_steps() -> None:
    """Step 3 was asked for; 1, 2 and 4, where layers are measured, were not."""
    rows, _ = ran(**{**TRAINED, "measures": ["smoothness"], "measure_steps": [3]})
    assert sorted(of(rows, "smoothness", "smoothness")) == [0, 3, 6]
    assert not of(rows, "sharpness", "lambda_max")


@pytest.mark.parametrize("shortcut", ["A", "stochastic_depth"])
def test_measuring_changes_no_bit_of_the_training(shortcut: str) -> None:
    base = {**TRAINED, "shortcut": shortcut, "optimizer_options": {"weight_decay": 1e-3}, "lr": 0.05, "steps": 2}
    base["epochs"] = None
    rows, measured = ran(**base, measures=["smoothness", "sharpness", "layers"])
    others, plain = ran(**base)
    assert measured.final == plain.final
    shared = {key: value for key, value in rows.items() if key[1] not in ("smoothness", "sharpness")}
    assert shared == others
    for step in (0, 2):
        largest = of(rows, "sharpness", "lambda_max")[step]
        assert largest > 0
        assert of(rows, "sharpness", "lambda_min")[step] <= largest
        assert of(rows, "smoothness", "smoothness")[step] > 0


def test_where_the_loss_is_none_there_is_no_curvature() -> None:
    """A run that diverges is measured on its way too, and ends as it would have."""
    fields = {**TRAINED, "norm": "none", "lr": 1e30}
    rows, end = ran(**fields, measures=["smoothness", "sharpness"], measure_steps=[2])
    assert end.outcome.status == "diverged"
    assert end.outcome == ran(**fields)[1].outcome
    assert not math.isfinite(of(rows, "smoothness", "loss")[2])
    assert math.isnan(of(rows, "sharpness", "lambda_max")[2])


def test_the_largest_of_all_steps_is_kept() -> None:
    summary: dict[str, float] = {}
    for step, value in ((0, math.nan), (3, 5.0), (7, 2.0), (9, math.nan)):
        keep_curvature(summary, [(step, "sharpness", "lambda_max", value), (step, "sharpness", "edge", 4.0)], step)
        if step == 7:
            assert (summary["sharpness_last"], summary["sharpness_ratio_last"]) == (2.0, 0.5)
    assert summary["sharpness_most"] == 5.0
    assert math.isnan(summary["sharpness_first"])
    assert math.isnan(summary["sharpness_last"])


def test_where_no_step_has_a_number_there_is_no_largest() -> None:
    summary: dict[str, float] = {}
    for step, value in ((0, math.nan), (3, math.inf), (7, -math.inf)):
        keep_curvature(summary, [(step, "sharpness", "lambda_max", value)], step)
        assert "sharpness_most" not in summary
    keep_curvature(summary, [(9, "sharpness", "lambda_max", -2.0)], 9)
    assert summary["sharpness_most"] == -2.0


def test_a_training_is_not_given_up_for_ends_that_do_not_settle(monkeypatch: pytest.MonkeyPatch) -> None:
    from depthscope.core.errors import UserError

    def never(*_: Any, **__: Any) -> Any:
        raise UserError("curvature: they did not settle.")

    monkeypatch.setattr("depthscope.probes.curvature.extremes", never)
    rows, end = ran(**{**LINE, "steps": 2, "warmup_steps": 0, "measure_steps": []})
    assert end.outcome.status == "completed"
    assert all(math.isnan(each) for each in of(rows, "sharpness", "lambda_max").values())
    assert len(of(rows, "sharpness", "edge")) == 2


def test_full_batch_descent_rises_to_the_edge_and_stays_about_it() -> None:
    """Cohen et al. 2021, figure 1: a small tanh network's sharpness grows from far below 2 / lr, and stops there."""
    given = {"data_options": {"points_per_arm": 16}, "optimizer": "sgd", "lr": 0.1, "width": 8}
    fields = {**LAB, **given, "backend": "torch", "optimizer_options": {"momentum": 0.0}, "steps": 600}
    rows, _ = ran(**fields, measures=["sharpness"], measure_steps=[300])
    ratios = {step: value / 20.0 for step, value in of(rows, "sharpness", "lambda_max").items()}
    assert of(rows, "sharpness", "edge") == dict.fromkeys((0, 300, 600), 20.0)
    assert ratios[0] < 0.1
    assert 0.8 < ratios[300] < 1.5
    assert 0.8 < ratios[600] < 1.5
