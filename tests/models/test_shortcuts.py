"""Every shortcut by every residual family: it builds, learns, names what it adds; and what each asks for."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
import torch
from tests.models.naive import pad_naive
from torch import Tensor

from depthscope.core.errors import UserError
from depthscope.models.convnet import Block, CifarResNet, cifar_resnet
from depthscope.models.hints import ParamHint, hints_of
from depthscope.models.init import build
from depthscope.models.preact import BasicBlock, Bottleneck, PreactResNet, preact_resnet
from depthscope.models.shortcuts.make import SHORTCUTS, make_shortcut
from depthscope.models.site import Site
from depthscope.study.catalog import CATALOG

Net = CifarResNet | PreactResNet

FAMILIES: dict[str, Callable[..., Net]] = {
    "cifar_resnet": partial(cifar_resnet, depth=8),
    "preact_resnet": partial(preact_resnet, depth=8),
    "bottleneck": partial(preact_resnet, depth=11, bottleneck=True),
}
BLOCK_SHORTCUTS = CATALOG["family"]["cifar_resnet"].accepts["shortcut"]

each_family = pytest.mark.parametrize("family", FAMILIES)
each_shortcut = pytest.mark.parametrize("shortcut", BLOCK_SHORTCUTS)


def network(family: str, **given: Any) -> Net:
    model, _ = build(lambda: FAMILIES[family](**{"width": 4, "num_classes": 7, **given}), seed=0)
    return model


def images(num: int = 3, size: int = 8) -> Tensor:
    return torch.randn(num, 3, size, size, generator=torch.Generator().manual_seed(0))


def test_the_catalogue_and_the_functions_agree() -> None:
    for name, entry in CATALOG["shortcut"].items():
        module, function = entry.targets["torch"].split(":")
        if module.endswith("shortcuts.named") and name != "dense":
            make = SHORTCUTS[name]
            assert make.__name__ == function
            defaults = {each.name: each.default for each in inspect.signature(make).parameters.values()}
            assert {**defaults, "site": 0} == {**entry.options, "site": 0}
    assert set(BLOCK_SHORTCUTS) <= SHORTCUTS.keys()


@each_family
@each_shortcut
def test_it_composes(family: str, shortcut: str) -> None:
    """Every parameter is reached but those whose branch starts at 0; odd images; evaluation too."""
    model = network(family, shortcut=shortcut)
    model(images(size=7)).square().sum().backward()
    assert all(parameter.grad is not None for parameter in model.parameters())
    assert model.eval()(images(1)).shape == (1, 7)
    assert len(model.additions()) == (0 if shortcut == "none" else 3)


@each_family
@pytest.mark.parametrize("norm", ["none", "layer", "group", "instance", "ws", "ws_group", "fixup"])
@pytest.mark.parametrize("shortcut", ["none", "B"])
def test_it_composes_with_every_normaliser(family: str, norm: str, shortcut: str) -> None:
    model = network(family, shortcut=shortcut, norm=norm, activation="gelu", width=16)
    model(images()).square().sum().backward()
    assert all(parameter.grad is not None for parameter in model.parameters())
    assert len(model.points()) == (11 if family == "bottleneck" else 8)


@each_family
@each_shortcut
def test_additions_name_what_is_really_added(family: str, shortcut: str) -> None:
    model = network(family, shortcut=shortcut)
    seen: dict[str, Tensor] = {}
    for name, module in model.named_modules():
        module.register_forward_hook(lambda _m, _i, out, name=name: seen.__setitem__(name, out.detach().clone()))
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(1)  # stochastic depth's three draws all keep
        model(images())
    outputs = {point.layer: point.output for point in model.points()}
    assert len(model.additions()) == len(model.branches()) == (0 if shortcut == "none" else 3)
    for each, branch in zip(model.additions(), model.branches(), strict=True):
        total = seen[each.branch] + seen[each.skip]
        assert torch.equal(total.relu() if family == "cifar_resnet" else total, seen[each.block])
        assert torch.equal(seen[outputs[each.layer]], seen[each.block])
        assert branch[-1] == each.layer


@each_family
@pytest.mark.parametrize("shortcut", ["rezero", "skipinit"])
def test_a_branch_that_starts_at_zero_leaves_the_skip_path(family: str, shortcut: str) -> None:
    model = network(family, shortcut=shortcut).eval()
    h = model.stem(images())
    for block in model.blocks:
        assert isinstance(block, Block | BasicBlock | Bottleneck)
        num_out = block.get_parameter(f"{block.weighted[-1]}.weight").shape[0]
        stride = 1 if block is model.blocks[0] else 2
        padded = pad_naive(h.double().detach().numpy(), num_out, stride)
        h = torch.from_numpy(padded).float()
        h = h.relu() if isinstance(model, CifarResNet) else h
    h = model.last(h) if isinstance(model, PreactResNet) else h
    assert torch.equal(model(images()), model.head(model.pool(h).flatten(1)))


@pytest.mark.parametrize("shortcut", [name for name in BLOCK_SHORTCUTS if name != "none"])
def test_a_branch_taken_out(shortcut: str) -> None:
    """Gates that share are shut; every other join gives what it gives of a branch of zeros."""
    site = Site(num_in=5, num_out=5, num_blocks=4)
    made = make_shortcut(shortcut, site)
    assert made is not None
    s, f = torch.randn(2, 2, 5, 4, 4, generator=torch.Generator().manual_seed(0))
    lesioned = made.join.without_branch(s)
    if shortcut in ("highway", "exclusive_gate"):
        assert torch.equal(lesioned, s)
    else:
        assert torch.equal(lesioned, made.join.eval()(s, torch.zeros_like(s)))
    handle = made.join.register_forward_hook(lambda join, args, _y: join.without_branch(args[0]))
    assert torch.equal(made.join(s, f), lesioned)
    handle.remove()
    assert not torch.equal(made.join(s, f + 1), lesioned) or shortcut in ("rezero", "skipinit")


def test_rezero_alone_keeps_weight_decay_from_its_scalar() -> None:
    assert hints_of(network("cifar_resnet", shortcut="rezero")) == {
        f"blocks.{index}.join.a": ParamHint(weight_decay=False) for index in range(3)
    }
    assert hints_of(network("cifar_resnet", shortcut="skipinit")) == {}


def test_gates_start_at_their_bias_whatever_the_initialiser() -> None:
    model = network("cifar_resnet", shortcut="highway", shortcut_options={"bias": -3.5})
    assert torch.equal(model.get_parameter("blocks.1.join.gate.bias"), torch.full((8,), -3.5))


def test_what_the_depth_decided_is_told() -> None:
    assert cifar_resnet(depth=20, width=4, shortcut="scaled").derived() == {"branch_scale": pytest.approx(1 / 3)}
    dropping = cifar_resnet(depth=20, width=4, shortcut="stochastic_depth", shortcut_options={"survival": 0.8})
    assert dropping.derived() == {"survival_last": pytest.approx(0.8)}
    assert cifar_resnet(depth=8, shortcut="A").derived() == {}


def test_a_dropped_branch_is_dropped_alike_on_a_second_draw_of_the_same_generator() -> None:
    model = network("preact_resnet", shortcut="stochastic_depth")
    with torch.random.fork_rng(devices=[]):
        outputs = [(torch.manual_seed(seed), model(images()))[1] for seed in (3, 3)]
    assert torch.equal(*outputs)


@each_family
def test_checkpointing_changes_nothing(family: str) -> None:
    gradients = []
    for checkpointing in (False, True):
        model = network(family, shortcut="stochastic_depth", checkpointing=checkpointing)
        assert model.blocks.checkpointing is checkpointing
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(2)  # drops some block and keeps some
            model(images()).square().sum().backward()
        gradients.append([parameter.grad for parameter in model.parameters()])
    assert all(a is not None and b is not None and torch.equal(a, b) for a, b in zip(*gradients, strict=True))
    assert any(not bool(each.any()) for each in gradients[1] if each is not None)


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("high_way", {}, "unknown shortcut 'high_way'. Did you mean 'highway'"),
        ("highway", {"biass": 1}, "unknown option of shortcut 'highway' 'biass'. Did you mean 'bias'.*Known: bias"),
        ("A", {"rate": 0.5}, "unknown option of shortcut 'A' 'rate'. There are none"),
        ("identity", {}, "shortcut identity: a block of this family changes its shape. Choose A, A_pool or B"),
    ],
)
def test_bad_names_and_options(name: str, options: dict[str, Any], message: str) -> None:
    with pytest.raises(UserError, match=message):
        make_shortcut(name, Site(num_in=3, num_out=6, stride=2), **options)
