"""The variants of one seed go through training in step, so that each batch is drawn once and seen by all."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from depthscope.core.errors import UserError
from depthscope.probes.guard import undisturbed
from depthscope.probes.measure.objective import LossFn
from depthscope.probes.numbers import tensor_digest
from depthscope.record.variants import VariantRun
from depthscope.train.variants.arm import Arm, Factory, MakeOptimizer, build, initial
from depthscope.train.variants.data import Source, num_examples
from depthscope.train.variants.generators import seed_all

Progress = Callable[[str, int, int, float], None]
"""`(variant, seed, updates done, loss)`, after each update."""


@dataclass(frozen=True, kw_only=True)
class Trained:
    """What came of it.

    Attributes:
        runs: by seed, and in the order of the variants.
        evaluated: examples behind the clean figures of the training data.
        validated: likewise of the validation data.
        unrepeated: variants whose two builds with the first seed started from other values.
        device: type of the device that the models lay on.
    """

    runs: tuple[VariantRun, ...]
    evaluated: int
    validated: int
    unrepeated: tuple[str, ...]
    device: str


def train_variants(
    variants: Mapping[str, Factory],
    source: Source,
    loss_fn: LossFn | None,
    *,
    steps: int,
    seeds: Sequence[int],
    make_optimizer: MakeOptimizer,
    validation: Source | None = None,
    progress: Progress | None = None,
) -> Trained:
    """Train every variant with every seed.

    For each seed: the global generators are put at the same place before each factory; each batch is drawn once and
    given to each variant as a clone; before an update the generators are put where this step's draws start,
    the same for each. Generators, grad mode and autocast are the caller's again afterwards.

    Raises:
        UserError: bad input; or no run at all could be trained, with the first reason.
    """
    runs: list[VariantRun] = []
    counts = (0, 0)
    homes: set[str] = set()
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    with undisturbed(device):
        unrepeated = _unrepeated(variants, seeds[0])
        for seed in seeds:
            arms = _arms(variants, seed, loss_fn, make_optimizer)
            homes |= {parameter.device.type for arm in arms for parameter in arm.model.parameters()}
            batches = source.batches(seed)
            first: Any = None
            for step in range(steps):
                batch = next(batches)
                if step == 0:
                    first = batch
                    for arm in arms:
                        if arm.outcome is None:
                            arm.first = arm.profile(batch, step=0)
                for arm in arms:
                    if arm.outcome is None:
                        seed_all(seed, "model", step)
                        arm.step(batch)
                        if progress is not None and arm.losses:
                            progress(arm.name, seed, len(arm.losses), arm.losses[-1])
                if all(arm.outcome is not None for arm in arms):
                    break
            clean = source.clean(seed)
            held = validation.clean(seed) if validation is not None else []
            counts = sum(map(num_examples, clean)), sum(map(num_examples, held))
            for arm in arms:
                arm.evaluate(clean, "train")
                if held:
                    arm.evaluate(held, "validation")
                if arm.outcome is None:
                    arm.last = arm.profile(first, step=steps)
                runs.append(arm.finished())
    if all(run.outcome.status == "failed" for run in runs):
        raise UserError(f"compare: no variant could be trained. {runs[0].arm}, seed {runs[0].seed}: {_why(runs[0])}")
    return Trained(
        runs=tuple(runs),
        evaluated=counts[0],
        validated=counts[1],
        unrepeated=unrepeated,
        device=", ".join(sorted(homes)),
    )


def _why(run: VariantRun) -> str:
    return (run.outcome.reason or "").removeprefix("compare: ").removeprefix("probe: ")


def _arms(
    variants: Mapping[str, Factory], seed: int, loss_fn: LossFn | None, make_optimizer: MakeOptimizer
) -> list[Arm]:
    made: list[Arm] = []
    for name, factory in variants.items():
        model = build(name, factory, seed)
        if any(model is arm.model for arm in made):
            raise UserError(f"compare: {name}: its factory gave a model that another variant has; build a new one.")
        made.append(Arm(name, seed, model, loss_fn, make_optimizer))
    return made


def _unrepeated(variants: Mapping[str, Factory], seed: int) -> tuple[str, ...]:
    """Build each variant twice: its factory must give a new model, and with the same seed the same values.

    Raises:
        UserError: a factory gives the same model again: training would change the caller's.
    """
    found = []
    for name, factory in variants.items():
        one, two = build(name, factory, seed), build(name, factory, seed)
        if one is two or any(a is b for a, b in zip(one.parameters(), two.parameters(), strict=False)):
            raise UserError(
                f"compare: {name}: its factory gives the same model, or the same parameters, again, and training would "
                "change them. Build it anew inside the function."
            )
        if [*map(tensor_digest, initial(one).values())] != [*map(tensor_digest, initial(two).values())]:
            found.append(name)
    return tuple(found)
