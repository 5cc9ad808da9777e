"""A small network of the user's own, with examples, as a module that workers can import."""

from __future__ import annotations

import sys
from pathlib import Path

NAME = "small_own_net"

CODE = """
import os
import time

import torch
from torch import nn


def model():
    torch.manual_seed(3)
    return nn.Sequential(nn.Linear(5, 6), nn.BatchNorm1d(6), nn.Tanh(), nn.Linear(6, 3))


class Slow(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = model()

    def forward(self, x):
        time.sleep(0.01)
        return self.net(x)


def data():
    generator = torch.Generator().manual_seed(1)
    return torch.randn(40, 5, generator=generator), torch.randint(0, 3, (40,), generator=generator)


def with_data():
    return model(), data()


def by_chance():
    net = model()
    with torch.no_grad():
        net[0].weight[0, 0] = int.from_bytes(os.urandom(4), "big") / 2**32
    return net


def frozen():
    return model().requires_grad_(False)


def cliff(output, targets):
    loss = nn.functional.cross_entropy(output, targets)
    return loss + float("inf") if loss > 1.3 else loss


def broken(output, targets):
    raise RuntimeError("not today")
"""


def write(folder: Path) -> None:
    """Put the module where it is found, here and by what is started from here."""
    (folder / f"{NAME}.py").write_text(CODE, encoding="utf-8")
    sys.path.append(str(folder))
