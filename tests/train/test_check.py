"""What is seen before anything is written: each thing that user code can get wrong is one clear line."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("torch")

from tests.train.own import MODEL, package, spec
from tests.train.short import LAB, NET

from depthscope.core.errors import UserError
from depthscope.study.run import RunSpec
from depthscope.train import trial
from depthscope.train.check import check_runs


def refusal(name: str, *others: RunSpec, **changes: Any) -> str:
    one = spec(name, **changes)
    with pytest.raises(UserError) as told:
        check_runs([one, *others])
    assert "\n" not in str(told.value)
    return str(told.value)


def test_what_fits_passes_and_moves_no_generator(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    import torch

    name = package(monkeypatch, tmp_path)
    before = torch.get_rng_state(), str(np.random.get_state())  # noqa: NPY002
    check_runs([spec(name, measures=("layers", f"{name}.probes:norms"), model_options={"dropout": 0.5})])
    assert torch.equal(before[0], torch.get_rng_state())
    assert before[1] == str(np.random.get_state())  # noqa: NPY002


FAMILIES = [
    ("def net(depth): return 3", "code:net: returned int; wanted a torch.nn.Module."),
    ("def net(depth, hidden): ...", "wants 'hidden', which nothing gives; give it a default, or a value in model_opt"),
    ("def net(depth): raise KeyError('x')", "code:net: raised KeyError: 'x' (code.py, line 2)"),
    (
        "from torch import nn\ndef net(num_inputs): return nn.Linear(num_inputs, 7)",
        "code:net: the model gave torch.float32 of shape [2, 7]; wanted logits, a tensor [2, 2]",
    ),
    (
        "from torch import nn\nclass net(nn.Linear):\n def __init__(self): super().__init__(3, 2)\n"
        " def forward(self, x): return [x]",
        "the model gave list; wanted logits",
    ),
    (
        "from torch import nn\ndef net(): return nn.Linear(4, 2)",
        "code:net: raised RuntimeError: mat1 and mat2 shapes cannot be multiplied (2x3 and 4x2)",
    ),
    (
        "from torch import nn\ndef net(): return nn.Linear(3, 2).requires_grad_(False)",
        "no parameter of the model is trainable",
    ),
    (
        "from torch import nn\nclass net(nn.Linear):\n def __init__(self): super().__init__(3, 2)\n"
        " def forward(self, x): return x[:, :2]",
        "output does not depend on its parameters",
    ),
    (
        "import torch\nfrom torch import nn\nclass net(nn.Linear):\n"
        " def __init__(self):\n  super().__init__(3, 2)\n  self.shift = nn.Parameter(torch.randn(2))",
        "shift: no rule of init 'he_fan_in' fills 'shift' of net. Use init = 'torch'",
    ),
    (
        "from torch import nn\nclass net(nn.Linear):\n def __init__(self): super().__init__(3, 2)\n"
        " def points(self): return ['weight']",
        "net.points(): wanted a tuple of depthscope.core.profile.Point, got list.",
    ),
]


@pytest.mark.parametrize(("text", "message"), FAMILIES, ids=[message[:40] for _, message in FAMILIES])
def test_a_family_that_does_not_fit(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, text: str, message: str) -> None:
    name = package(monkeypatch, tmp_path, code="\n" + text)
    assert message in refusal(name, family=f"{name}.code:net", depth=1, measures=("layers",))


@pytest.mark.parametrize(
    ("field", "values", "message"),
    [
        ("shortcut", ("none", "identity"), "so shortcut = 'identity' and 'none' would be the same network"),
        ("shortcut", ("identity", "identity"), "so shortcut = 'identity' would change nothing. Leave it away."),
        ("norm", ("batch", "batch"), "so norm = 'batch' would change nothing"),
        ("activation", ("tanh", "relu"), "takes no argument 'activation', so activation = 'relu' and 'tanh'"),
    ],
)
def test_a_field_that_the_family_does_not_take_must_not_vary(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, field: str, values: tuple[str, str], message: str
) -> None:
    name = package(monkeypatch, tmp_path)
    one, other = values
    assert message in refusal(name, spec(name, **{field: other}), **{field: one})


def test_a_done_arm_counts_where_a_field_varies(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    name = package(monkeypatch, tmp_path)
    left, done = spec(name), spec(name, activation="relu")
    check_runs([left])
    with pytest.raises(UserError, match="would be the same network"):
        check_runs([left], among=[left, done])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("def rows(): return None", "code:rows: returned NoneType; wanted a mapping"),
        ("def rows(seed): return seed / 0", "code:rows: raised ZeroDivisionError: division by zero (code.py, line 1)"),
        ("def rows(size): ...", "wants 'size', which nothing gives; give it a default, or a value in data_options"),
        ("def rows(): return [[1, 2], [3, 4]], [1, 2]", "train labels run from 1 to 2; wanted classes from 0 on"),
    ],
)
def test_data_that_does_not_fit(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, text: str, message: str) -> None:
    name = package(monkeypatch, tmp_path, code=text)
    assert message in refusal(name, data=f"{name}.code:rows")


def test_data_of_the_wrong_kind_for_a_known_family(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    name = package(monkeypatch, tmp_path)
    changes: dict[str, Any] = {"family": "cifar_resnet", "depth": 8, "norm": "batch", "activation": "relu"}
    assert "'cifar_resnet' wants images" in refusal(name, **changes)
    assert "augment 'crop_flip' wants images" in refusal(name, augment="crop_flip")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "def draw(shape): return 1",
            "gave int64 of shape [] for stem.weight; wanted numbers of shape [5, 3], or None.",
        ),
        ("def draw(shape): return None", "stem.weight: your initialiser gave None for 'weight' of Linear"),
        (
            "import numpy as np\ndef draw(shape): return np.full(shape, np.nan)",
            "values for stem.weight that are not fi",
        ),
        ("def draw(size): ...", "wants 'size', which nothing gives"),
    ],
)
def test_an_initialiser_that_does_not_fit(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, text: str, message: str
) -> None:
    name = package(monkeypatch, tmp_path, code=text)
    assert message in refusal(name, init=f"{name}.code:draw")


def test_a_gain_that_the_initialiser_does_not_take(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    name = package(monkeypatch, tmp_path, code="def draw(shape): ...")
    assert "so gain = 2 would change nothing" in refusal(name, init=f"{name}.code:draw", gain=2.0)


PROBES = [
    ("def probe(model): return 3", "code:probe: returned int; wanted a mapping of names to numbers"),
    ("def probe(model): return {'a b': 3}", "'a b' names no quantity"),
    ("def probe(model): return {'a': 'x'}", "'a' is str; wanted a mapping"),
    ("def probe(model, z): ...", "wants 'z', which nothing gives; give it a default. On offer: model, step, x, y."),
    ("def probe(): raise OSError('no')", "code:probe: raised OSError: no (code.py, line 1)"),
    ("def probe(model):\n model.head.weight.data.mul_(2)\n return {}", "code:probe: changed head.weight of the model."),
    ("def probe(model, x):\n model.train()(x)\n return {}", "changed norm.num_batches_tracked and 2 more of the model"),
    (
        "def probe(model):\n model.stem.register_forward_hook(print)\n return {}",
        "changed the hooks of stem of the model",
    ),
    ("def probe(model):\n model.stem.weight.requires_grad_(False)\n return {}", "changed stem.weight.requires_grad of"),
]


@pytest.mark.parametrize(("text", "message"), PROBES, ids=[message[:40] for _, message in PROBES])
def test_a_probe_that_does_not_fit(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, text: str, message: str) -> None:
    name = package(monkeypatch, tmp_path, code=text)
    assert message in refusal(name, measures=(f"{name}.code:probe",))


def test_two_probes_of_one_name(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    name = package(monkeypatch, tmp_path, code="def norms(model): return {}")
    message = refusal(name, measures=(f"{name}.code:norms", f"{name}.probes:norms"))
    assert "would both be called 'norms'. Rename one of them" in message


class Claim:
    def __init__(self, metric: str) -> None:
        self.name, self.metric = "mine", metric


@pytest.mark.parametrize(
    ("metric", "message"),
    [
        ("probe:norms.head", None),
        ("train_loss", None),
        ("probe:norms.haed", "unknown quantity 'norms.haed'. Did you mean 'norms.head'"),
        ("probe:other.head", "no run is measured by a probe called 'other'"),
    ],
)
def test_a_claim_about_a_probe_names_what_it_measures(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, metric: str, message: str | None
) -> None:
    name = package(monkeypatch, tmp_path)
    one = spec(name, measures=(f"{name}.probes:norms",))
    if message is None:
        check_runs([one], among=[one], claims=[Claim(metric)])
    else:
        with pytest.raises(UserError, match=message):
            check_runs([one], among=[one], claims=[Claim(metric)])


def test_a_model_with_torchs_own_initialisation_passes(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    name = package(monkeypatch, tmp_path, code=MODEL)
    check_runs([spec(name, init="torch")])
    assert "has no method additions()" in refusal(name, zero_last_gamma=True)


MLP: dict[str, Any] = {**LAB, "backend": "torch", "activation": "relu"}


@pytest.mark.parametrize(
    ("fields", "told"),
    [
        ({"norm": "group", "norm_options": {"groups": 3}}, "groups 3 does not divide 4 channels"),
        ({"norm": "none", "init": "looks_linear", "width": 5}, "Choose an even width"),
        ({**MLP, "init": "looks_linear", "width": 5}, "Choose an even width"),
        ({"norm": "none", "init": "tat", "activation": "tat"}, "Choose relu, or 14 weighted layers or more"),
        ({"norm": "none", "init": "fixup"}, "Choose a shortcut"),
        ({"norm": "instance", "data_options": {"image_size": 4}}, "more than 1 spatial element"),
        ({"norm": "none", "shortcut": "A", "zero_last_gamma": True}, "leave zero_last_gamma out"),
    ],
)
def test_what_does_not_go_together_is_told_before_anything_runs(fields: dict[str, Any], told: str) -> None:
    one = RunSpec.model_validate({**NET, "steps": 1, **fields})
    with pytest.raises(UserError, match=re.escape(told)) as error:
        check_runs([one])
    # Of a study's many networks, which.
    assert f"{one.family} (depth {one.depth}, width {one.width}" in str(error.value)


def test_a_network_is_built_at_each_depth_and_started_at_the_smallest(monkeypatch: pytest.MonkeyPatch) -> None:
    built, started = [], []
    monkeypatch.setattr(trial, "_build", lambda each: built.append((each.depth, each.init)))
    monkeypatch.setattr(trial, "_start", lambda each: started.append((each.depth, each.init)))
    base = RunSpec.model_validate({**NET, "steps": 1})
    changes: list[dict[str, Any]] = [{"depth": 14}, {}, {"seed": 1}, {"lr": 0.3}, {"init": "orthogonal", "depth": 14}]
    trial.try_known([base.model_copy(update=each) for each in changes])
    assert built == [(8, "he_fan_in"), (14, "he_fan_in")]
    assert started == [(8, "he_fan_in"), (14, "orthogonal")]


SEQUENCES = """
import numpy as np
from depthscope.data.dataset import Split, make_dataset

def made(x, y, **more):
    return make_dataset("mine", Split(x, y), facts={}, **more)

def tokens():
    return made(np.zeros((4, 6), np.int64), np.zeros((4, 6), np.int64), num_classes=2, num_tokens=2)

def told_once():
    return made(np.zeros((4, 6), np.int64), np.zeros(4, np.int64), num_classes=2, num_tokens=2)

def vectors():
    return made(np.zeros((4, 6, 3)), np.zeros(4, np.int64), num_classes=2)

def targets_by_position():
    return made(np.zeros((4, 6, 3)), np.zeros((4, 6, 2)), task="regression")
"""
GPT = {"family": "gpt", "norm": "layer", "init": "gpt2", "width": 8}
BY_HAND = {**GPT, "backend": "numpy"}
MISMATCHES = [
    ("vectors", GPT, "vectors: one example has shape [6, 3]; 'gpt' wants tokens [N, length]."),
    ("vectors", BY_HAND, "vectors: one example has shape [6, 3]; 'gpt' wants tokens [N, length]."),
    ("told_once", GPT, "told_once: labels of shape [4]; 'gpt' answers at each position, [N, length]."),
    ("told_once", BY_HAND, "told_once: labels of shape [4]; 'gpt' answers at each position, [N, length]."),
    (
        *("tokens", {"family": "relational", "init": "torch", "activation": "relu", "width": 8}),
        "tokens: one example is tokens; 'relational' wants sequences [N, length, features].",
    ),
    (
        *("targets_by_position", {"family": "recurrent", "init": "orthogonal"}),
        "targets_by_position: Split: y has shape [4, 6, 2] and type float64 beside x [4, 6, 3]; wanted labels [N], a "
        "label for each position of a sequence [N, T], or float64 targets [N, K].",
    ),
]


@pytest.mark.parametrize(("data", "fields", "says"), MISMATCHES)
def test_data_of_ones_own_that_a_family_does_not_take(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, data: str, fields: dict[str, Any], says: str
) -> None:
    name = package(monkeypatch, tmp_path, data=SEQUENCES)
    told = refusal(name, data=f"{name}.data:{data}", **{"activation": "tanh", **fields})
    assert told == f"{name}.data:{says}"
