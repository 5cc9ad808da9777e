"""What is said of a variant's end against a uniform guess: at chance is a band, and above it is another thing."""

from __future__ import annotations

import math
from types import SimpleNamespace
from typing import Any

import pytest

from depthscope.analysis.fates import fates
from depthscope.analysis.variants import headline
from depthscope.record.schema import Outcome
from depthscope.record.variants import VariantRun

LN27 = math.log(27)


def ended(*losses: float) -> list[VariantRun]:
    """Runs of one variant that end with these losses over 27 classes, a seed each."""
    first: Any = SimpleNamespace(conditions={"train": SimpleNamespace(num_classes=27)})
    outcome = Outcome(status="completed", step=30)
    return [
        VariantRun(arm="a", seed=seed, outcome=outcome, figures={"train_loss": loss}, first=first)
        for seed, loss in enumerate(losses)
    ]


@pytest.mark.parametrize(
    ("losses", "told", "above"),
    [
        ((0.97 * LN27,), False, False),
        ((0.99 * LN27,), True, False),
        ((LN27,), True, False),
        ((1.01 * LN27,), True, False),
        ((1.03 * LN27,), True, True),
        ((8.849,), True, True),
        ((0.99 * LN27, 1.09 * LN27), True, True),  # the mean is 1.04
    ],
)
def test_at_chance_is_a_band(losses: tuple[float, ...], told: bool, above: bool) -> None:
    (fate,) = fates(ended(*losses))
    assert (fate.chance is not None, fate.above_chance) == (told, above)
    if told:
        assert fate.chance == pytest.approx((math.fsum(losses) / len(losses), LN27), rel=1e-12)


def test_a_loss_far_above_a_guess_is_not_called_chance() -> None:
    high = fates(ended(8.849))
    assert headline([], high, "en") == [
        "“a” ends above chance (training loss 8.849, a uniform guess has 3.296): "
        "after these steps it is worse than a guess."
    ]
    assert headline([], high, "zh") == [
        "“a”结束时高于随机水平（训练损失 8.849，均匀猜测为 3.296）：训练这些步后仍不如猜测。"
    ]
    assert headline([], fates(ended(LN27)), "en") == [
        "“a” is at chance (training loss 3.296, a uniform guess has 3.296): it did not train."
    ]
    assert headline([], fates(ended(0.9 * LN27)), "en") == []
