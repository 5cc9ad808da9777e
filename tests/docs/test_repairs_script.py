"""docs/repairs.md, "In a script of your own": what its code makes is Fixup, and what it says of names is so."""

from __future__ import annotations

import re
from functools import partial
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from depthscope.models.convnet import cifar_resnet  # noqa: E402
from depthscope.models.hints import parameter_groups  # noqa: E402
from depthscope.models.init import build  # noqa: E402
from depthscope.models.mlp import mlp  # noqa: E402

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "repairs.md").read_text(encoding="utf-8")


def test_the_script_makes_fixup_with_its_groups() -> None:
    (code,) = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    made: dict[str, Any] = {}
    exec(compile(code, "repairs.md", "exec"), made)
    model, optimizer = made["model"], made["optimizer"]
    ends = [branch[-1] for branch in model.branches()]
    assert len(ends) == 27
    assert not any(model.get_parameter(f"{name}.weight").any() for name in ends)
    scalars = {id(each) for name, each in model.named_parameters() if name.endswith((".shift", ".multiplier"))}
    plain, slow = optimizer.param_groups
    assert {id(each) for each in slow["params"]} == scalars
    assert (plain["lr"], slow["lr"], slow["lr_scale"]) == (0.1, pytest.approx(0.01), 0.1)
    assert len(plain["params"]) + len(scalars) == len(list(model.parameters()))
    assert set(made["digests"]) <= set(model.state_dict())
    # By itself a family has torch's weights.
    alone = cifar_resnet(depth=8, width=4, shortcut="A_pool", norm="fixup")
    assert all(alone.get_parameter(f"{branch[-1]}.weight").any() for branch in alone.branches())


def test_on_vectors_without_weight_decay_skipinit_is_rezero() -> None:
    ends = []
    for shortcut in ("rezero", "skipinit"):
        model, _ = build(partial(mlp, depth=3, width=4, shortcut=shortcut), seed=0, init="gaussian")
        optimizer = torch.optim.Adam(parameter_groups(model, lr=0.1), lr=0.1)
        x = torch.linspace(-1, 1, 12).reshape(6, 2)
        for _ in range(3):
            optimizer.zero_grad()
            model(x).logsumexp(1).sum().backward()
            optimizer.step()
        ends.append({name: value.detach().clone() for name, value in model.named_parameters()})
    rezero, skipinit = ends
    assert rezero.keys() == skipinit.keys()
    assert all(torch.equal(rezero[name], skipinit[name]) for name in rezero)
