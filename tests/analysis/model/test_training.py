"""What curves of losses say, on curves whose levels are derived by hand; what comes first of them and a profile."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from tests.analysis.model.made import Around, Made, plain, pre_ln, profile

from depthscope.analysis.model import ModelDiagnosis, diagnose
from depthscope.core.readings import ModelProfile

Curve = list[tuple[int, float]]
LN_10 = math.log(10)
FALLING: Curve = [(step, 2.3 * 0.8**step) for step in range(20)]


def told(train: Curve, validation: Curve | None = None, blocks: list[Made] | None = None) -> ModelDiagnosis:
    return diagnose(profile(blocks or pre_ln(8)), train_curve=train, validation_curve=validation)


def noisy(level: float, scatter: float, count: int, fall: float = 0.0, seed: int = 0) -> Curve:
    noise = np.random.default_rng(seed).standard_normal(count)
    return [(at, level - fall * at / count + scatter * float(noise[at])) for at in range(count)]


@pytest.mark.parametrize(
    ("train", "cause"),
    [
        ([(step, 2.3 * 1.1**step) for step in range(20)], "learning rate"),
        ([(step, 2.3 if step < 5 else math.nan) for step in range(20)], "learning rate"),
        ([(0, 2.3), (1, math.inf)], "learning rate"),
        ([(step, 2.3 + (step % 2)) for step in range(20)], "learning rate"),
        ([(step, 2.3 - 0.0001 * step) for step in range(200)], "stalled"),
        ([(step, 2.3 - 0.0001 * step) for step in range(99)], ""),
        ([(step, 2.3 - 0.005 * step) for step in range(200)], ""),
        ([(step, 3.0 if step < 20 else LN_10) for step in range(200)], "stalled"),
        (FALLING, ""),
        (FALLING[:4], ""),
    ],
    ids=["grows", "nan", "inf", "swings", "stalls", "few steps", "slow", "ends at chance", "falls", "few records"],
)
def test_training_curves(train: Curve, cause: str) -> None:
    found = told(train)
    assert (found.verdict, found.cause) == (("not depth", cause) if cause else ("healthy", ""))


def test_a_loss_that_blew_up_and_ended_at_chance() -> None:
    """1.5 -> 195 at step 5 is 130-fold; ln 10 after."""
    train = [(0, 1.5), (1, 2.0), (2, 9.0), (3, 30.0), (4, 90.0), (5, 195.0), *((at, LN_10) for at in range(6, 40))]
    found = told(train)
    assert found.cause == "learning rate"
    assert found.sentence.startswith(
        "The loss rose 130-fold, from 1.5 to 195 at step 5, and ended at 2.3 (a uniform guess has 2.3): the learning "
    )
    recovered = [(step, value if step < 6 else 0.2) for step, value in train]
    assert told(recovered).verdict == "healthy"
    assert any("rose from 1.5 to 195 at step 5 and fell again" in note for note in told(recovered).notes)


def test_noise_is_no_progress_and_no_oscillation() -> None:
    """Level 2 (ln 10 is 2.3) with a scatter of .1: the best of 150 lies 10% under it, the means of windows do not."""
    causes = []
    for seed in range(40):
        flat = noisy(2.0, 0.1, 150, seed=seed)
        assert min(value for _, value in flat) < 0.93 * 2.0
        causes.append(told(flat).cause)
        assert told(noisy(2.0, 0.1, 150, fall=1.0, seed=seed)).cause == ""
    assert set(causes) == {"stalled", ""}
    assert causes.count("stalled") >= 37  # 2 sigma: 2.3% of 40 is .9


def test_a_model_that_has_learnt_does_not_stall() -> None:
    assert told([(step, 0.3) for step in range(200)]).verdict == "healthy"


ENDS = list(range(20, 201, 20))
TRAIN: Curve = [(step, 2.3 * math.exp(-step / 60)) for step in range(200)]


@pytest.mark.parametrize(
    ("validation", "cause"),
    [
        ([2.31, 2.4, 2.5, 2.7, 2.9], "no generalisation"),
        ([1.9, 1.6, 1.5, 1.7, 1.9], "no generalisation"),
        ([1.9, 1.8, 1.7, 1.6, 1.5], ""),  # it falls all the way
        ([0.5, 0.2, 0.05, 0.06, 0.06], ""),  # under the training loss
        ([0.9, 0.5, 0.4, 0.45, 0.5], ""),  # (2.3 - .475)/(2.3 - .1): most of the fall
        ([2.3, 2.4], ""),  # too few
    ],
    ids=["chance", "turns", "falls", "under", "most", "few"],
)
def test_validation_is_held_against_training_over_the_same_steps(validation: list[float], cause: str) -> None:
    found = told(TRAIN, list(zip(ENDS[-len(validation) :], validation, strict=True)))
    assert found.cause == cause
    assert found.inferred is bool(cause)


def test_a_newcomers_training_that_is_no_overfitting() -> None:
    """Training 1.5 -> .96 from step 0, validation from epoch 1: it never leaves the training loss."""
    train = [(step, 1.5 - 0.54 * step / 127) for step in range(128)]
    checks = list(zip(range(16, 129, 16), [1.34, 1.28, 1.23, 1.18, 1.12, 1.06, 0.99, 0.9], strict=True))
    assert told(train, checks).verdict == "healthy"


def test_labels_at_chance_are_said_to_be_so() -> None:
    found = told(TRAIN, [(step, 2.31) for step in ENDS])
    assert "never under ln K = 2.3" in found.sentence
    assert found.numbers["share of the fall in validation"] == pytest.approx(
        (2.3 - 2.31) / (2.3 - found.numbers["last"])
    )


# A fault that a training led to.

BLOWN: Curve = [(0, 2.3), (1, 400.0), *((at, LN_10) for at in range(2, 64))]


def course(first: list[Made], last: list[Made], **changes: object) -> ModelProfile:
    """Steps 0 and 64 of one training."""
    before, after = profile(first), profile(last, Around(step=64, conditions=changes))
    return replace(
        after, readings=before.readings + after.readings, conditions={**before.conditions, **after.conditions}
    )


def dead() -> list[Made]:
    return [replace(each, zeros=1.0 if at >= 3 else 0.5, multiplier=0.0) for at, each in enumerate(plain(8))]


def test_a_learning_rate_comes_before_what_it_led_to() -> None:
    found = diagnose(course(plain(8), dead()), train_curve=BLOWN)
    assert (found.cause, found.repair[:23]) == ("learning rate", "lower the learning rate")
    assert found.sentence.endswith("step 64 (dead layer) was not there at step 0: it follows from that.")
    assert [each.cause for each in found.others] == ["dead layer"]


def test_a_fault_that_training_led_to_is_said_to_be_so() -> None:
    found = diagnose(course(plain(8), dead()))
    assert (found.cause, found.notes[0][:26]) == ("dead layer", "this was not so at step 0:")
    assert not any("this was not so" in note for note in diagnose(course(dead(), dead())).notes)


def test_a_fault_of_the_start_comes_before_the_learning_rate() -> None:
    found = diagnose(course(dead(), dead()), train_curve=BLOWN)
    assert (found.cause, [each.cause for each in found.others]) == ("dead layer", ["learning rate"])
    assert "shows no fault" not in found.others[0].sentence


def test_values_that_are_finite_at_first_alone() -> None:
    def broken(base: ModelProfile) -> ModelProfile:
        rows = tuple(
            replace(row, value=3.0)
            if row.step == 64 and row.quantity == "nonfinite" and row.name == "blocks.5"
            else row
            for row in base.readings
        )
        return replace(base, readings=rows)

    found = diagnose(broken(course(plain(8), plain(8))))
    assert (found.cause, found.inferred) == ("learning rate", True)
    assert [each.cause for each in found.others] == ["non-finite values"]
    assert diagnose(broken(course(plain(8), plain(8), loss_scale=65536.0))).cause == "non-finite values"
