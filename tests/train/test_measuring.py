"""Steps at which layers are logged, what a drawing network's measurement may shift, and what the depth decided."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.train.short import LAB, TRAINED

pytest.importorskip("torch")

from depthscope.core.hashing import digest
from depthscope.record.events import Ended, Rows, Started
from depthscope.record.folder import run_folder
from depthscope.record.reader import Damage, read_record
from depthscope.record.schema import Outcome, Provenance, RunRecord, Timings
from depthscope.study.expand import Task
from depthscope.study.run import RunSpec
from depthscope.train.build import Context
from depthscope.train.start import run_task

FACTS = Provenance(
    depthscope="0.1", python="3.11", numpy="2.0", platform="Linux x86_64", processor="a chip", device="cpu", threads=1
)


def heard(fields: dict[str, Any]) -> tuple[list[int], Ended, Started]:
    """(steps at which layers were logged, the end, the beginning)."""
    found = list(run_task(Task((RunSpec.model_validate(fields),)), Context()))
    logged = {
        step for each in found if isinstance(each, Rows) and each.table == "layers" for step in each.columns["step"]
    }
    (end,) = [each for each in found if isinstance(each, Ended)]
    (start,) = [each for each in found if isinstance(each, Started)]
    return sorted(logged), end, start


def test_layers_are_logged_at_further_steps_and_nothing_else_changes() -> None:
    for fields, usual in (({**TRAINED}, [0, 1, 2, 3, 4, 6]), ({**LAB, "steps": 10}, [0, 1, 2, 4, 8, 10])):
        steps, end, _ = heard({**fields, "measures": ["layers"]})
        more, same, _ = heard({**fields, "measures": ["layers"], "measure_steps": [5, 3, 50]})
        assert (steps, more) == (usual, sorted({*usual, 3, 5}))  # the run does not get to 50
        assert end.final == same.final


def test_measuring_a_network_that_draws_shifts_no_draw() -> None:
    for shortcut in ("dropout", "stochastic_depth"):
        fields = {**TRAINED, "shortcut": shortcut}
        _, plain, _ = heard(fields)
        _, measured, _ = heard({**fields, "measures": ["layers"], "measure_steps": [5]})
        assert plain.final is not None
        assert plain.final == measured.final
        assert heard({**fields, "seed": 1})[1].final != plain.final


def test_what_the_depth_decided_is_told() -> None:
    fixup = {**TRAINED, "steps": 0, "epochs": None, "shortcut": "A_pool", "norm": "fixup", "init": "fixup"}
    assert heard(fixup)[2].derived["fixup_scale"] == pytest.approx(3**-0.5)  # L^(-1/(2m-2)), L = 3, m = 2
    assert heard({**TRAINED, "steps": 0, "epochs": None})[2].derived == {}


def record(**changes: Any) -> RunRecord:
    spec = RunSpec.model_validate({**TRAINED, **changes})
    done = Outcome(status="completed", step=6)
    times = Timings(wall_s=1.0, cpu_s=1.0, started="")
    return RunRecord(run_id=spec.run_id, spec=spec, outcome=done, provenance=FACTS, timings=times)


def test_a_record_of_an_older_version_is_intact(tmp_path: Path) -> None:
    """Its spec lacks the fields and options that came later; its checksum is of what it holds."""
    new = record()
    content = new.model_dump(mode="json", exclude={"checksum", "derived"})
    for field in ("shortcut_options", "norm_options", "init_options", "clip", "clip_options", "measure_steps"):
        del content["spec"][field]
    del content["spec"]["model_options"]["checkpointing"]
    at = run_folder(tmp_path, new.run_id)
    at.mkdir(parents=True)
    (at / "run.json").write_text(json.dumps({**content, "checksum": digest(content)}))
    old = read_record(tmp_path, new.run_id)
    assert isinstance(old, RunRecord)
    assert (old.derived, old.spec) == ({}, new.spec)
    (at / "run.json").write_text(json.dumps({**content, "derived": {"slope": 0.2}, "checksum": digest(content)}))
    assert isinstance(read_record(tmp_path, new.run_id), Damage)


def test_a_record_answers_what_asks_for_no_step_more() -> None:
    held = record(measures=["layers"], measure_steps=[3, 5])
    asked = RunSpec.model_validate({**TRAINED, "measures": ["layers"]})
    assert held.answers(asked)
    assert held.answers(asked.model_copy(update={"measure_steps": (5,)}))
    assert not held.answers(asked.model_copy(update={"measure_steps": (5, 6)}))
    assert asked.measured_as(held.spec).measure_steps == (3, 5)
