"""`depthscope curvature` of models by name."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")

Call = Callable[..., Any]

CODE = """
import torch

X, Y = torch.randn(20, 3, generator=torch.Generator().manual_seed(0)), torch.zeros(20, 1)


def net():
    print("made")
    return torch.nn.Linear(3, 1, bias=False)


def noisy():
    return torch.nn.Sequential(torch.nn.Linear(3, 1), torch.nn.Tanh()), (X, torch.randn(20, 1))


def data():
    return X, Y


def half_square(output, targets):
    return (output - targets).square().mean() / 2
"""


@pytest.fixture
def mine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "bent_models.py").write_text(CODE, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "bent_models", raising=False)
    return tmp_path


def test_values_and_json(call: Call, mine: Path) -> None:
    arguments = ("curvature", "bent_models:net", "--data", "bent_models:data", "--loss", "bent_models:half_square")
    shell = call(*arguments, "--what", "extremes,density", "--json")
    assert shell.code == 0, shell.err
    document = json.loads(shell.out)
    x = torch.randn(20, 3, generator=torch.Generator().manual_seed(0)).double().numpy()
    values = np.linalg.eigvalsh(x.T @ x / 20)
    assert document["density"]["values"] == pytest.approx(values, rel=1e-12)
    assert document["extremes"]["largest"] == pytest.approx(values[-1], rel=1e-12)
    assert document["trace"] is None
    assert document["command"].startswith("depthscope curvature bent_models:net")
    assert "made" in shell.err
    shown = call(*arguments)
    assert (shown.code, shown.out.splitlines()[0]) == (
        0, "bent_models:net: curvature of the loss, 3 parameters, 20 examples"
    )  # fmt: skip


def test_a_factorys_own_data_and_the_generators(call: Call, mine: Path) -> None:
    before = torch.get_rng_state()
    shells = [call("curvature", "bent_models:noisy", "--loss", "mse", "--json") for _ in range(2)]
    assert shells[0].code == 0, shells[0].err
    assert shells[0].out == shells[1].out
    assert torch.equal(torch.get_rng_state(), before)


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("bent_models:nte", "--data", "bent_models:data"), "Did you mean 'net'"),
        (("bent_models:net",), "no data"),
        (("bent_models:net", "--data", "bent_models:data"), "give loss_fn"),
        (("bent_models:net", "--data", "bent_models:data", "--what", "trase"), "Did you mean 'trace'"),
    ],
)
def test_bad_input_is_one_line_and_exit_code_2(call: Call, mine: Path, arguments: tuple[str, ...], told: str) -> None:
    shell = call("curvature", *arguments)
    assert shell.code == 2
    assert told in shell.err
    assert "Traceback" not in shell.err
