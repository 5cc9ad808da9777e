"""The parts that the nets of `diagnosis_nets` are put together from: one stack of one kind of block.

A block is `after(x + scale * branch(before(x)))`, or without `x +`. A plain layer is a block without a skip. Every
net is `stem, blocks.0 ... blocks.{D-1}, final, head`, so that a fault has a name: `blocks.7`.

Shape letters: B batch, T tokens, C channels (units), N heads.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch
import torch.nn.functional as F
from torch import Tensor, nn

ACTIVATIONS: dict[str, type[nn.Module]] = {
    "relu": nn.ReLU,
    "leaky_relu": nn.LeakyReLU,
    "tanh": nn.Tanh,
    "gelu": nn.GELU,
    "silu": nn.SiLU,
    "elu": nn.ELU,
    "selu": nn.SELU,
}
UNIT_SW2 = {"relu": 2.0, "leaky_relu": 2.0, "gelu": 2.3517, "silu": 2.8107, "elu": 1.5505, "selu": 1.0, "tanh": 1.0}
"""1 / E[phi^2] at q = 1, which keeps the second moment at 1; of tanh its critical value without biases."""


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """One kind of block.

    Attributes:
        branch: parts in order: `linear` (a 3x3 convolution in a conv net), `norm`, `act`, `attention`, `drop`.
        skip: whether the block's input is added.
        before: parts that the trunk passes before the branch leaves it.
        after: parts after the addition.
        sw2: fan_in times the variance of each linear part's weights, in order; None for torch's own initialiser.
        sb2: variance of the biases.
        orthogonal: draw orthogonal weights with this sw2 as the squared gain.
        act: activation.
        norm: `layer` or `batch`.
        scale: factor on the branch.
        learned: make the factor a parameter.
        blocked: `` for none, `branch` or `block`: what runs under no_grad.
        p: of the dropout.
        adapter: add a trained low-rank pair beside each linear part and freeze the latter.
    """

    branch: tuple[str, ...]
    skip: bool = True
    before: tuple[str, ...] = ()
    after: tuple[str, ...] = ()
    sw2: tuple[float, ...] | None = None
    sb2: float = 0.0
    orthogonal: bool = False
    act: str = "relu"
    norm: str = "layer"
    scale: float = 1.0
    learned: bool = False
    blocked: str = ""
    p: float = 0.1
    adapter: int = 0

    def but(self, **changes: object) -> Recipe:
        """A copy with some fields changed."""
        return replace(self, **changes)  # type: ignore[arg-type]


def draw(layer: nn.Module, sw2: float, sb2: float, orthogonal: bool) -> None:
    """Fill a linear or convolutional layer."""
    assert isinstance(layer, (nn.Linear, nn.Conv2d))
    fan_in = layer.weight[0].numel()
    if not orthogonal:
        nn.init.normal_(layer.weight, std=math.sqrt(sw2 / fan_in))
    elif isinstance(layer, nn.Linear):
        nn.init.orthogonal_(layer.weight, gain=math.sqrt(sw2))
    else:  # delta-orthogonal, Xiao et al. 2018
        nn.init.zeros_(layer.weight)
        centre = layer.weight[:, :, layer.kernel_size[0] // 2, layer.kernel_size[1] // 2]
        with torch.no_grad():
            centre.copy_(nn.init.orthogonal_(torch.empty(centre.shape), gain=math.sqrt(sw2)))
    if layer.bias is not None:
        nn.init.normal_(layer.bias, std=math.sqrt(sb2)) if sb2 else nn.init.zeros_(layer.bias)


class Attention(nn.Module):
    """Causal self-attention with a fused qkv. x_BTC -> x_BTC."""

    def __init__(self, width: int, std: float, out_std: float) -> None:
        super().__init__()
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        for layer, spread in ((self.qkv, std), (self.out, out_std)):
            nn.init.normal_(layer.weight, std=spread)
            nn.init.zeros_(layer.bias)

    def forward(self, x_BTC: Tensor) -> Tensor:
        """See the class."""
        num_batch, num_tokens, width = x_BTC.shape
        heads_BTNC = self.qkv(x_BTC).view(num_batch, num_tokens, 3 * 4, width // 4)
        q_BNTC, k_BNTC, v_BNTC = heads_BTNC.transpose(1, 2).chunk(3, dim=1)
        mixed_BNTC = F.scaled_dot_product_attention(q_BNTC, k_BNTC, v_BNTC, is_causal=True)
        mixed: Tensor = self.out(mixed_BNTC.transpose(1, 2).reshape(num_batch, num_tokens, width))
        return mixed


class Adapted(nn.Module):
    """A frozen linear layer with a trained low-rank pair beside it (LoRA, Hu et al. 2021); the pair starts at 0."""

    def __init__(self, layer: nn.Linear, rank: int) -> None:
        super().__init__()
        self.layer = layer.requires_grad_(False)
        self.down = nn.Linear(layer.in_features, rank, bias=False)
        self.up = nn.Linear(rank, layer.out_features, bias=False)
        nn.init.zeros_(self.up.weight)

    def forward(self, x_BC: Tensor) -> Tensor:
        """See the class."""
        adapted: Tensor = self.layer(x_BC) + self.up(self.down(x_BC))
        return adapted


class Block(nn.Module):
    """See `Recipe`. x -> x of the same shape."""

    def __init__(self, recipe: Recipe, width: int, conv: bool) -> None:
        super().__init__()
        self.recipe = recipe
        left = list(recipe.sw2 or ())
        self.before, self.branch, self.after = (
            nn.Sequential(*(self._part(kind, width, conv, left) for kind in kinds))
            for kinds in (recipe.before, recipe.branch, recipe.after)
        )
        if recipe.learned:
            self.scale = nn.Parameter(torch.full((), recipe.scale))

    def _part(self, kind: str, width: int, conv: bool, left: list[float]) -> nn.Module:
        recipe = self.recipe
        match kind:
            case "linear":
                layer = nn.Conv2d(width, width, 3, padding=1) if conv else nn.Linear(width, width)
                if recipe.sw2 is not None:
                    draw(layer, left.pop(0), recipe.sb2, recipe.orthogonal)
                return Adapted(layer, recipe.adapter) if recipe.adapter and isinstance(layer, nn.Linear) else layer
            case "norm":
                return norm(recipe.norm, width, conv)
            case "act":
                return ACTIVATIONS[recipe.act]()
            case "attention":
                return Attention(width, math.sqrt(left.pop(0) / width), math.sqrt(left.pop(0) / width))
            case "drop":
                return nn.Dropout(recipe.p)
        raise AssertionError(kind)

    def forward(self, x: Tensor) -> Tensor:
        """See `Recipe`."""
        recipe = self.recipe
        with torch.no_grad() if recipe.blocked == "block" else contextlib.nullcontext():
            x = self.before(x) if recipe.before else x
            with torch.no_grad() if recipe.blocked == "branch" else contextlib.nullcontext():
                out = self.branch(x)
                if recipe.learned or recipe.scale != 1.0:
                    out = out * (self.scale if recipe.learned else recipe.scale)
            out = x + out if recipe.skip else out
            return self.after(out) if recipe.after else out


def norm(name: str, width: int, conv: bool) -> nn.Module:
    """A normaliser of one trunk's width."""
    if name == "batch":
        return nn.BatchNorm2d(width) if conv else nn.BatchNorm1d(width)
    return nn.GroupNorm(1, width) if conv else nn.LayerNorm(width)


class Down(nn.Module):
    """Halves an image and doubles its channels, without a skip: the seam between two stages."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.norm, self.conv = nn.BatchNorm2d(width), nn.Conv2d(width, 2 * width, 1)
        draw(self.conv, 2.0, 0.0, False)

    def forward(self, x_BCHW: Tensor) -> Tensor:
        """See the class."""
        return F.avg_pool2d(self.conv(F.relu(self.norm(x_BCHW))), 2)


class Tokens(nn.Module):
    """Token and position embedding. [B, T] integers -> [B, T, C]."""

    def __init__(self, num_tokens: int, length: int, width: int, std: float) -> None:
        super().__init__()
        self.token, self.position = nn.Embedding(num_tokens, width), nn.Embedding(length, width)
        for table in (self.token, self.position):
            nn.init.normal_(table.weight, std=std)

    def forward(self, tokens_BT: Tensor) -> Tensor:
        """See the class."""
        embedded: Tensor = self.token(tokens_BT) + self.position.weight
        return embedded


class Stack(nn.Module):
    """`stem, blocks, final, mean over pixels or tokens, head`."""

    def __init__(self, stem: nn.Module, blocks: Sequence[nn.Module], final: nn.Module | None, head: nn.Module) -> None:
        super().__init__()
        self.stem, self.blocks, self.head = stem, nn.ModuleList(blocks), head
        self.final = final

    def forward(self, x: Tensor) -> Tensor:
        """Logits [B, K]."""
        x = self.stem(x)
        for block in self.blocks:
            x = block(x)
        if self.final is not None:
            x = self.final(x)
        if x.dim() == 4:
            x = x.mean(dim=(2, 3))
        elif x.dim() == 3:
            x = x.mean(dim=1)
        logits: Tensor = self.head(x)
        return logits
