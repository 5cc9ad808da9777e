"""Repairs of the user's own in a study: they train as ours do, and each thing that one can get wrong is one line."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch")

from tests.train.own import package
from tests.train.short import LAB, TRAINED

from depthscope.core.errors import UserError
from depthscope.record.events import Ended, Started
from depthscope.study.run import RunSpec
from depthscope.train import torch_loop
from depthscope.train.build import Context
from depthscope.train.check import check_runs
from depthscope.train.state import Standing
from depthscope.train.usercode import code_digests

OURS_AGAIN = """
import torch
from torch import nn
from depthscope.models.shortcuts import Add, Shortcut, unweighted

def summed(site):
    return Shortcut(skip=unweighted(site), join=Add())

def batch(num, spatial):
    return nn.BatchNorm2d(num) if spatial else nn.BatchNorm1d(num, track_running_stats=False)

def rectified():
    return nn.ReLU()

def clip(model, *, limit):
    def go():
        nn.utils.clip_grad_norm_(model.parameters(), limit)
    return go
"""
CONV: dict[str, Any] = {**TRAINED, "shortcut": "A", "clip": "norm"}
VECTORS: dict[str, Any] = {
    "backend": "torch",
    "family": "mlp",
    "depth": 3,
    "width": 5,
    "norm": "batch",
    "activation": "relu",
    "init": "he_fan_in",
    "data": "spiral",
    "shortcut": "identity",
    "clip": "norm",
    "steps": 8,
}


def trained(fields: dict[str, Any]) -> tuple[dict[str, str], dict[str, float]]:
    """(digests of the initial tensors, summary) of a run."""
    spec = RunSpec.model_validate(fields)
    check_runs([spec])
    events = list(torch_loop.run([spec], Context(), {}, Standing()))
    started = next(each for each in events if isinstance(each, Started))
    ended = next(each for each in events if isinstance(each, Ended))
    assert ended.outcome.status == "completed"
    return dict(started.digests.init), dict(ended.summary)


@pytest.mark.parametrize("fields", [CONV, VECTORS], ids=["images", "vectors"])
def test_a_formula_of_ours_given_as_ones_own_is_the_same_run(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, fields: dict[str, Any]
) -> None:
    name = package(monkeypatch, tmp_path, mine=OURS_AGAIN)
    own = {
        "shortcut": f"{name}.mine:summed",
        "norm": f"{name}.mine:batch",
        "activation": f"{name}.mine:rectified",
        "clip": f"{name}.mine:clip",
        "clip_options": {"limit": 1.0},
    }
    ours = trained(fields)
    for changes in (*({field: value} for field, value in own.items() if field != "clip_options"), own):
        if "clip" in changes:
            changes = {**changes, "clip_options": own["clip_options"]}
        assert trained({**fields, **changes}) == ours
    assert set(code_digests(RunSpec.model_validate({**fields, **own}))) == {
        each for each in own.values() if isinstance(each, str)
    }


def test_a_class_of_torchs_own_will_do() -> None:
    spec = RunSpec.model_validate({**VECTORS, "activation": "torch.nn:Mish"})
    check_runs([spec])
    assert code_digests(spec) == {}  # torch's version stands in the record


DRAWS = """
import torch
from torch import nn
from depthscope.models.shortcuts import Join, Shortcut, unweighted

class Noisy(Join):
    def __init__(self, site):
        super().__init__()
        self.scale = nn.Parameter(torch.full((1,), 0.5))  # a constant: it stays

    def forward(self, s, f):
        return s + self.scale * torch.rand_like(f) * f

def noisy(site):
    return Shortcut(skip=unweighted(site), join=Noisy(site)) if site.block % 2 else None
"""


def test_one_that_draws_draws_alike_whatever_was_drawn_before(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    import torch

    name = package(monkeypatch, tmp_path, mine=DRAWS)
    for fields in (CONV, VECTORS):
        summaries = []
        for seed, measures in ((1, ()), (2, ("layers",))):
            torch.manual_seed(seed)
            summaries.append(trained({**fields, "shortcut": f"{name}.mine:noisy", "measures": measures})[1])
        assert summaries[0].items() <= summaries[1].items()


HEAD = "from torch import nn\nimport torch\nfrom depthscope.models.shortcuts import *\n"
JOIN = HEAD + "class J(Join):\n def forward(self, s, f): return {}\n"
MADE = "def go(site): return Shortcut(skip=unweighted(site), join=J())"
REFUSED = [
    ("shortcut", "def go(width): ...", "code:go: wants 'width', which nothing gives; give it a default, or a value in"),
    (
        "shortcut",
        "def go(site, rate): ...",
        "wants 'rate', which nothing gives; give it a default, or a value in short",
    ),
    ("shortcut", "def go(site): return 3", "code:go: returned 3; wanted a depthscope.models.shortcuts.Shortcut, or No"),
    ("shortcut", "def go(site): return site.stridee", "code:go: raised AttributeError: 'Site' object has no attribute"),
    (
        "shortcut",
        HEAD + "def go(site): return Shortcut(skip=unweighted(site), join=nn.Identity())",
        "Shortcut: wanted a depthscope.models.shortcuts.Join for join, got Identity().",
    ),
    (
        "shortcut",
        JOIN.format("s + f").replace("def forward", "added = {'branch': 'damped'}\n def forward") + MADE,
        "J.added: wanted 'skip' or 'branch' and the submodule of the join that gives it, got 'branch': 'damped'.",
    ),
    (
        "shortcut",
        JOIN.format("s + f[:, :3]") + MADE,
        "code:go: raised RuntimeError: The size of tensor a (4) must match",
    ),
    ("shortcut", JOIN.format("(s + f).view(-1, 4, 8, 8)") + MADE, "code:go: raised RuntimeError: "),
    (
        "shortcut",
        HEAD + "class J(Join):\n def __init__(self):\n  super().__init__()\n  self.a = nn.Parameter(torch.randn(1))\n"
        " def forward(self, s, f): return s + self.a * f\n" + MADE,
        "blocks.0.join.a: no rule of init 'he_fan_in' fills 'a' of J.",
    ),
    ("norm", "def go(num): return num", "norm code:go: returned 4; wanted a torch.nn.Module."),
    ("norm", "def go(spatial): return 1 / 0", "code:go: raised ZeroDivisionError: division by zero (code.py, line 1)"),
    (
        "activation",
        "def go(): return max",
        "activation code:go: returned <built-in function max>; wanted a torch.nn.Mod",
    ),
    (
        "activation",
        "def go(slope): ...",
        "code:go: wants 'slope', which nothing gives; give it a default. On offer: dep",
    ),
    (
        "clip",
        "def go(model): pass",
        "code:go: returned None; wanted a function without arguments, which changes gradien",
    ),
    ("clip", "def go(model): return lambda: 1 / 0", "code:go: raised ZeroDivisionError: division by zero"),
    (
        "clip",
        "def go(model): return lambda: [each.grad.mul_(float('nan')) for each in model.parameters()]",
        "code:go: made the gradient of stem.conv.weight one that is not finite.",
    ),
    (
        "clip",
        "def go(model):\n model.requires_grad_(False)\n return lambda: None",
        "code:go: set requires_grad of stem.conv.weight to False. A clip changes gradients",
    ),
    (
        "clip",
        "def go(model): return lambda: [setattr(each, 'grad', None) for each in model.parameters()]",
        "code:go: left no parameter a gradient (grad is None), so nothing would be trained.",
    ),
    (
        "clip",
        "class go:\n def __init__(self, model): ...\n def __call__(self): 1 / 0",
        "code:go: raised ZeroDivisionError",
    ),
    ("activation", HEAD + "S = nn.ReLU()\ndef go(): return S", "code:go: returned the same ReLU twice. Make a new mod"),
    ("norm", HEAD + "S = nn.Identity()\ndef go(): return S", "code:go: returned the same Identity twice."),
    (
        "shortcut",
        HEAD + "S = Add()\ndef go(site): return Shortcut(skip=unweighted(site), join=S)",
        "the same Add as join",
    ),
    (
        "shortcut",  # once in a network: what a run has learned would go into the next
        HEAD + "S = nn.Identity()\ndef go(site): return None if site.block else Shortcut(skip=S, join=Add())",
        "code:go: returned the same Identity as skip twice.",
    ),
    ("activation", HEAD + "def go(): return nn.ReLU(inplace=True)", "code:go: stem.relu changes its input in place."),
    (
        "norm",
        HEAD + "def go(): return nn.AdaptiveAvgPool2d(1)",
        "code:go: stem.bn gave torch.float32 of shape [2, 4, 1, 1]; w",
    ),
    (
        "activation",
        HEAD + "def go(): return nn.Threshold(0.0, float('nan'))",
        "code:go: stem.relu gave NaN for numbers between",
    ),
    (
        "shortcut",
        JOIN.format("(s + f).double()") + MADE,
        "code:go: blocks.0.join gave torch.float64 of shape [2, 4, 8, 8",
    ),
    (
        "shortcut",
        HEAD + "def go(site): return Shortcut(skip=nn.AdaptiveAvgPool2d(1), join=Add())",
        "code:go: blocks.0.join: the skip gave torch.float32 of shape [2, 4, 1, 1]; wanted the branch's torch.float32",
    ),
    (
        "shortcut",
        "import random\n" + JOIN.format("s + random.random() * f") + MADE,
        "code:go: draws from the global generator of random in the forward pass",
    ),
    (
        "shortcut",
        JOIN.format("s + f\n hints = {'a': 0.1}") + MADE,
        "code:go: blocks.0.join.hints: wanted a mapping of its",
    ),
    ("shortcut", JOIN.format("s + f\n initial = {'a': 1.0}") + MADE, "blocks.0.join.initial: wanted a mapping of its"),
    ("shortcut", JOIN.format("s + f\n added = None") + MADE, "J.added: wanted a mapping of 'skip' or 'branch' to the"),
    (
        "shortcut",
        JOIN.format(
            "s + f\n def __init__(self):\n  super().__init__()\n  self.foo = nn.Identity()\n added = {'branch': 'foo'}"
        )
        + MADE,
        "code:go: probe: module 'blocks.0.join.foo' was not called in the forward pass",
    ),
    (
        "shortcut",  # a hook that gives None would change nothing
        JOIN.format("s + f\n def without_branch(self, s): ...") + MADE,
        "code:go: blocks.0.join.without_branch(s): gave NoneType; wanted a tensor of shape [2, 4, 8, 8].",
    ),
]


@pytest.mark.parametrize(("field", "text", "message"), REFUSED, ids=[each[2][:30] for each in REFUSED])
def test_what_does_not_fit_is_told(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, field: str, text: str, message: str
) -> None:
    name = package(monkeypatch, tmp_path, code=text)
    with pytest.raises(UserError) as told:
        check_runs([RunSpec.model_validate({**TRAINED, "measures": ("layers", "lesion"), field: f"{name}.code:go"})])
    assert message in str(told.value).replace(f"{name}.", "")
    assert f"{name}.code:go" in str(told.value)
    assert "\n" not in str(told.value)


def test_an_option_that_is_not_taken_is_told_by_its_field(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    name = package(monkeypatch, tmp_path, mine=OURS_AGAIN)
    for field, function, offered in (("shortcut", "summed", "site"), ("norm", "batch", "num")):
        spec = {**CONV, field: f"{name}.mine:{function}", f"{field}_options": {"bais": 1}}
        with pytest.raises(UserError, match=rf"takes no argument 'bais' \({field}_options.bais\)"):
            check_runs([RunSpec.model_validate(spec)])
        with pytest.raises(UserError, match=rf"{field}_options.{offered} is given by the run itself"):
            check_runs([RunSpec.model_validate({**spec, f"{field}_options": {offered: 1}})])


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"shortcut": "a:b"}, "the NumPy laboratory's shortcut is hand-derived, and none of your own"),
        ({"clip": "a:b"}, "the NumPy laboratory's clip is hand-derived"),
        ({**CONV, "family": "densenet", "depth": 10, "shortcut": "a:b"}, "'densenet' takes 'dense', not 'a:b'"),
        ({**CONV, "family": "nfnet", "norm": "a:b", "shortcut": "nfnet"}, "'nfnet' takes 'scaled_ws', not 'a:b'"),
        (
            {**CONV, "init": "constructed", "depth": 14, "init_options": {"from_depth": 8}, "shortcut": "a:b"},
            "'constructed' takes 'none', not 'a:b'",
        ),
        ({**CONV, "optimizer": "a:b"}, "unknown optimizer 'a:b'"),
    ],
)
def test_where_none_can_be_ones_own(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match="1 validation error") as told:
        RunSpec.model_validate({**(LAB | {"steps": 3} if "family" not in changes else {}), **changes})
    assert message in str(told.value)


def test_a_family_of_ones_own_is_handed_the_function(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    family = """
from depthscope.models.mlp import mlp

def net(*, depth, width, shortcut, activation, num_inputs, num_classes):
    assert callable(shortcut) and isinstance(activation, str)
    shape = dict(num_inputs=num_inputs, num_classes=num_classes)
    return mlp(depth=depth, width=width, shortcut=shortcut, activation=activation, **shape)
"""
    name = package(monkeypatch, tmp_path, mine=OURS_AGAIN, code=family)
    fields = {**VECTORS, "norm": "none", "shortcut": f"{name}.mine:summed"}
    assert trained({**fields, "family": f"{name}.code:net"})[0] == trained(fields)[0]
