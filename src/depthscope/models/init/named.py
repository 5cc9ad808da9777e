"""Initialisers by name: the one table of how weights are drawn."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np
from torch import nn

from depthscope.models.functions import public_functions
from depthscope.models.init import isometry, transformers, variance
from depthscope.models.init.fixup import fixup
from depthscope.models.init.lsuv import lsuv
from depthscope.models.init.mirrored import looks_linear
from depthscope.models.init.rules import Array, Weight
from depthscope.models.init.zeroed import zero_branch

Rule = Callable[[Weight, np.random.Generator], Array]
"""How one weight is drawn; the generator is `stream(seed, "init", weight.name)`."""

TORCH = "torch"
"""The initialiser that is each module's own `reset_parameters`."""


@dataclass(frozen=True, kw_only=True)
class Initialiser:
    """What stands behind one name.

    Attributes:
        rule: draws a weight.
        of_model: makes the rule for one model, in place of `rule`, where it depends on where a weight stands.
        takes_gain: whether the rule is meant to be scaled.
        finish: what is done with the filled model on a batch of examples (see `lsuv.lsuv`).
        options: that `finish` takes.
    """

    rule: Rule | None = None
    of_model: Callable[[nn.Module], Rule] | None = None
    takes_gain: bool = True
    finish: Callable[..., None] | None = None
    options: tuple[str, ...] = ()

    def rule_for(self, model: nn.Module) -> Rule:
        """How the weights of this model are drawn."""
        if self.of_model is not None:
            return self.of_model(model)
        assert self.rule is not None
        return self.rule


INITIALISERS: Mapping[str, Initialiser] = MappingProxyType(
    {
        **{
            name: Initialiser(rule=rule)
            for module in (variance, isometry)
            for name, rule in public_functions(module).items()
        },
        "tat": Initialiser(rule=isometry.tat, takes_gain=False),
        "lsuv": Initialiser(
            rule=isometry.orthogonal, takes_gain=False, finish=lsuv, options=("tolerance", "max_tries")
        ),
        "fixup": Initialiser(of_model=fixup, takes_gain=False),
        "looks_linear": Initialiser(of_model=looks_linear, takes_gain=False),
        "zero_branch": Initialiser(of_model=zero_branch),
        "gpt2": Initialiser(rule=transformers.gpt2),
        "depth_scaled": Initialiser(of_model=transformers.depth_scaled),
        "zero_projection": Initialiser(of_model=transformers.zero_projection),
        "deepnorm": Initialiser(of_model=transformers.DeepNormInit, takes_gain=False),
    }
)
"""Name -> what stands behind it: each public function of `variance` and `isometry` is a rule that takes a gain; what is
more than a rule, or takes none, has a line. `torch` is none of these: nothing is drawn by a rule there."""
