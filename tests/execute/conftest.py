"""A study of a second: small NumPy runs of every kind."""

from __future__ import annotations

import pytest

from depthscope.study.expand import Plan, expand
from depthscope.study.toml import parse

TINY = """
name = "tiny"
title = { en = "Tiny" }
seeds = 3
[base]
backend = "numpy"
family = "mlp"
activation = "tanh"
width = 4
init = "gaussian"
data = "spiral"
data_options = { points_per_arm = 8 }
optimizer = "adam"
lr = 0.01
steps = 30
measures = ["layers"]
[parts.main]
axes = { depth = [2, 4] }
[[parts.main.arms]]
name = "plain"
[[parts.main.arms]]
name = "residual"
set = { shortcut = "identity" }
"""


@pytest.fixture
def tiny_text() -> str:
    return TINY


@pytest.fixture
def tiny(tiny_text: str) -> Plan:
    return expand(parse(tiny_text, source="tiny.toml"))
