"""Weights kept beside a record: they come back, stay through stops and retries, and are refused where altered."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.record.conftest import DONE, LAYERS, PROVENANCE

from depthscope.core.errors import UserError
from depthscope.record.checkpoint import Checkpoint, read_checkpoint, tidy
from depthscope.record.events import Ended, Started, State, Weights
from depthscope.record.folder import RunFolderError, run_folder
from depthscope.record.reader import Damage, read_record
from depthscope.record.schema import Digests, Outcome, RunRecord, Timings
from depthscope.record.weights import read_weights, steps_of
from depthscope.record.writer import RunWriter, check_run_folder
from depthscope.study.run import RunSpec

TIMINGS = Timings(wall_s=1.0, cpu_s=1.0, started="2026-01-01T00:00:00+00:00")


def tensors_of(step: int) -> dict[str, Any]:
    turned = np.arange(6, dtype=np.float32).reshape(2, 3).T + step
    return {"w": turned, "odd": np.array([np.inf, np.nan, -0.0]), "num_batches_tracked": np.array(step)}


class Kept:
    """A run of ten steps under way in a folder."""

    def __init__(self, folder: Path, spec: RunSpec, resumed: Checkpoint | None = None) -> None:
        self.folder, self.spec, self.at = folder, spec, run_folder(folder, spec.run_id)
        self.writer = RunWriter(folder, spec, PROVENANCE, resumed=resumed)
        if resumed is None:
            started = Started(run_id=spec.run_id, layers=LAYERS, parameters=9, digests=Digests(), num_steps=10)
            self.writer.hear(started)

    def keep(self, *steps: int) -> None:
        for step in steps:
            self.writer.hear(Weights(run_id=self.spec.run_id, step=step, tensors=tensors_of(step)))

    def save(self, step: int) -> None:
        self.writer.save(State(run_id=self.spec.run_id, step=step, position={}, tensors={}), TIMINGS)

    def end(self, outcome: Outcome = DONE) -> RunRecord:
        record = self.writer.finish(Ended(run_id=self.spec.run_id, outcome=outcome), TIMINGS, replacing=True)
        assert record is not None
        return record

    def files(self) -> dict[str, bytes]:
        return {path.name: path.read_bytes() for path in self.at.glob("weights-*")}


def test_what_was_kept_comes_back_bit_for_bit(tmp_path: Path, spec: RunSpec) -> None:
    run = Kept(tmp_path, spec)
    run.keep(0, 10, 4)
    record = run.end()
    assert read_record(tmp_path, spec.run_id) == record
    assert steps_of(record.weights) == (0, 4, 10)
    for step in (0, 4, 10):
        found, wanted = read_weights(tmp_path, record, step), tensors_of(step)
        assert list(found) == sorted(wanted) or set(found) == set(wanted)
        for name, value in wanted.items():
            assert (found[name].dtype, found[name].tobytes()) == (value.dtype, np.array(value, order="C").tobytes())
    assert int(read_weights(tmp_path, record)["num_batches_tracked"]) == 10
    with pytest.raises(UserError, match=r"no weights of step 5\. Known steps: 0, 4, 10\."):
        read_weights(tmp_path, record, 5)


def test_a_run_without_any_says_how_to_keep_them(tmp_path: Path, spec: RunSpec) -> None:
    with pytest.raises(UserError, match=r"holds no weights\. Put 'weights' among the measures"):
        read_weights(tmp_path, Kept(tmp_path, spec).end())


@pytest.mark.parametrize("stop", ["before the checkpoint", "after it"])
def test_a_run_that_was_stopped_ends_with_the_files_of_one_that_was_not(
    stop: str, tmp_path: Path, spec: RunSpec
) -> None:
    whole = Kept(tmp_path / "whole", spec)
    whole.keep(0, 4, 8, 10)
    record = whole.end()
    cut = Kept(tmp_path / "cut", spec)
    cut.keep(0, 4)
    cut.save(4)
    if stop == "after it":
        cut.keep(8)  # again later
    (cut.at / ".weights-8.safetensors.0123456789ab").write_bytes(b"half")  # it was killed amid a write
    (cut.at / "weights-7.safetensors").write_bytes(b"of another list of steps")
    tidy(tmp_path / "cut", spec.run_id)
    saved = read_checkpoint(tmp_path / "cut", spec)
    assert isinstance(saved, Checkpoint)
    assert steps_of(saved.weights) == (0, 4)
    again = Kept(tmp_path / "cut", spec, saved)
    again.keep(8, 10)
    assert again.end().weights == record.weights
    assert again.files() == whole.files()
    assert not list(again.at.glob(".weights*"))


@pytest.mark.parametrize("how", ["altered", "gone"])
def test_a_checkpoint_whose_weights_are_not_whole_is_refused(how: str, tmp_path: Path, spec: RunSpec) -> None:
    run = Kept(tmp_path, spec)
    run.keep(0)
    run.save(1)
    path = run.at / "weights-0.safetensors"
    path.write_bytes(path.read_bytes()[:-1]) if how == "altered" else path.unlink()
    found = read_checkpoint(tmp_path, spec)
    assert isinstance(found, Damage)
    assert found.reason.startswith("weights-0.safetensors")


def test_altered_weights_are_told_where_they_are_used_and_missing_ones_are_damage(
    tmp_path: Path, spec: RunSpec
) -> None:
    run = Kept(tmp_path, spec)
    run.keep(0, 10)
    record = run.end()
    path = run.at / "weights-10.safetensors"
    path.write_bytes(path.read_bytes()[:-1] + b"\1")
    assert read_record(tmp_path, spec.run_id) == record
    with pytest.raises(UserError, match=r"weights-10\.safetensors: was altered or cut short\. Delete the run's folder"):
        read_weights(tmp_path, record)
    read_weights(tmp_path, record, 0)
    path.unlink()
    assert read_record(tmp_path, spec.run_id) == Damage(spec.run_id, "weights-10.safetensors is missing")


@pytest.mark.parametrize("status", ["diverged", "failed"])
def test_a_run_that_did_not_complete_keeps_what_it_had(status: Any, tmp_path: Path, spec: RunSpec) -> None:
    run = Kept(tmp_path, spec)
    run.keep(0, 4)
    run.save(4)
    record = run.end(Outcome(status=status, step=5, reason="so"))
    assert steps_of(record.weights) == (0, 4)
    assert int(read_weights(tmp_path, record)["num_batches_tracked"]) == 4
    found = read_checkpoint(tmp_path, spec)
    if status == "failed":  # it may go on when what failed it is mended
        assert isinstance(found, Checkpoint)
        assert dict(found.weights) == record.weights
    else:
        assert found is None


def test_a_record_names_no_file_of_another_kind(tmp_path: Path, spec: RunSpec) -> None:
    run = Kept(tmp_path, spec)
    run.keep(0)
    (run.at / "run.txt").write_text("mine")
    record = run.end().model_copy(update={"weights": {"../run.txt": "00"}})
    with pytest.raises(UserError, match="holds no weights"):
        read_weights(tmp_path, record)


def test_a_folder_in_the_place_of_weights_is_told_before_training(tmp_path: Path, spec: RunSpec) -> None:
    (run_folder(tmp_path, spec.run_id) / "weights-0.safetensors").mkdir(parents=True)
    with pytest.raises(RunFolderError, match=r"weights-0\.safetensors is a folder"):
        check_run_folder(tmp_path, spec.run_id)
