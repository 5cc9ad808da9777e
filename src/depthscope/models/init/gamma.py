"""Zero-init gamma: the normaliser that ends each residual branch starts with scale 0."""

from __future__ import annotations

from torch import nn

from depthscope.core.errors import UserError
from depthscope.core.profile import Addition
from depthscope.models.init.rules import NORMALISERS
from depthscope.models.init.told import told


def last_gammas(model: nn.Module) -> frozenset[str]:
    """Names of the scales that end the residual branches of `model.additions()`.

    Source: Goyal et al. 2017, arXiv 1706.02677, section 5.1.

    Raises:
        UserError: the model does not tell its additions, or has none; a branch does not end in a normaliser (one
            before an activation would do too, but a ReLU there has no gradient at 0, and the branch would stay 0).
    """
    additions = told(model, "additions", "residual branches", "zero_last_gamma")
    if not additions:
        raise UserError(
            "zero_last_gamma: this network has no residual addition (shortcut none), so all of its output "
            "would be zero. Choose shortcut A or B, or leave zero_last_gamma out."
        )
    return frozenset(f"{_end_of(model, addition)}.weight" for addition in additions)


def _end_of(model: nn.Module, addition: Addition) -> str:
    """Name of the normaliser that ends a branch: the operand itself, or what a block of ours holds last of its branch.

    A join may change what the branch gives before it adds it. Our blocks hold their modules in the order in which they
    run: the branch, then `shortcut` and `join`.
    """
    if _scales(model.get_submodule(addition.branch)):
        return addition.branch
    block = model.get_submodule(addition.block)
    last = ""
    for name, module in block.named_children():
        if name in ("shortcut", "join"):
            break
        if not isinstance(module, nn.Identity):
            last = f"{addition.block}.{name}"
    if last and _scales(model.get_submodule(last)):
        return last
    raise UserError(
        f"zero_last_gamma: {addition.branch}, the end of a residual branch, is no normaliser"
        + (f", nor is {last}, the last of {addition.block}'s branch." if last not in ("", addition.branch) else ".")
        + " Choose a norm and a family whose branches end in one, or leave zero_last_gamma out."
    )


def _scales(module: nn.Module) -> bool:
    return isinstance(module, NORMALISERS) and getattr(module, "weight", None) is not None
