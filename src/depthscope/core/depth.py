"""Rules that depend on depth."""

from __future__ import annotations

from depthscope.core.errors import UserError


def cifar_blocks_per_stage(depth: int) -> int:
    """The n of the CIFAR layout with 6n+2 weighted layers: a stem, 3 stages of n two-layer blocks, a head.

    Source: He et al. 2015, arXiv 1512.03385, section 4.2.

    Raises:
        UserError: no n gives `depth`; the nearest two depths that have one are named.

    >>> [cifar_blocks_per_stage(depth) for depth in (8, 20, 56, 110)]
    [1, 3, 9, 18]
    """
    blocks, rest = divmod(depth - 2, 6)
    if depth < 8:
        raise UserError(f"depth {depth} is not 6n+2 with n of 1 or more. The smallest are 8 and 14.")
    if rest:
        low = 6 * blocks + 2
        raise UserError(f"depth {depth} is not 6n+2. The nearest are {low} and {low + 6}.")
    return blocks


def profile_steps(num_steps: int, steps_per_epoch: int | None) -> tuple[int, ...]:
    """The steps at which layers are logged: 0, 1, 2, 4, 8, ... and the end of each epoch.

    Step t is the state after t updates, so 0 is the untrained network and `num_steps` the trained one.

    >>> profile_steps(10, 4)
    (0, 1, 2, 4, 8, 10)
    """
    assert num_steps >= 0
    steps = {0, num_steps}
    power = 1
    while power < num_steps:
        steps.add(power)
        power *= 2
    if steps_per_epoch:
        steps.update(range(steps_per_epoch, num_steps + 1, steps_per_epoch))
    return tuple(sorted(steps))
