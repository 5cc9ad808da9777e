"""The relational memory against its formulas, written out row by row in NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from depthscope.core.errors import UserError
from depthscope.models.init import fill
from depthscope.models.relational import Relational, relational
from depthscope.probes.lesion import lesions
from depthscope.probes.watch import profile
from depthscope.train.objective import Labels, judged

Array = NDArray[np.float64]
SHAPE: dict[str, Any] = {"width": 6, "slots": 3, "heads": 2, "num_inputs": 5, "num_classes": 4, "length": 3}
ARMS = [("none", "none"), ("identity", "none"), ("none", "layer"), ("identity", "layer")]


def drawn(**shape: Any) -> Relational:
    model = relational(**{"depth": 2, **SHAPE, **shape}).double()
    generator = torch.Generator().manual_seed(0)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.normal_(std=0.5, generator=generator)
    return model


def sequences(num: int = 4, length: int = 3) -> Tensor:
    return torch.randn(num, length, 5, dtype=torch.float64, generator=torch.Generator().manual_seed(1))


def sigmoid(z: Array) -> Array:
    return np.asarray(1 / (1 + np.exp(-z)))


def naive(model: Relational, x_TI: Array, shortcut: str, norm: str, gated: bool) -> Array:
    """The logits of one sequence: one row, one head, one pair of rows at a time."""
    state = {name: tensor.detach().numpy() for name, tensor in model.state_dict().items()}
    width, slots, heads = SHAPE["width"], SHAPE["slots"], SHAPE["heads"]
    size = width // heads

    def affine(name: str, h: Array) -> Array:
        moved: Array = state[f"{name}.weight"] @ h + state[f"{name}.bias"]
        return moved

    def behind(name: str, c: list[Array], f: list[Array]) -> list[Array]:
        rows = []
        for before, added in zip(c, f, strict=True):
            row = before + added if shortcut == "identity" else added
            if norm == "layer":
                row = (row - row.mean()) / np.sqrt(row.var() + 1e-5)
                row = row * state[f"{name}.norm.weight"] + state[f"{name}.norm.bias"]
            rows.append(row)
        return rows

    memory = [np.eye(width)[slot] for slot in range(slots)]
    for x in x_TI:
        element = affine("stem", x)
        c = [*memory, element]
        for block in range(2):
            name = f"blocks.{block}.attention"
            asked = [affine(f"{name}.qkv", row) for row in c]
            mixed = [np.zeros(width) for _ in c]
            for head in range(heads):
                part = slice(head * size, (head + 1) * size)
                for at, row in enumerate(asked):
                    q = row[:width][part]
                    scores = np.array([q @ other[width : 2 * width][part] for other in asked]) / np.sqrt(size)
                    weights = np.exp(scores - scores.max())
                    weights /= weights.sum()
                    values = [other[2 * width :][part] for other in asked]
                    mixed[at][part] = sum(weight * value for weight, value in zip(weights, values, strict=True))
            c = behind(name, c, [affine(f"{name}.proj", row) for row in mixed])
            name = f"blocks.{block}.mlp"
            c = behind(name, c, [affine(f"{name}.down", np.maximum(affine(f"{name}.up", row), 0)) for row in c])
        if not gated:
            memory = c[:-1]
            continue
        told = affine("gates.element", element)
        for slot in range(slots):
            gates = told + state["gates.memory.weight"] @ np.tanh(memory[slot])
            enter, keep = sigmoid(gates[:width]), sigmoid(gates[width:] + 1)
            memory[slot] = enter * np.tanh(c[slot]) + keep * memory[slot]
    return affine("head", np.concatenate(memory))


@pytest.mark.parametrize("gated", [True, False])
@pytest.mark.parametrize(("shortcut", "norm"), ARMS)
def test_it_is_its_formulas(shortcut: str, norm: str, gated: bool) -> None:
    model = drawn(shortcut=shortcut, norm=norm, gated=gated)
    wanted = np.stack([naive(model, each.numpy(), shortcut, norm, gated) for each in sequences()])
    np.testing.assert_allclose(model(sequences()).detach().numpy(), wanted, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("gated", [True, False])
@pytest.mark.parametrize(("shortcut", "norm"), ARMS)
def test_what_it_says_of_itself_can_be_measured(shortcut: str, norm: str, gated: bool) -> None:
    """A place for each branch at each step, and one for the memory; |F|/|x| is that of what is added there."""
    model, y = drawn(shortcut=shortcut, norm=norm, gated=gated), torch.arange(4)
    additions = model.additions()
    found = profile(model, nn.CrossEntropyLoss(), sequences(), y, points=model.points(), additions=additions)
    assert [layer.name for layer in found.layers][::5] == [
        "stem",
        "times.0.memory",
        "times.1.memory",
        "times.2.memory",
    ]
    assert len(found.layers) == 3 * (2 * 2 + 1) + 2
    assert len(found.values("dh_norm", 0)) == len(found.layers)
    assert len(additions) == len(found.values("f_over_x", 0)) == (12 if shortcut == "identity" else 0)
    assert len(model.branches()) == (4 if shortcut == "identity" else 0)
    weighted = {name for name, module in model.named_modules() if isinstance(module, nn.Linear)}
    assert {layer for branch in model.branches() for layer in branch} <= weighted


def test_the_last_measured_memory_is_what_the_head_reads() -> None:
    model = drawn()
    seen: list[Tensor] = []
    model.get_submodule("times.2.memory").register_forward_hook(lambda _m, _i, out: seen.append(out))
    model.head.register_forward_pre_hook(lambda _m, given: seen.append(given[0]))
    model(sequences())
    assert torch.equal(seen[0].flatten(1), seen[1])


def test_a_branch_can_be_taken_out_at_one_step() -> None:
    """What is left is the normalised skip, at that step alone."""
    model, y = drawn(), torch.arange(4)
    objective = Labels(guess=1.0)
    found = lesions(
        model,
        sequences(),
        y,
        lambda output, targets: judged(objective, output, targets),
        points=model.points(),
        additions=model.additions(),
    )
    losses = {row.layer: row.value for row in found.rows if row.quantity == "lesion_loss"}
    assert len(losses) == 12
    place: Any = model.get_submodule("times.1.blocks.0.mlp")
    place.branch.register_forward_hook(lambda _m, _i, out: torch.zeros_like(out))
    wanted = nn.functional.cross_entropy(model(sequences()), y).item()
    at = [point.layer for point in model.points()].index("times.1.blocks.0.mlp")
    assert losses[at] == pytest.approx(wanted, rel=1e-12)
    assert losses[at] != pytest.approx(found.intact["loss"], rel=1e-6)


def test_parameter_counts() -> None:
    """The same at every length; neither plus signs nor steps have any."""
    width, block = 6, 3 * (36 + 6) + 3 * (36 + 6)
    plain = 5 * 6 + 6 + 2 * block + (2 * 36 + 12) + 2 * 36 + (3 * 6 * 4 + 4)
    for shape in ({}, {"length": 7}, {"shortcut": "none"}):
        model = relational(depth=2, **{**SHAPE, "norm": "none", **shape})
        assert sum(each.numel() for each in model.parameters()) == plain
    ungated = relational(depth=2, **{**SHAPE, "norm": "none", "gated": False})
    assert sum(each.numel() for each in ungated.parameters()) == plain - (2 * 36 + 12) - 2 * 36
    normalised = relational(depth=2, **SHAPE)
    assert sum(each.numel() for each in normalised.parameters()) == plain + 2 * 2 * 2 * width


def test_query_key_value_and_the_gates_are_drawn_each_by_itself() -> None:
    model = relational(depth=1, width=16, slots=8)
    fill(model, 0, init="orthogonal")
    for name, parts in (("blocks.0.attention.qkv", 3), ("gates.element", 2), ("gates.memory", 2)):
        weight = model.get_submodule(name).weight
        for part in weight.detach().double().chunk(parts):  # type: ignore[operator]
            torch.testing.assert_close(part @ part.T, torch.eye(16, dtype=torch.float64), rtol=0, atol=1e-6)


@pytest.mark.parametrize(
    ("shape", "says"),
    [
        ({"depth": 0}, "depth: wanted 1 or more, got 0."),
        ({"heads": 4}, "heads: 4 does not divide the width, 6."),
        ({"slots": 7}, "slots: wanted at most the width, 6"),
        ({"shortcut": "rezero"}, "shortcut of relational"),
        ({"norm": "batch"}, "norm of relational"),
    ],
)
def test_faults_are_told(shape: dict[str, Any], says: str) -> None:
    with pytest.raises(UserError) as told:
        drawn(**shape)
    assert says in str(told.value)


def test_another_length_is_refused() -> None:
    with pytest.raises(UserError, match="wanted sequences of 3 elements, got 2"):
        drawn()(sequences(length=2))
