"""Gated and recurrent networks, and a transformer whose parts are written by hand."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional


class Highway(nn.Module):
    """Srivastava et al. 2015, y = H T + x (1 - T): two gates a layer and no residual addition."""

    def __init__(self, layers: int = 3, width: int = 6) -> None:
        super().__init__()
        self.stem = nn.Linear(4, width)
        self.plain = nn.ModuleList(nn.Linear(width, width) for _ in range(layers))
        self.gate = nn.ModuleList(nn.Linear(width, width) for _ in range(layers))

    def forward(self, x: Tensor) -> Tensor:
        x = self.stem(x)
        for plain, gate in zip(self.plain, self.gate, strict=True):
            carried = torch.sigmoid(gate(x))
            x = functional.relu(plain(x)) * carried + x * (1 - carried)
        return x


class HandLSTM(nn.Module):
    """A sequence through an LSTM cell by hand: three gates a step (two in the first, whose cell is 0)."""

    def __init__(self, width: int = 5) -> None:
        super().__init__()
        self.inner, self.outer = nn.Linear(3, 4 * width), nn.Linear(width, 4 * width)
        self.head, self.width = nn.Linear(width, 2), width

    def forward(self, x: Tensor) -> Tensor:
        hidden = cell = x.new_zeros(len(x), self.width)
        for at in range(x.shape[1]):
            i, f, o, g = (self.inner(x[:, at]) + self.outer(hidden)).chunk(4, 1)
            cell = torch.sigmoid(f) * cell + torch.sigmoid(i) * torch.tanh(g)
            hidden = torch.sigmoid(o) * torch.tanh(cell)
        out: Tensor = self.head(hidden)
        return out


class HandNorm(nn.Module):
    """A layer norm from primitives: its subtraction is no residual one."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.weight, self.bias = nn.Parameter(torch.ones(width)), nn.Parameter(torch.zeros(width))

    def forward(self, x: Tensor) -> Tensor:
        centred = x - x.mean(-1, keepdim=True)
        return centred / torch.sqrt(centred.pow(2).mean(-1, keepdim=True) + 1e-5) * self.weight + self.bias


class HandTransformer(nn.Module):
    """Pre-LN or Post-LN, all by hand: 2 residual additions a layer, and no other of its many additions.

    Args:
        layers: number of them.
        width: of the stream; two heads.
        post: the norm stands after the addition.
    """

    def __init__(self, layers: int = 2, width: int = 8, *, post: bool = False) -> None:
        super().__init__()
        self.embed, self.position = nn.Embedding(11, width), nn.Embedding(9, width)
        self.qkv = nn.ModuleList(nn.Linear(width, 3 * width) for _ in range(layers))
        self.out = nn.ModuleList(nn.Linear(width, width) for _ in range(layers))
        self.up = nn.ModuleList(nn.Linear(width, 2 * width) for _ in range(layers))
        self.down = nn.ModuleList(nn.Linear(2 * width, width) for _ in range(layers))
        self.norms = nn.ModuleList(HandNorm(width) for _ in range(2 * layers))
        self.bias = nn.Embedding(2, 2)  # relative positions, shared by all layers
        self.head, self.post = nn.Linear(width, 11), post

    def _attend(self, x: Tensor, at: int, mask: Tensor) -> Tensor:
        batch, length, width = x.shape
        q, k, v = (part.view(batch, length, 2, -1).transpose(1, 2) for part in self.qkv[at](x).chunk(3, -1))
        turn = torch.arange(length, dtype=x.dtype)[:, None] / 9
        q, k = (each * turn.cos() + torch.cat([-each[..., 2:], each[..., :2]], -1) * turn.sin() for each in (q, k))
        before = (torch.arange(length)[:, None] >= torch.arange(length)).long()
        scores = q @ k.transpose(-1, -2) / 2 + (self.bias(before).permute(2, 0, 1) + mask)
        mixed = (scores.softmax(-1) @ v).transpose(1, 2).reshape(batch, length, width)
        out: Tensor = self.out[at](mixed)
        return out

    def _feed(self, x: Tensor, at: int) -> Tensor:
        h = self.up[at](x)
        h = 0.5 * h * (1 + torch.tanh(0.7978845608 * (h + 0.044715 * h**3)))
        out: Tensor = self.down[at](h)
        return out

    def forward(self, tokens: Tensor, mask: Tensor) -> Tensor:
        mask = (1 - mask[:, None, None, :].to(torch.float32)) * -1e9
        x = self.embed(tokens) + self.position(torch.arange(tokens.shape[1]))
        for at in range(len(self.qkv)):
            for norm, branch in ((self.norms[2 * at], self._attend), (self.norms[2 * at + 1], self._feed)):
                extra = (mask,) if branch == self._attend else ()
                x = norm(x + branch(x, at, *extra)) if self.post else x + branch(norm(x), at, *extra)
        logits: Tensor = self.head(x)
        return logits
