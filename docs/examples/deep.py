"""The networks of the README: 12 and 30 layers of ReLU with torch's default initialiser, with and without a skip."""

import torch
from torch import nn


class Deep(nn.Module):
    """`depth` layers of `width`, each ReLU(W x + b), or x + ReLU(W x + b)."""

    def __init__(self, *, skip: bool, depth: int, width: int = 64) -> None:
        super().__init__()
        self.stem = nn.Linear(20, width)
        self.layers = nn.ModuleList([nn.Linear(width, width) for _ in range(depth)])
        self.head = nn.Linear(width, 4)
        self.skip = skip

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Class scores [B, 4] of inputs [B, 20]."""
        x = torch.relu(self.stem(x))
        for layer in self.layers:
            y = torch.relu(layer(x))
            x = x + y if self.skip else y
        out: torch.Tensor = self.head(x)
        return out


def short() -> nn.Module:
    """12 layers without a skip."""
    return Deep(skip=False, depth=12)


def as_is() -> nn.Module:
    """30 layers without a skip."""
    return Deep(skip=False, depth=30)


def with_skip() -> nn.Module:
    """30 layers, each with one."""
    return Deep(skip=True, depth=30)


def data() -> tuple[torch.Tensor, torch.Tensor]:
    """1,000 points; the class is the largest of four coordinates by size."""
    inputs = torch.randn(1000, 20, generator=torch.Generator().manual_seed(0))
    return inputs, inputs[:, :4].abs().argmax(1)
