"""A package of somebody's, for the tests: written outside the repository and imported by name."""

from __future__ import annotations

import itertools
import sys
import textwrap
from pathlib import Path
from typing import Any

import pytest

from depthscope.study.run import RunSpec

MODEL = """
import torch
from torch import nn

class Net(nn.Module):
    def __init__(self, *, depth, width, num_inputs, num_classes, dropout=0.0):
        super().__init__()
        self.stem = nn.Linear(num_inputs, width)
        self.blocks = nn.Sequential(*(nn.Linear(width, width) for _ in range(depth)))
        self.norm = nn.BatchNorm1d(width)
        self.drop = nn.Dropout(dropout)
        self.head = nn.Linear(width, num_classes)

    def forward(self, x):
        return self.head(self.drop(self.norm(torch.tanh(self.blocks(self.stem(x))))))
"""
DATA = """
import numpy as np

def points(seed, num=40):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(num, 3))
    return x, (x[:, 0] > 0).astype(int), x[:10], (x[:10, 0] > 0).astype(int)
"""
PROBES = """
def norms(model, step):
    return {"head": model.head.weight.norm(), "step": step}
"""
_names = itertools.count()


def package(monkeypatch: pytest.MonkeyPatch, folder: Path, **modules: str) -> str:
    """Write a package with these modules, make it importable, and return its name, which no other test has."""
    name = f"own_{next(_names)}"
    (folder / name).mkdir()
    for module, text in {"__init__": "", "model": MODEL, "data": DATA, "probes": PROBES, **modules}.items():
        (folder / name / f"{module}.py").write_text(textwrap.dedent(text), encoding="utf-8")
    monkeypatch.syspath_prepend(str(folder))
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    return name


def spec(name: str, **changes: Any) -> RunSpec:
    """A short run of the package's network on its data."""
    values: dict[str, Any] = {
        "backend": "torch",
        "family": f"{name}.model:Net",
        "depth": 2,
        "width": 5,
        "activation": "tanh",
        "init": "he_fan_in",
        "data": f"{name}.data:points",
        "batch_size": 16,
        "epochs": 2,
        "lr": 0.05,
    }
    return RunSpec.model_validate({**values, **changes})
