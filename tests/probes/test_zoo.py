"""Every network of the zoo is measured without a crash or a side effect, its residual additions counted right."""

from __future__ import annotations

import json
import math
import random
from typing import Any

import numpy as np
import pytest
import torch
from tests.zoo.member import Batch
from tests.zoo.row import row_of
from tests.zoo.table import ZOO
from torch import Tensor, nn

from depthscope.analysis.model import diagnose, expected
from depthscope.api.model import Checkup
from depthscope.core.structure import Structure
from depthscope.probes.measure.profile import profile_model
from depthscope.probes.trace import trace

SAMPLE = ("Fixup", "GPT-2", "Reformer", "Mixtral", "Mamba-2", "T5", "Swin", "Wav2Vec2, masked")
ALL = [pytest.param(name, marks=() if name in SAMPLE else pytest.mark.slow) for name in ZOO]


def bits(tensor: Tensor | None) -> Any:
    if tensor is None:
        return None
    values = tensor.detach().contiguous().flatten()
    return id(tensor), tuple(tensor.shape), tensor.requires_grad, values.view(torch.uint8).numpy().tobytes()


def state(model: nn.Module) -> dict[str, Any]:
    """Weights, buffers, gradients, flags, hooks and the global generators, bit by bit."""
    return {
        "tensors": {name: bits(each) for name, each in [*model.named_parameters(), *model.named_buffers()]},
        "state_dict": list(model.state_dict()),
        "gradients": {name: bits(each.grad) for name, each in model.named_parameters()},
        "modules": {
            name: (type(each), each.training, sorted(vars(each)), [list(getattr(each, key)) for key in _HOOKS])
            for name, each in model.named_modules()
        },
        "generators": repr((random.getstate(), np.random.get_state(), torch.get_rng_state().tolist())),  # noqa: NPY002
        "modes": (torch.is_grad_enabled(), torch.get_default_dtype(), torch.is_autocast_enabled("cpu")),
    }


_HOOKS = ("_forward_hooks", "_forward_pre_hooks", "_backward_hooks", "_backward_pre_hooks")


def unchanged(model: nn.Module, before: dict[str, Any]) -> None:
    for key, value in state(model).items():
        assert value == before[key], key


def structure(model: nn.Module, batch: Batch) -> Structure:
    copy = {key: each.clone() for key, each in batch.items()} if isinstance(batch, dict) else batch.clone()
    return trace(model, *((), copy) if isinstance(copy, dict) else ((copy,), {})).structure


@pytest.mark.parametrize("name", ALL)
@pytest.mark.filterwarnings("ignore")  # those of the models' own code
def test_zoo(name: str) -> None:
    member = ZOO[name]
    if member.library:
        pytest.importorskip("transformers", reason="made from a configuration of transformers")
    model, batch = member.make()
    for at, parameter in enumerate(model.parameters()):
        if at % 3 == 1 and parameter.requires_grad:
            parameter.grad = torch.full_like(parameter, 0.5)
    for at, module in enumerate(model.modules()):
        if at % 5 == 2:
            module.register_forward_hook(lambda *_: None)
    before = state(model)

    profile = profile_model(model, batch)
    unchanged(model, before)
    found = profile.structure
    if name != "Switch Transformers":  # its router draws: another pass asks other experts, and that is told
        assert profile.conditions[0].silent == ""  # the measured pass ran the operations of the traced one
    if member.additions is not None:
        assert len(found.additions) == (member.additions if member.counted is None else member.counted)

    multipliers = profile.values("block", "grad_multiplier")
    body = [multipliers.get(block.name, math.nan) for block in found.body]
    total = profile.value("grad_multiplier")
    if body:
        assert math.prod(body) == pytest.approx(total, rel=1e-12, nan_ok=True)
    assert all(math.isfinite(each.value) for each in profile.readings)
    silent = {each.name for each in found.boundaries} - set(profile.values("boundary", "norm"))
    assert silent <= {"input"}  # which may be integers
    assert len(profile.values("addition", "residual_ratio")) == len(found.additions)

    diagnosis = diagnose(profile)
    checkup = Checkup(profile=profile, diagnosis=diagnosis, expected=expected(found, profile), name=name)
    assert json.loads(checkup.to_json())["diagnosis"]["verdict"] == row_of(name, profile)["verdict"]


@pytest.mark.slow
@pytest.mark.parametrize("name", ZOO)
@pytest.mark.filterwarnings("ignore")
def test_the_structure_is_that_of_the_other_mode(name: str) -> None:
    """In eval mode as in train mode: dropout, batch statistics and masks change no count."""
    member = ZOO[name]
    if member.library:
        pytest.importorskip("transformers", reason="made from a configuration of transformers")
    model, batch = member.make()
    wanted = member.additions if member.counted is None else member.counted
    if wanted is not None:
        assert len(structure(model.eval(), batch).additions) == wanted
