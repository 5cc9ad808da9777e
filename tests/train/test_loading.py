"""Data by name: which sets go by the seed or by the depth, and files made ready before a study."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from depthscope.core.errors import UserError
from depthscope.data import text_files
from depthscope.study.catalog import CATALOG
from depthscope.study.run import RunSpec
from depthscope.train.build import Context, depends_on_seed, load_data
from depthscope.train.check import check_runs


def spec(data: str, **fields: Any) -> RunSpec:
    """A run of a network of the user's, which any data set may feed."""
    known = {"backend": "torch", "family": "nobodys.code:network", "width": 4, "activation": "relu", "init": "torch"}
    return RunSpec.model_validate({**known, "depth": 5, "data": data, "steps": 0, **fields})


def test_data_as_long_as_the_network_is_deep() -> None:
    few = {"num_train": 12, "num_test": 4}
    for name, further in (("adding", 0), ("copy", 20)):
        for depth in (5, 9):
            data = load_data(spec(name, depth=depth, data_options=few), Context())
            assert data.train.x.shape[:2] == (12, depth + further)
    assert {name for name, entry in CATALOG["data"].items() if entry.by_depth} == {"adding", "copy"}


def test_which_sets_each_seed_draws_for_itself() -> None:
    assert {name for name in CATALOG["data"] if depends_on_seed(spec(name))} == {"spiral", "identity_task"}
    for name in ("nth_farthest", "adding", "identity_task"):
        one, other = (load_data(spec(name, seed=seed, data_options={"num_train": 9}), Context()) for seed in (0, 1))
        assert (one is other) == (name != "identity_task") == (one.digest == other.digest)


def test_a_regression_is_told_by_the_catalogue() -> None:
    for name, entry in CATALOG["data"].items():
        if name not in ("cifar10", *text_files.TEXTS):
            data = load_data(
                spec(name, data_options={"num_train": 9} if "num_train" in entry.options else {}), Context()
            )
            assert (data.task == "regression") == entry.regression


def test_texts_are_made_ready_or_told_before_a_study(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("depthscope.train.check.resolve", lambda target: None)
    asked: list[tuple[str, Path | None]] = []
    monkeypatch.setattr("depthscope.data.text.prepare", lambda name, root, progress: asked.append((name, root)))
    monkeypatch.setattr("depthscope.train.check._check_signatures", lambda spec, named: None)
    monkeypatch.setattr("depthscope.train.check._check_taken", lambda specs: None)
    monkeypatch.setattr("depthscope.train.check._distinct", lambda specs: ())
    runs = [spec("names"), spec("shakespeare"), spec("shakespeare", depth=9)]
    check_runs(runs, tmp_path, fetch=False)
    assert asked == []
    check_runs(runs, tmp_path)
    assert sorted(asked) == [("names", tmp_path), ("shakespeare", tmp_path)]
    check_runs([spec("shakespeare", data_options={"length": 128})], tmp_path)
    asked.pop()
    with pytest.raises(UserError, match=r"shakespeare: data_options\.num_train: wanted 1 to 7842 windows of 128 char"):
        check_runs([spec("shakespeare", data_options={"length": 128, "num_train": 7843})], tmp_path)
    assert len(asked) == 2
