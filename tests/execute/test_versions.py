"""A run that goes on with another version than it was stopped with: told, and flagged in its record."""

from __future__ import annotations

from pathlib import Path

import pytest

from depthscope.execute import portion
from depthscope.execute.order import Order, Settings
from depthscope.execute.tell import Note, told_to
from depthscope.execute.worker import do_task
from depthscope.record.events import Progress, Resumed
from depthscope.record.provenance import provenance
from depthscope.record.reader import read_record
from depthscope.record.schema import Provenance, RunRecord
from depthscope.study.expand import Plan
from depthscope.train.build import Context


class Stop(Exception):
    pass


def test_another_numpy_since_the_stop(tiny: Plan, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (spec, *_) = tiny.tasks[0].specs
    task = tiny.tasks[0].only({spec.run_id})
    assert task is not None

    def order(token: str) -> Order:
        return Order(task=task, folder=tmp_path, context=Context(), settings=Settings(min_gap_s=0), token=token)

    def old(*, device: str, threads: int, group_size: int = 1) -> Provenance:
        found = provenance(device=device, threads=threads, group_size=group_size)
        return found.model_copy(update={"numpy": "1.26.0"})

    def stop(word: object) -> None:
        if isinstance(word, Progress) and word.step == 20:
            raise Stop

    monkeypatch.setattr(portion, "TELL_EVERY_S", 0.0)
    monkeypatch.setattr(portion, "provenance", old)
    with told_to(stop), pytest.raises(Stop):
        do_task(order("first"))
    monkeypatch.setattr(portion, "provenance", provenance)
    heard: list[object] = []
    with told_to(heard.append):
        do_task(order("second"))
    (resumed,) = [word for word in heard if isinstance(word, Resumed)]
    assert resumed.step == 16  # the last safe point before step 20
    (note,) = [word.text for word in heard if isinstance(word, Note)]
    assert note.startswith(
        f"run {spec.run_id} goes on from its checkpoint with a change: to step 16 with numpy 1.26.0,"
    )
    record = read_record(tmp_path, spec.run_id)
    assert isinstance(record, RunRecord)
    assert [(part.step, part.numpy, part.differs) for part in record.provenance.resumed] == [(16, "1.26.0", ("numpy",))]


def test_a_run_whose_code_changed_since_the_stop_starts_anew(
    tiny: Plan, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (spec, *_) = tiny.tasks[0].specs
    task = tiny.tasks[0].only({spec.run_id})
    assert task is not None

    def order(folder: str, token: str) -> Order:
        folder_at = tmp_path / folder
        folder_at.mkdir(exist_ok=True)
        return Order(task=task, folder=folder_at, context=Context(), settings=Settings(min_gap_s=0), token=token)

    def stop(word: object) -> None:
        if isinstance(word, Progress) and word.step == 20:
            raise Stop

    monkeypatch.setattr(portion, "TELL_EVERY_S", 0.0)
    with told_to(stop), pytest.raises(Stop):
        do_task(order("stopped", "first"))
    monkeypatch.setattr("depthscope.train.numpy_loop.code_digests", lambda spec: {"my.code:probe": "0" * 16})
    heard: list[object] = []
    with told_to(heard.append):
        do_task(order("stopped", "second"))
    assert not any(isinstance(word, Resumed) for word in heard)
    (note,) = [word.text for word in heard if isinstance(word, Note)]
    assert note.endswith("its model, initialiser, probe or data has been changed since; it starts anew.")
    do_task(order("whole", "third"))
    stopped, whole = (read_record(tmp_path / folder, spec.run_id) for folder in ("stopped", "whole"))
    assert isinstance(stopped, RunRecord)
    assert isinstance(whole, RunRecord)
    assert (stopped.tables, stopped.digests.final) == (whole.tables, whole.digests.final)
