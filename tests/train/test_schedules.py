"""Learning rates against values worked out by hand."""

from __future__ import annotations

from typing import Any

import pytest
from tests.train.short import NET

from depthscope.study.run import RunSpec
from depthscope.train.schedules import learning_rates

BASE: dict[str, Any] = {**NET, "epochs": 1}


def test_the_recipe_divides_by_ten_at_half_and_three_quarters() -> None:
    rates = learning_rates(RunSpec(**BASE, lr=0.1, schedule="step"), 400)
    assert [rates[at] for at in (0, 199, 200, 299, 300, 399)] == pytest.approx([0.1, 0.1, 0.01, 0.01, 0.001, 0.001])


def test_a_milestone_that_floats_cannot_hold_falls_on_its_step() -> None:
    # .7 * 400 is 279.99999999999994 in floating point.
    spec = RunSpec(**BASE, lr=0.1, schedule="step", schedule_options={"milestones": [0.7]})
    rates = learning_rates(spec, 400)
    assert rates[279] == pytest.approx(0.1)
    assert rates[280] == pytest.approx(0.01)


def test_warm_up_rises_in_a_line_and_ends_at_the_peak() -> None:
    rates = learning_rates(RunSpec(**BASE, lr=0.1, warmup_steps=4), 6)
    assert rates == pytest.approx([0.025, 0.05, 0.075, 0.1, 0.1, 0.1])


def test_a_constant_rate() -> None:
    assert learning_rates(RunSpec(**BASE, lr=0.3), 3) == [0.3, 0.3, 0.3]


def test_a_straight_line_reaches_zero_behind_the_last_update() -> None:
    rates = learning_rates(RunSpec(**BASE, lr=0.2, schedule="linear"), 5)
    assert rates == pytest.approx([0.2, 0.16, 0.12, 0.08, 0.04])
    assert learning_rates(RunSpec(**BASE, lr=0.2, schedule="linear", warmup_steps=2), 5)[0] == pytest.approx(0.1)


@pytest.mark.parametrize("final", [0.0, 0.1, 1.0])
def test_half_a_cosine_is_that_of_torch(final: float) -> None:
    torch = pytest.importorskip("torch")
    weight = torch.nn.Parameter(torch.zeros(1))
    optimizer = torch.optim.SGD([weight], lr=0.3)
    twin = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 12, eta_min=0.3 * final)
    wanted = []
    for _ in range(12):
        wanted.append(optimizer.param_groups[0]["lr"])
        optimizer.step()
        twin.step()
    spec = RunSpec(**BASE, lr=0.3, schedule="cosine", schedule_options={"final": final})
    assert learning_rates(spec, 12) == pytest.approx(wanted, rel=1e-9)
