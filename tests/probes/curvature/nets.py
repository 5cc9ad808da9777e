"""Small networks of many kinds, and their dense Hessians by a slow twin."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.func import functional_call

Built = tuple[nn.Module, Tensor, Tensor, Callable[[Any, Any], Tensor]]


class Attention(nn.Module):
    """A block of attention with a residual sum and layer norm, and a head; fused where torch can."""

    def __init__(self) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(4)
        self.qkv = nn.Linear(4, 12)
        self.head = nn.Linear(4, 3)

    def forward(self, x_btc: Tensor) -> Tensor:
        q, k, v = (each.unflatten(-1, (2, 2)).transpose(1, 2) for each in self.qkv(self.norm(x_btc)).chunk(3, dim=-1))
        mixed = F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).flatten(-2)
        out: Tensor = self.head((x_btc + mixed).mean(1))
        return out


class Tied(nn.Module):
    """An embedding that is its own readout."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(5, 3, sparse=True)
        self.inner = nn.Linear(3, 3)
        self.readout = nn.Linear(3, 5, bias=False)
        self.readout.weight = self.embedding.weight

    def forward(self, tokens: Tensor) -> Tensor:
        out: Tensor = self.readout(torch.tanh(self.inner(self.embedding(tokens))))
        return out


class Recurrent(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.lstm = nn.LSTM(2, 3, num_layers=2, dropout=0.5, batch_first=True)
        self.head = nn.Linear(3, 2)

    def forward(self, x: Tensor) -> Tensor:
        out: Tensor = self.head(self.lstm(x)[0][:, -1])
        return out


class Unused(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.idle = nn.Linear(2, 2)
        self.used = nn.Sequential(nn.Linear(3, 3), nn.Tanh(), nn.Linear(3, 1))

    def forward(self, x: Tensor) -> Tensor:
        out: Tensor = self.used(x)
        return out


def mlp() -> Built:
    net = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Dropout(0.5), nn.Linear(4, 3))
    return net, torch.randn(10, 3), torch.randint(3, (10,)), F.cross_entropy


def convolution() -> Built:
    net = nn.Sequential(
        nn.Conv2d(2, 3, 3, padding=1, stride=2),
        nn.BatchNorm2d(3),
        nn.ReLU(inplace=True),
        nn.Flatten(),
        nn.Linear(12, 3),
    )
    with torch.no_grad():
        net(torch.randn(20, 2, 4, 4))  # running statistics of its own
    return net, torch.randn(10, 2, 4, 4), torch.randint(3, (10,)), F.cross_entropy


def layer_norm() -> Built:
    net = nn.Sequential(nn.Linear(3, 5), nn.LayerNorm(5), nn.GELU(), nn.Linear(5, 2))
    return net, torch.randn(10, 3), torch.randn(10, 2), F.mse_loss


def attention() -> Built:
    return Attention(), torch.randn(10, 6, 4), torch.randint(3, (10,)), F.cross_entropy


def multihead() -> Built:
    layer = nn.TransformerEncoderLayer(4, 2, 6, dropout=0.3, batch_first=True)
    return nn.Sequential(layer, nn.Flatten(), nn.Linear(12, 2)), torch.randn(10, 3, 4), torch.randn(10, 2), F.mse_loss


def tied() -> Built:
    return Tied(), torch.randint(5, (10,)), torch.randint(5, (10,)), F.cross_entropy


def recurrent() -> Built:
    return Recurrent(), torch.randn(10, 4, 2), torch.randint(2, (10,)), F.cross_entropy


def unused() -> Built:
    return Unused(), torch.randn(10, 3), torch.randn(10, 1), F.mse_loss


NETS: dict[str, Callable[[], Built]] = {
    each.__name__: each for each in (mlp, convolution, layer_norm, attention, multihead, tied, recurrent, unused)
}


def built(name: str) -> Built:
    torch.manual_seed(0)
    return NETS[name]()


def dense_twin(
    model: nn.Module,
    inputs: Tensor,
    targets: Tensor,
    loss_fn: Callable[[Any, Any], Tensor],
    *,
    train: bool = False,
    names: Sequence[str] | None = None,
) -> NDArray[np.float64]:
    """By `torch.autograd.functional.hessian` of the mean loss over one batch, by all parameters at once, in float64."""
    own = copy.deepcopy(model).double().eval()
    for module in own.modules():
        if isinstance(module, nn.modules.batchnorm._BatchNorm):
            module.train(train)
        if isinstance(module, nn.Embedding):
            module.sparse = False
    inputs, targets = (each.double() if each.is_floating_point() else each for each in (inputs, targets))
    twice: Any = torch.autograd.functional.hessian  # untyped
    parameters = {name: each.detach() for name, each in own.named_parameters() if names is None or name in names}

    def loss(flat: Tensor) -> Tensor:
        weights, at = {}, 0
        for name, each in parameters.items():
            weights[name] = flat[at : at + each.numel()].view_as(each)
            at += each.numel()
        return loss_fn(functional_call(own, weights, (inputs,)), targets)

    with torch.nn.attention.sdpa_kernel(torch.nn.attention.SDPBackend.MATH):
        start = torch.cat([each.reshape(-1) for each in parameters.values()])
        found = twice(loss, start)
    return np.asarray(found.numpy(), dtype=np.float64)


class Matrix:
    """A matrix of known entries."""

    def __init__(self, entries: NDArray[np.float64]) -> None:
        self.entries = entries
        self.size = len(entries)
        self.num_products = 0

    def matvec(self, v: NDArray[np.float64]) -> NDArray[np.float64]:
        self.num_products += 1
        product: NDArray[np.float64] = self.entries @ v
        return product


def rotated(values: Sequence[float] | NDArray[np.float64], seed: int = 0) -> Matrix:
    """A symmetric matrix with these eigenvalues and eigenvectors of no special direction."""
    draws = np.random.default_rng(seed)
    turned = np.linalg.qr(draws.standard_normal((len(values), len(values))))[0]
    return Matrix((turned * np.asarray(values)) @ turned.T)
