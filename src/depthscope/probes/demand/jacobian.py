"""The Jacobian of a function at one batch: largest and mean squared singular value, distance to the identity."""

from __future__ import annotations

from collections.abc import Callable

from torch import Tensor, nn

from depthscope.core.errors import UserError
from depthscope.probes.demand.linearise import Anchor, Linearised, differentiating
from depthscope.probes.demand.spectra import Spectrum, spectrum_of
from depthscope.probes.guard import as_found

NUM_PROBES = 16
MAX_ITERATIONS = 50
TOLERANCE = 1e-3


def spectrum(
    function: Callable[[Tensor], Tensor],
    x: Tensor,
    *,
    num_probes: int = NUM_PROBES,
    max_iterations: int = MAX_ITERATIONS,
    tolerance: float = TOLERANCE,
    seed: int = 0,
) -> Spectrum:
    """Of a function or a module by itself; `between.block_spectra` measures the blocks inside a model.

    A module is left exactly as it was found, and is in the mode in which it came: where batch norm uses the
    statistics of the batch, examples mix, see `Spectrum.per_example`.

    Args:
        function: takes a tensor and gives one.
        x: [B, ...], floating point; the point at which to linearise. It is not changed.
        num_probes: random vectors of the mean square and the distance, where the Jacobian is too large to form.
        max_iterations: of the largest singular value.
        tolerance: at which these stop: how far a singular value may lie from the estimate, relative to it.
        seed: of the draws, which are from named streams and touch no generator.

    Raises:
        UserError: x is no tensor of floating point; the output is none, or does not follow from x by operations
            that autograd knows; a count below 1.

    >>> import torch
    >>> measured = spectrum(lambda x: -x, torch.ones(3, 4, dtype=torch.float64))
    >>> measured.largest, measured.mean_square, measured.identity_distance
    (1.0, 1.0, 2.0)
    """
    check_counts(num_probes, max_iterations)
    if not isinstance(x, Tensor) or not x.is_floating_point() or not x.numel():
        raise UserError("jacobian: wanted x as a tensor of real floating-point numbers, none of its dimensions 0.")
    module = getattr(function, "__self__", function)
    with as_found(module if isinstance(module, nn.Module) else nn.Module()), differentiating(x.device):
        # A copy, and no leaf: the function may change its input in place.
        begin = x.detach().clone().requires_grad_(True).clone()
        anchor = Anchor(begin)
        y = function(begin)
        if not isinstance(y, Tensor) or not y.is_floating_point() or not y.requires_grad or not y.numel():
            raise UserError(
                "jacobian: wanted a function whose output is a tensor of floating-point numbers that depends on x by "
                f"operations that autograd follows; it gave {_came(y)}."
            )
        return spectrum_of(
            Linearised(anchor, Anchor(y)),
            num_probes=num_probes,
            max_iterations=max_iterations,
            tolerance=tolerance,
            seed=seed,
        )


def check_counts(num_probes: int, max_iterations: int) -> None:
    """Both at least 1.

    Raises:
        UserError: one is not.
    """
    for name, value in (("num_probes", num_probes), ("max_iterations", max_iterations)):
        if value < 1:
            raise UserError(f"jacobian: {name}: wanted 1 or more, got {value}.")


def _came(y: object) -> str:
    if not isinstance(y, Tensor):
        return f"an object of type {type(y).__name__}"
    return f"a tensor of {y.dtype} of shape {tuple(y.shape)}, requires_grad {y.requires_grad}"
