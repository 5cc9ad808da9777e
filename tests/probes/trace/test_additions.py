"""Residual additions, gates and concatenations in networks where their numbers are known (ORACLES section 8)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from tests.zoo import cells, convolutional, mobile, resnet
from torch import Tensor, nn
from torch.nn import functional

from depthscope.core.structure import Structure
from depthscope.probes.trace import trace


def structure(model: nn.Module, *args: Any, **kwargs: Any) -> Structure:
    return trace(model, args, kwargs).structure


def counts(found: Structure) -> tuple[int, int, int]:
    return len(found.additions), found.num_concatenations, found.num_gates


@pytest.mark.parametrize(
    ("depth", "additions"),
    [pytest.param(*each, marks=pytest.mark.slow if each[0] > 50 else ()) for each in resnet.ADDITIONS.items()],
)
def test_resnets_have_one_addition_a_unit(depth: int, additions: int) -> None:
    found = structure(resnet.resnet(depth, width=2), mobile.images(16))
    assert counts(found) == (additions, 0, 0)
    # Stem, a block each unit, head.
    assert len(found.body) == additions
    assert [each.block for each in found.additions] == list(range(1, additions + 1))


@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize(("shortcut", "additions"), [("A", 9), ("B", 9), ("plain", 0)])
def test_cifar_resnet_20(shortcut: str, additions: int, training: bool) -> None:
    model = resnet.cifar_resnet(20, shortcut).train(training)
    assert counts(structure(model, mobile.images(16))) == (additions, 0, 0)


def _in_both_modes() -> list[Any]:
    nets: list[tuple[Any, int, tuple[int, int, int]]] = [
        (lambda: resnet.preactivation_resnet(2), 16, (6, 0, 0)),
        (mobile.mobilenet_v2, 32, (10, 0, 0)),
        (mobile.efficientnet_b0, 32, (9, 0, 16)),
        (convolutional.vgg, 32, (0, 0, 0)),
        (convolutional.densenet, 32, (0, 58, 0)),
        (convolutional.InceptionV3, 80, (0, 15, 0)),
    ]
    return [
        pytest.param(*net, training, marks=pytest.mark.slow if training and net[1] > 16 else ())
        for net in nets
        for training in (True, False)
    ]


@pytest.mark.parametrize(("build", "size", "wanted", "training"), _in_both_modes())
def test_image_networks(
    build: Callable[[], nn.Module], size: int, wanted: tuple[int, int, int], training: bool
) -> None:
    assert counts(structure(build().train(training), mobile.images(size))) == wanted


def _tokens() -> Tensor:
    return torch.randint(0, 11, (2, 6), generator=torch.Generator().manual_seed(0))


@pytest.mark.parametrize("post", [False, True])
def test_transformer_by_hand_has_two_a_layer(post: bool) -> None:
    """Positions, masks, biases, rotary sums, the cube in a GELU and the mean in a norm are none."""
    found = structure(cells.HandTransformer(3, post=post), _tokens(), torch.ones(2, 6))
    assert counts(found) == (6, 0, 0)
    kinds = [(op.kind, op.name) for op in found.blocks[2].ops]
    assert ("activation", "gelu") in kinds
    assert ("norm", "layer") in kinds
    assert ("activation", "tanh") not in kinds


def test_gates_are_not_residual() -> None:
    assert counts(structure(cells.Highway(3), torch.randn(2, 4))) == (0, 0, 6)
    assert counts(structure(cells.HandLSTM(), torch.randn(2, 4, 3))) == (0, 0, 3 * 4 - 1)
    assert len(structure(nn.LSTM(3, 5, num_layers=2), torch.randn(4, 2, 3)).additions) == 0
    assert len(structure(nn.GRU(3, 5, bidirectional=True), torch.randn(4, 2, 3)).additions) == 0


class Residual(nn.Module):
    """Stem, two sums by `add`, head."""

    def __init__(self, add: Callable[[nn.Module, Tensor, Tensor], Tensor]) -> None:
        super().__init__()
        self.stem, self.head = nn.Linear(3, 4), nn.Linear(4, 2)
        self.branches = nn.ModuleList(nn.Sequential(nn.Linear(4, 4), nn.Tanh(), nn.Linear(4, 4)) for _ in range(2))
        self.norm = nn.LayerNorm(4)
        self.scale, self.vector = nn.Parameter(torch.zeros(())), nn.Parameter(torch.ones(4))
        self.other = nn.Linear(4, 4)
        self.add = add

    def forward(self, x: Tensor) -> Tensor:
        x = self.stem(x)
        for branch in self.branches:
            x = self.add(self, x, branch(x))
        out: Tensor = self.head(x)
        return out


def _in_place(net: Any, x: Tensor, f: Tensor) -> Tensor:
    f += x
    return f


def _into_part(net: Any, x: Tensor, f: Tensor) -> Tensor:
    out = x.clone()
    out[:, :2] = out[:, :2] + f[:, :2]
    return out


def _interpolated(net: Any, x: Tensor, f: Tensor) -> Tensor:
    return x + torch.sigmoid(net.other(x)) * (f - x)


RESIDUAL: dict[str, Callable[[Any, Tensor, Tensor], Tensor]] = {
    "x + f": lambda net, x, f: x + f,
    "in place": _in_place,
    "alpha": lambda net, x, f: torch.add(x, f, alpha=0.5),
    "x - f": lambda net, x, f: x - f,
    "layer scale": lambda net, x, f: torch.addcmul(x, net.vector, f),
    "lerp": lambda net, x, f: torch.lerp(x, f, 0.3),
    "scaled": lambda net, x, f: 0.5**0.5 * x + 0.1 * f,
    "rezero": lambda net, x, f: x + net.scale * f,
    "dropped": lambda net, x, f: x + functional.dropout(f, 0.5),
    "post-norm": lambda net, x, f: net.norm(x + f),
    "cast": lambda net, x, f: (x.double() + f.double()).float(),
    "gated branch": lambda net, x, f: x + f * torch.sigmoid(net.other(f)),
    "cropped and padded": lambda net, x, f: functional.pad(x[:, :3], (0, 1)) + f,
    "channels of zeros": lambda net, x, f: torch.cat([x, x * 0], 1)[:, ::2] + f,
    "activated after": lambda net, x, f: functional.relu(x + f),
}
NOT_RESIDUAL: dict[str, Callable[[Any, Tensor, Tensor], Tensor]] = {
    "constant": lambda net, x, f: f + 1,
    "parameter": lambda net, x, f: f + net.vector,
    "highway": lambda net, x, f: x * torch.sigmoid(net.other(x)) + f,
    "lerp by a gate": lambda net, x, f: torch.lerp(x, f, torch.sigmoid(net.other(x))),
    "interpolated": _interpolated,
    "cube": lambda net, x, f: f + 0.1 * f**3,
    "own mean": lambda net, x, f: f - f.mean(-1, keepdim=True),
    "two projections": lambda net, x, f: net.other(f) + net.branches[0][0](f),
    "two branches": lambda net, x, f: f + net.branches[0](x),
}


@pytest.mark.parametrize("frozen", [False, True])
@pytest.mark.parametrize("add", RESIDUAL.values(), ids=RESIDUAL)
def test_forms_of_a_residual_addition(add: Callable[..., Tensor], frozen: bool) -> None:
    model = Residual(add)
    for parameter in model.parameters():
        parameter.requires_grad_(not frozen)
    found = structure(model, torch.randn(2, 3))
    assert len(found.additions) == 2
    assert [op.kind for op in found.additions[0].branch][:3] == ["linear", "activation", "linear"]
    assert all(op.kind != "linear" for op in found.additions[0].skip)


@pytest.mark.parametrize("add", NOT_RESIDUAL.values(), ids=NOT_RESIDUAL)
def test_forms_that_are_none(add: Callable[..., Tensor]) -> None:
    assert counts(structure(Residual(add), torch.randn(2, 3)))[0] == 0


def test_a_write_into_a_part_is_followed() -> None:
    """The sum goes into two columns of a clone: the skip passes by it, and the rest stands."""
    found = structure(Residual(_into_part), torch.randn(2, 3))
    assert [each.name for each in found.boundaries] == [
        "input",
        "stem",
        "branches.0:write",
        "branches.1:write",
        "output",
    ]


class Parallel(nn.Module):
    """x + attention(x) + mlp(x), by one sum of sums or one after the other."""

    def __init__(self, *, first: bool) -> None:
        super().__init__()
        self.a = nn.ModuleList(nn.Sequential(nn.Linear(4, 4), nn.ReLU(), nn.Linear(4, 4)) for _ in range(2))
        self.b = nn.ModuleList(nn.Sequential(nn.Linear(4, 4), nn.ReLU(), nn.Linear(4, 4)) for _ in range(2))
        self.first = first

    def forward(self, x: Tensor) -> Tensor:
        for a, b in zip(self.a, self.b, strict=True):
            x = (a(x) + b(x)) + x if self.first else (x + a(x)) + b(x)
        return x


def test_parallel_branches() -> None:
    assert len(structure(Parallel(first=True), torch.randn(2, 4)).additions) == 2
    assert len(structure(Parallel(first=False), torch.randn(2, 4)).additions) == 4


def _hugging_face() -> dict[str, tuple[Callable[[Any], nn.Module], tuple[int, int], str]]:
    """Name -> (model, additions and gates, input)."""
    text: dict[str, Any] = {"vocab_size": 11, "bos_token_id": None, "eos_token_id": None, "pad_token_id": 0}
    small: dict[str, Any] = {"hidden_size": 8, "num_attention_heads": 2, "intermediate_size": 16}

    def gpt2(t: Any) -> nn.Module:
        size = {"n_embd": 8, "n_head": 2, "n_layer": 12, "n_positions": 8}
        return t.GPT2LMHeadModel(t.GPT2Config(**size, **text, activation_function="gelu_new"))  # type: ignore[no-any-return]

    def bert(t: Any) -> nn.Module:
        return t.BertModel(t.BertConfig(num_hidden_layers=12, **small, **text))  # type: ignore[no-any-return]

    def vit(t: Any) -> nn.Module:
        return t.ViTModel(t.ViTConfig(num_hidden_layers=12, image_size=8, patch_size=4, **small))  # type: ignore[no-any-return]

    def llama(t: Any) -> nn.Module:
        return t.LlamaForCausalLM(t.LlamaConfig(num_hidden_layers=3, **small, **text))  # type: ignore[no-any-return]

    def neox(t: Any) -> nn.Module:
        return t.GPTNeoXForCausalLM(t.GPTNeoXConfig(num_hidden_layers=3, **small, **text))  # type: ignore[no-any-return]

    def t5(t: Any) -> nn.Module:
        size = {"d_model": 8, "d_kv": 4, "d_ff": 16, "num_layers": 2, "num_heads": 2, "decoder_start_token_id": 0}
        return t.T5ForConditionalGeneration(t.T5Config(**size, **text))  # type: ignore[no-any-return]

    return {
        "gpt2": (gpt2, (24, 0), "tokens"),
        "bert": (bert, (24, 0), "tokens"),
        "vit": (vit, (24, 0), "images"),
        "llama": (llama, (6, 3), "tokens"),
        "neox": (neox, (3, 0), "tokens"),
        "t5": (t5, (2 * 2 + 2 * 3, 0), "pairs"),
    }


@pytest.mark.slow
@pytest.mark.parametrize("name", list(_hugging_face()))
@pytest.mark.filterwarnings("ignore")
def test_hugging_face(name: str) -> None:
    transformers = pytest.importorskip("transformers")
    build, wanted, kind = _hugging_face()[name]
    inputs: dict[str, Any] = {"pixel_values": mobile.images(8)} if kind == "images" else {"input_ids": _tokens()}
    if kind != "images":
        inputs["attention_mask"] = torch.ones(2, 6)
    if kind == "pairs":
        inputs["decoder_input_ids"] = _tokens().clone()
    found = structure(build(transformers), **inputs)
    assert (len(found.additions), found.num_gates) == wanted
    assert len(found.boundaries) > {"t5": 6, "neox": 5}.get(name, 7)


class Pieces(nn.Module):
    """The halves of a tensor are written one by one, and scores get a bias made of the input that both layers share."""

    def __init__(self) -> None:
        super().__init__()
        self.stem, self.bias, self.q = nn.Linear(4, 4), nn.Linear(4, 3), nn.Linear(4, 4)

    def forward(self, x: Tensor) -> Tensor:
        x = self.stem(x)
        bias = self.bias(x)
        for _ in range(2):
            left, right = self.q(x).unsafe_chunk(2, -1)
            left.sigmoid_()
            right.mul_(left)
            x = ((right @ right.transpose(-1, -2)) + bias).softmax(-1) @ x
        return x


def test_score_biases_are_not_residual_and_pieces_are_told_apart() -> None:
    assert counts(structure(Pieces(), torch.randn(2, 3, 4))) == (0, 0, 2)
