"""Names into objects: targets, devices, warnings."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.train.short import NET

from depthscope.core.errors import UserError
from depthscope.study.run import RunSpec
from depthscope.train import build
from depthscope.train.check import check_runs

VALUES: dict[str, Any] = {**NET, "epochs": 1}


def test_a_target_that_is_not_there_says_so() -> None:
    with pytest.raises(UserError, match="no module 'nowhere'"):
        build.resolve("nowhere:thing")
    with pytest.raises(UserError, match="has no 'thing'"):
        build.resolve("depthscope.core.depth:thing")


def test_auto_takes_a_gpu_where_there_is_one(monkeypatch: pytest.MonkeyPatch) -> None:
    torch = pytest.importorskip("torch")
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    assert build.choose_device("auto") == "cuda"
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: True)
    assert build.choose_device("auto") == "mps"
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: False)
    assert build.choose_device("auto") == "cpu"


@pytest.mark.parametrize(("flags", "warned"), [("flags: fpu avx512_bf16 amx_bf16", False), ("flags: fpu avx2", True)])
def test_bfloat16_on_a_cpu_without_it_is_warned_of(monkeypatch: pytest.MonkeyPatch, flags: str, warned: bool) -> None:
    exact, rough = RunSpec(**VALUES), RunSpec(**VALUES, precision="bfloat16")
    monkeypatch.setattr(Path, "read_text", lambda self: flags)
    assert build.check_precision([exact], "cpu") is None
    assert build.check_precision([rough], "cuda") is None
    assert (build.check_precision([exact, rough], "cpu") is not None) == warned


def test_mps_refuses_the_precisions_that_it_lacks() -> None:
    spec = RunSpec.model_validate({**VALUES, "precision": "float64"})
    with pytest.raises(UserError, match="mps has float32 alone"):
        build.check_precision([spec], "mps")


def test_images_are_loaded_once_for_all_seeds_and_the_spiral_once_for_each() -> None:
    context = build.Context()
    one, two = (RunSpec.model_validate({**VALUES, "seed": seed}) for seed in (1, 2))
    assert build.load_data(one, context) is build.load_data(two, context)
    lab = {"backend": "numpy", "family": "mlp", "norm": "none", "init": "gaussian", "data": "spiral", "steps": 0}
    points = [
        RunSpec.model_validate({**VALUES, **lab, "epochs": None, "optimizer": "adam", "seed": seed}) for seed in (1, 2)
    ]
    assert build.load_data(points[0], context).digest != build.load_data(points[1], context).digest


def test_code_that_is_not_there_is_told_before_anything_runs() -> None:
    spec = RunSpec.model_validate({**VALUES, "family": "no_such_package.models:net"})
    with pytest.raises(UserError, match="no module 'no_such_package'"):
        check_runs([spec])
