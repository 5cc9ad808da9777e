"""What a transformer is made of beside linear layers and normalisers.

Shape letters: B batch, T positions, D width, H heads, V vocabulary.
"""

from __future__ import annotations

from typing import ClassVar

import torch.nn.functional as F
from torch import Tensor, nn


class Table(nn.Embedding):
    """A row of D numbers for each token, or for each position: [V, D].

    Initialisers draw it as they draw the weight of a linear layer from D to V, which it is too where the head is tied
    to it: `gaussian` gives entries of variance 1/D, so that a normalised h gives logits of variance 1. An
    `nn.Embedding` that is not of this class is N(0, 1) under every initialiser.
    """


class Stacked(nn.Linear):
    """Linear maps of one input, one below the other in one weight: query, key and value, [3 D, D] in that order.

    Initialisers draw each by itself (`init.rules.Weight.parts`): its fan_out is D, not 3 D.
    """

    parts: ClassVar[int] = 3

    def __init__(self, width: int, *, bias: bool) -> None:
        super().__init__(width, self.parts * width, bias=bias)


class TiedHead(nn.Module):
    """logits = h E^T with the table E of the tokens: [B, T, D] and [V, D] -> [B, T, V]. It has no parameter.

    Source: Press & Wolf 2017, arXiv 1608.05859.
    """

    def forward(self, h_BTD: Tensor, table_VD: Tensor) -> Tensor:
        """See the class."""
        return F.linear(h_BTD, table_VD)


def causal_attention(qkv_BTC: Tensor, num_heads: int) -> Tensor:
    """`attention` of each position to itself and those before it."""
    return attention(qkv_BTC, num_heads, is_causal=True)


def attention(qkv_BTC: Tensor, num_heads: int, *, is_causal: bool = False) -> Tensor:
    """Softmax attention of each position to all; [B, T, 3 D] -> [B, T, D].

    Query, key and value are the thirds of the last dimension; head i has the i-th slice of D/H units of each, and of
    the output. Scores are divided by sqrt(D/H).

    Source: Vaswani et al. 2017, arXiv 1706.03762, sections 3.2.1 and 3.2.2.
    """
    batch, length, _ = qkv_BTC.shape
    q, k, v = (each.view(batch, length, num_heads, -1).transpose(1, 2) for each in qkv_BTC.chunk(3, dim=-1))
    mixed_BHTd = F.scaled_dot_product_attention(q, k, v, is_causal=is_causal)
    return mixed_BHTd.transpose(1, 2).reshape(batch, length, -1)
