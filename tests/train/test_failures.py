"""Code of the user's that fails in training: the run's failure, told with its step, and nobody else's business."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from tests.train.own import package, spec
from tests.train.short import LAB

from depthscope.core.errors import LONG_WORDS, UserError, words_of
from depthscope.record.events import Ended, SafePoint
from depthscope.record.schema import Outcome
from depthscope.study.expand import Task
from depthscope.study.run import RunSpec
from depthscope.train import numpy_loop
from depthscope.train.build import Context
from depthscope.train.check import check_runs
from depthscope.train.start import run_task
from depthscope.train.usercode import asked_to_end

PROBES = """
import os
from depthscope.core.errors import UserError

class Own(BaseException):
    pass

class Evil(Exception):
    def __str__(self):
        raise SystemExit(0)

def late(step):
    if step >= 4:
        STATEMENT
    return {}

def wanders():
    os.chdir("/")
    return {}
"""


def lab(name: str, probe: str, seed: int = 0) -> RunSpec:
    values: dict[str, Any] = {**LAB, "steps": 5, "measures": (f"{name}.code:{probe}",), "seed": seed}
    return RunSpec.model_validate(values)


def outcomes(*specs: RunSpec) -> list[Outcome]:
    return [event.outcome for event in run_task(Task(specs), Context()) if isinstance(event, Ended)]


@pytest.mark.parametrize(
    ("statement", "reason"),
    [
        ("raise SystemExit(0)", "SystemExit: 0 (code.py, line 14)"),
        ("raise GeneratorExit", "GeneratorExit (code.py, line 14)"),
        ("raise Own('mine')", "Own: mine (code.py, line 14)"),
        ("raise UserError('mine')", "UserError: mine (code.py, line 14)"),
        (r"raise ValueError('a\udcff\nb')", r"ValueError: a\udcff b (code.py, line 14)"),
        ("raise Evil", "Evil: its text cannot be made, since that raises SystemExit (code.py, line 14)"),
    ],
)
def test_whatever_a_probe_raises_fails_its_runs_at_that_step(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, statement: str, reason: str
) -> None:
    name = package(monkeypatch, tmp_path, code=PROBES.replace("STATEMENT", statement))
    found = outcomes(*(lab(name, "late", seed) for seed in (0, 1)))
    assert [(each.status, each.step, each.reason) for each in found] == [("failed", 4, reason)] * 2
    assert all(each.model_dump_json() for each in found)


@pytest.mark.parametrize("error", ["SystemExit(0)", "UserError('mine')"])
def test_whatever_a_model_raises_fails_its_run_at_that_step(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, error: str
) -> None:
    pytest.importorskip("torch")
    name = package(monkeypatch, tmp_path)
    model = (tmp_path / name / "model.py").read_text()
    model = "from depthscope.core.errors import UserError\n" + model
    count = "        self.num = getattr(self, 'num', 0) + self.training\n"
    fail = f"        if self.num == 4: raise {error}\n        return self.head"
    (tmp_path / name / "model.py").write_text(model.replace("        return self.head", count + fail))
    (found,) = outcomes(spec(name))
    # The fourth pass in training mode: three updates are done.
    assert (found.status, found.step) == ("failed", 3)
    assert str(found.reason).startswith(error.partition("(")[0])


def test_an_error_of_the_users_fails_a_run_that_was_resumed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    name = package(monkeypatch, tmp_path, code=PROBES.replace("STATEMENT", "raise UserError('mine')"))
    run = lab(name, "late")
    points = (event for event in run_task(Task((run,)), Context()) if isinstance(event, SafePoint))
    (state,) = next(point for point in points if point.step == 2).take()
    # The probe raises before the run has told anything.
    (ended,) = run_task(Task((run,)), Context(), {run.run_id: state})
    assert isinstance(ended, Ended)
    assert (ended.outcome.status, ended.outcome.step) == ("failed", 4)


def test_an_interruption_passes_and_so_does_bad_input_of_ours(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    name = package(monkeypatch, tmp_path, code=PROBES.replace("STATEMENT", "raise KeyboardInterrupt"))
    with pytest.raises(KeyboardInterrupt):
        outcomes(lab(name, "late"))

    def missing(*args: object) -> None:
        raise UserError("no such file")

    monkeypatch.setattr(numpy_loop, "load_data", missing)
    with pytest.raises(UserError, match="no such file"):
        outcomes(lab(name, "late"))


def test_a_task_that_is_closed_ends_quietly(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    name = package(monkeypatch, tmp_path, code=PROBES.replace("STATEMENT", "pass"))
    events: Any = run_task(Task((lab(name, "late"),)), Context())
    next(events)
    events.close()
    assert list(events) == []


def test_the_working_directory_comes_back(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    name = package(monkeypatch, tmp_path, code=PROBES.replace("STATEMENT", "pass"))
    monkeypatch.chdir(tmp_path)
    check_runs([lab(name, "wanders")])
    assert Path(os.getcwd()) == tmp_path.resolve()
    (found,) = outcomes(lab(name, "wanders"))
    assert found.status == "completed"
    assert Path(os.getcwd()) == tmp_path.resolve()


def test_a_check_that_would_end_the_process_is_told(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    code = PROBES.replace("step >= 4", "step >= 0").replace("STATEMENT", "raise SystemExit(0)")
    name = package(monkeypatch, tmp_path, code=code)
    with pytest.raises(UserError, match=r"code:late: raised SystemExit: 0 \(code.py, line 14\)"):
        check_runs([lab(name, "late")])


def test_a_handler_of_rays_may_end_the_process() -> None:
    namespace: dict[str, Any] = {"__name__": "ray._private.worker"}
    exec("def handler(): raise SystemExit(1)", namespace)
    for function, wanted in ((namespace["handler"], True), (lambda: os.sys.exit(1), False)):  # type: ignore[attr-defined]
        with pytest.raises(SystemExit) as end:
            function()
        assert asked_to_end(end.value) is wanted


def test_words_have_an_end() -> None:
    assert len(words_of(ValueError("x" * 10**6))) == LONG_WORDS
