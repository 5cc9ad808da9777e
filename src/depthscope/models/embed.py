"""A shallow network inside of a deep one: the solution that degradation fails to find, by construction."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm

from depthscope.core.errors import UserError
from depthscope.models.convnet import CifarResNet
from depthscope.models.init.rules import fixed_value, is_weighted
from depthscope.models.init.statistics import batch_statistics, widened
from depthscope.models.init.tensors import each_tensor
from depthscope.models.mlp import MLP


def embed(shallow: nn.Module, deep: nn.Module, examples: Tensor) -> tuple[str, ...]:
    """Fill `deep` so that it computes what `shallow` does: its first layers, and identities for the others.

    Both are plain networks of one family and of one width. Each stage of the deep one begins with the shallow one's
    blocks of that stage; the blocks after them become identities, layer by layer: a Dirac kernel (an identity matrix),
    no bias, and a batch norm with gamma = sqrt(var + eps) and beta = mean of what it sees, which undoes its own
    normalisation. The ReLU changes nothing, since what comes out of the shallow one's block is not negative.

    What is exact, but for roundoff (5e-13 of the logits in float64 at CIFAR depth 20 in 56):

    - in eval mode, any input: the running statistics of an extra layer are set to that mean and (biased) variance;
    - in train mode, the batch `examples` taken as a whole: of another batch the statistics are other ones, and an
      extra layer is a per-channel affine map near the identity. The mlp's batch norm keeps no running statistics, and
      is so in eval mode too.

    Without a normaliser it is exact for any input in both modes.

    Source: He et al. 2015, arXiv 1512.03385, section 1, where the constructed solution is an argument.

    Args:
        shallow: the network to be put in. It is left as it is.
        deep: on a real device, its memory perhaps uninitialised; overwritten.
        examples: inputs [N, ...], normalised as in training. Batch statistics are those of `shallow` in train mode.

    Returns:
        Names of the extra layers, in forward order.

    Raises:
        UserError: a family without stages of such blocks, a residual network (whose extra blocks are identities when
            their branch is 0: choose `zero_last_gamma`), a deep network that is not as deep or not alike; or an
            activation or a normaliser with which no layer is the identity (tanh; layer norm).
    """
    ours, theirs = _Layout.of(deep), _Layout.of(shallow)
    if type(deep) is not type(shallow) or len(ours.stages) != len(theirs.stages):
        raise UserError(f"embed: wanted two networks of one family, got {_kind(shallow)} and {_kind(deep)}.")
    extra: list[str] = []
    after: dict[str, tuple[str, ...]] = {}
    for name in ("stem", "head"):
        _copy(shallow, name, deep, name)
    for mine, given in zip(ours.stages, theirs.stages, strict=True):
        if len(mine) < len(given):
            raise UserError(
                f"embed: a stage of the deep network has {len(mine)} blocks and the shallow one's has {len(given)}. "
                "Choose a deeper network, or a shallower one to put in."
            )
        for source, target in zip(given, mine, strict=False):
            _copy(shallow, source, deep, target)
        added = mine[len(given) :]
        extra.extend(added)
        after[theirs.output_of(given[-1] if given else "stem")] = added
    means = _statistics(shallow, tuple(name for name, added in after.items() if added), examples)
    for name, added in after.items():
        for unit in added:
            _make_identity(deep.get_submodule(unit), *means[name])
    _see_equal(shallow, deep, examples)
    return tuple(_weighted_in(deep, extra))


@dataclass(frozen=True, kw_only=True)
class _Layout:
    """The repeated units of a plain network.

    Attributes:
        stages: names of the units of each stage, which keep the shape but for the first of a stage.
        act: own name of the module whose output is a unit's output; empty for the unit itself.
    """

    stages: tuple[tuple[str, ...], ...]
    act: str

    @classmethod
    def of(cls, model: nn.Module) -> _Layout:
        if not isinstance(model, CifarResNet | MLP):
            raise UserError(f"embed: {_kind(model)} has no layers that can be identities. Choose mlp or cifar_resnet.")
        if model.additions() or getattr(model, "shortcut", "none") != "none":
            raise UserError("embed: is for plain networks, and here is one with a shortcut. Choose shortcut none.")
        if isinstance(model, MLP):
            return cls(stages=(tuple(f"layers.{at}" for at in range(len(model.layers))),), act="act")
        blocks: Any = model.blocks
        widths = [block.conv1.out_channels for block in blocks]
        groups = itertools.groupby(range(len(widths)), key=widths.__getitem__)
        return cls(stages=tuple(tuple(f"blocks.{at}" for at in group) for _, group in groups), act="")

    def output_of(self, unit: str) -> str:
        """Name of the module whose output is what the unit gives."""
        return f"{unit}.{self.act}" if self.act else unit


def _kind(model: nn.Module) -> str:
    return type(model).__name__


def _copy(shallow: nn.Module, source: str, deep: nn.Module, target: str) -> None:
    given = shallow.get_submodule(source).state_dict()
    mine = deep.get_submodule(target)
    shapes = [{name: tuple(tensor.shape) for name, tensor in each.items()} for each in (given, mine.state_dict())]
    if shapes[0] != shapes[1]:
        raise UserError(
            f"embed: {source} of the shallow network and {target} of the deep one hold other tensors. Wanted two "
            "networks that differ in depth alone."
        )
    mine.load_state_dict(given)


def _statistics(shallow: nn.Module, names: tuple[str, ...], examples: Tensor) -> dict[str, tuple[Tensor, Tensor]]:
    """Of each module's output the mean and the biased variance [C] over all but the channels, in train mode."""
    found: dict[str, tuple[Tensor, Tensor]] = {}

    def watch(name: str) -> Any:
        def see(module: nn.Module, args: Any, output: Tensor) -> None:
            over = [dim for dim in range(output.ndim) if dim != 1]
            variance, mean = torch.var_mean(widened(output), dim=over, correction=0)
            found[name] = mean, variance

        return see

    hooks = [shallow.get_submodule(name).register_forward_hook(watch(name)) for name in names]
    try:
        with batch_statistics(shallow):
            shallow(examples)
    finally:
        for hook in hooks:
            hook.remove()
    return found


def _make_identity(unit: nn.Module, mean_C: Tensor, variance_C: Tensor) -> None:
    """Fill each layer of a unit such that it gives back what it gets, in so far as it can."""
    with torch.no_grad():
        for _, module, own_name, tensor in each_tensor(unit):
            if own_name == "weight" and is_weighted(module):
                tensor.copy_(_dirac(tensor))
            elif isinstance(module, _BatchNorm) and own_name != "num_batches_tracked":
                tensor.copy_(
                    {
                        "weight": (variance_C + module.eps).sqrt(),
                        "bias": mean_C,
                        "running_mean": mean_C,
                        "running_var": variance_C,
                    }[own_name]
                )
            else:
                value = fixed_value(module, own_name)
                if value is None:
                    raise UserError(f"embed: no rule fills {own_name!r} of {_kind(module)} in an identity.")
                tensor.fill_(value)


def _dirac(weight: Tensor) -> Tensor:
    """The kernel [C, C, *kernel] that is 1 from each channel to itself at its centre."""
    values = torch.zeros_like(weight)
    centre = tuple(size // 2 for size in weight.shape[2:])
    for channel in range(weight.shape[0]):
        values[(channel, channel, *centre)] = 1
    return values


def _weighted_in(model: nn.Module, units: list[str]) -> Iterator[str]:
    for unit in units:
        for name, module in model.get_submodule(unit).named_modules():
            if is_weighted(module):
                yield f"{unit}.{name}" if name else unit


def _see_equal(shallow: nn.Module, deep: nn.Module, examples: Tensor) -> None:
    """See that both compute the same in eval mode.

    Raises:
        UserError: they do not.
    """
    modes = shallow.training, deep.training
    try:
        with torch.no_grad():
            given, mine = (model.eval()(examples) for model in (shallow, deep))
    finally:
        shallow.train(modes[0])
        deep.train(modes[1])
    if not bool(given.isfinite().all()):
        raise UserError("embed: the shallow network's output is not finite; its training has diverged.")
    tolerance = torch.finfo(given.dtype).eps ** 0.5 * float(given.abs().max())
    off = float((mine - given).abs().max())
    if not off <= tolerance:
        raise UserError(
            f"embed: the deep network's output is {off:.3g} off the shallow one's. A layer is the identity with "
            "activation relu or linear, and norm batch, none or fixup: choose among these."
        )
