"""See that code of the user's leaves a model that is being trained as it found it."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping

import torch
from torch import Tensor, nn

from depthscope.probes.guard import set_generator, undisturbed
from depthscope.probes.numbers import weights_digest
from depthscope.train.usercode import ProbeError


@contextlib.contextmanager
def left_as_found(target: str, model: nn.Module, device: torch.device, seed: int) -> Iterator[None]:
    """Lend a model, in evaluation mode, to a probe.

    Global generators, the mode of each module and the gradients are put back; torch's generator starts at `seed`.

    Raises:
        ProbeError: the probe changed a tensor (bit by bit), a `requires_grad`, or a hook; it names the first.
    """
    before, hooks = _digests(model), _hooks(model)
    modes = {name: module.training for name, module in model.named_modules()}
    grads = {name: parameter.grad for name, parameter in model.named_parameters()}
    flags = {name: parameter.requires_grad for name, parameter in model.named_parameters()}
    try:
        with undisturbed(device):
            set_generator(device, seed)
            for parameter in model.parameters():
                parameter.grad = None
            model.eval()
            yield
    finally:
        for name, module in model.named_modules():
            module.training = modes.get(name, module.training)
        for name, parameter in model.named_parameters():
            parameter.grad = grads.get(name)
    after = _digests(model)
    changed = sorted(name for name in before.keys() | after.keys() if before.get(name) != after.get(name))
    changed += [f"{name}.requires_grad" for name, each in model.named_parameters() if flags[name] != each.requires_grad]
    changed += [f"the hooks of {name or 'the model'}" for name, each in _hooks(model).items() if hooks[name] != each]
    if changed:
        more = f" and {len(changed) - 1} more" if len(changed) > 1 else ""
        raise ProbeError(f"{target}: changed {changed[0]}{more} of the model. A probe only reads; measure on a copy.")


def _digests(model: nn.Module) -> Mapping[str, str]:
    tensors: dict[str, Tensor] = {**dict(model.named_parameters()), **dict(model.named_buffers())}
    return {name: weights_digest({name: tensor}) for name, tensor in tensors.items()}


def _hooks(model: nn.Module) -> dict[str, int]:
    return {
        name: sum(len(table) for key, table in vars(module).items() if key.endswith("_hooks") and table)
        for name, module in model.named_modules()
    }
