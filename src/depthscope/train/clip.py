"""Gradients that are too large, made smaller between the backward pass and the update.

Nothing is read from the device on the way, so a GPU does not wait.

Shape letters: U output units of all tensors.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import torch
from torch import Tensor, nn

from depthscope.core.errors import UserError
from depthscope.study.catalog import is_user_code
from depthscope.study.run import RunSpec
from depthscope.train.build import resolve, target_of
from depthscope.train.usercode import as_user_error, call

Clip = Callable[[], None]
"""Changes the gradients of the model that it was made for, in place."""


def clipper(spec: RunSpec, model: nn.Module) -> Clip | None:
    """What is done to the gradients of a run before each update; None where nothing is.

    Raises:
        UserError: a function of the user's gives no function.
    """
    if spec.clip == "none":
        return None
    if not is_user_code(spec.clip):
        known: Clip = resolve(target_of("clip", spec.clip, "torch"))(model, **spec.clip_options)
        return known
    made: Clip = call(spec.clip, {"model": model}, spec.clip_options)
    if not callable(made) or isinstance(made, type):
        raise UserError(
            f"{spec.clip}: returned {made!r}; wanted a function without arguments, which changes gradients in place."
        )
    return made


def try_clip(spec: RunSpec, model: nn.Module, x: Tensor) -> None:
    """Make and call a clip of the user's once, in the order of a run's update, and leave no gradients.

    Args:
        spec: the run.
        model: its model.
        x: a few inputs.

    Raises:
        UserError: it raises, gives no function, changes which parameters are trained, takes all gradients away, or
            makes one that is not finite.
    """
    if not is_user_code(spec.clip):
        return
    trained = {name: each.requires_grad for name, each in model.named_parameters()}
    with as_user_error(spec.clip):
        clip = clipper(spec, model)
    assert clip is not None
    _check_trained(spec.clip, trained, model)
    model(x).square().mean().backward()
    before = {name for name, each in model.named_parameters() if each.grad is not None}
    finite = {name for name, each in model.named_parameters() if name in before and _finite(each.grad)}
    with as_user_error(spec.clip):
        clip()
    _check_trained(spec.clip, trained, model)
    after = {name: each.grad for name, each in model.named_parameters() if each.grad is not None}
    if before and not after:
        raise UserError(f"{spec.clip}: left no parameter a gradient (grad is None), so nothing would be trained.")
    for name, gradient in after.items():
        # What is beyond bounds before any clip is the network's doing, and the run tells it.
        if not _finite(gradient) and name in finite:
            raise UserError(f"{spec.clip}: made the gradient of {name} one that is not finite.")
    for each in model.parameters():
        each.grad = None


def _check_trained(target: str, trained: Mapping[str, bool], model: nn.Module) -> None:
    for name, each in model.named_parameters():
        if each.requires_grad != trained.get(name):
            raise UserError(
                f"{target}: set requires_grad of {name} to {each.requires_grad}. A clip changes gradients "
                "(parameter.grad), and not which parameters have one."
            )


def _finite(gradient: Tensor | None) -> bool:
    return gradient is not None and bool(gradient.isfinite().all())


def clip_norm(model: nn.Module, *, max_norm: float) -> Clip:
    """All gradients times max_norm / (|g| + 1e-6) where their joint norm |g| is larger, as torch has it.

    Source: Pascanu et al. 2013, arXiv 1211.5063, algorithm 1.

    Args:
        model: the model.
        max_norm: largest joint norm.
    """
    parameters = list(model.parameters())

    def clip() -> None:
        nn.utils.clip_grad_norm_(parameters, max_norm)

    return clip


def adaptive(model: nn.Module, *, factor: float, eps: float) -> Clip:
    """Adaptive gradient clipping: |G| of each output unit at most factor max(|W|, eps), by its own weights' norm |W|.

    Where |G| > m = factor max(|W|, eps), G becomes G m / max(|G|, 1e-6). A unit is a row of a linear weight and a
    filter of a convolution; a vector or a scalar (bias, gain) is one unit as a whole, a gain kept as [out, 1, 1, 1]
    too. The network's last linear layer is left as it is.

    Source: Brock et al. 2021, arXiv 2102.06171, section 4 and appendix A, and the authors' code for what is a unit.

    Args:
        model: the model; its last layer is the last of its `points()`, or the last linear one that it holds.
        factor: the paper's lambda.
        eps: what a unit whose weights are (nearly) zero counts as.
    """
    head = _head(model)
    left = set() if head is None else {id(each) for each in head.parameters()}
    parameters = [each for each in model.parameters() if id(each) not in left]

    @torch.no_grad()
    def clip() -> None:
        clipped = [each for each in parameters if each.grad is not None]
        gradients = [each.grad for each in clipped if each.grad is not None]
        if not clipped:
            return
        gradient_norms, weight_norms = _unit_norms(gradients), _unit_norms(clipped)
        sizes = [each.numel() for each in gradient_norms]
        # All units of all tensors side by side: a handful of operations instead of a handful for each tensor.
        gradient_U, weight_U = (
            torch.cat([each.flatten() for each in norms]) for norms in (gradient_norms, weight_norms)
        )
        most_U = factor * weight_U.clamp(min=eps)
        scale_U = torch.where(gradient_U > most_U, most_U / gradient_U.clamp(min=1e-6), 1.0)
        for gradient, norm, scale in zip(gradients, gradient_norms, torch.split(scale_U, sizes), strict=True):
            gradient.mul_(scale.view_as(norm).to(gradient.dtype))

    return clip


def _unit_norms(tensors: Sequence[Tensor]) -> list[Tensor]:
    """Norm of each output unit, of the tensor's shape with 1 from the second axis on; of a vector one number.

    In float64 where there is one: the norm of a gradient of 1e20, which deep networks have, is beyond float32.
    """
    dtype = None if tensors[0].device.type == "mps" else torch.float64
    return [
        torch.linalg.vector_norm(each, dtype=dtype)
        if sum(size > 1 for size in each.shape) <= 1
        else torch.linalg.vector_norm(each, dim=tuple(range(1, each.ndim)), keepdim=True, dtype=dtype)
        for each in tensors
    ]


def _head(model: nn.Module) -> nn.Module | None:
    points = getattr(model, "points", None)
    if callable(points):
        return model.get_submodule(points()[-1].layer)
    return next((each for each in reversed(list(model.modules())) if isinstance(each, nn.Linear)), None)
