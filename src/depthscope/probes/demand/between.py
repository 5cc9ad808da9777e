"""Jacobian spectra of the blocks inside a model, each between two boundary tensors of one forward pass."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

import torch
from torch import Tensor, nn

from depthscope.core.errors import UserError, unknown_name, words_of
from depthscope.core.readings import Reading
from depthscope.core.structure import Block, Structure
from depthscope.probes.demand.cost import Cost
from depthscope.probes.demand.jacobian import MAX_ITERATIONS, NUM_PROBES, TOLERANCE, check_counts
from depthscope.probes.demand.linearise import Anchor, Linearised, differentiating
from depthscope.probes.demand.spectra import EXACT, Spectrum, spectrum_of
from depthscope.probes.guard import as_found, unwrapped
from depthscope.probes.measure.batch import Batch, read_batch, taken
from depthscope.probes.trace import Follow, Traced, trace


@dataclass(frozen=True, kw_only=True)
class BlockSpectra:
    """Of the blocks of a model.

    Attributes:
        structure: of the model in the traced pass, whose attention was not fused.
        spectra: by the block's name.
        missing: why a block has none, by its name.
    """

    structure: Structure
    spectra: Mapping[str, Spectrum]
    missing: Mapping[str, str] = field(default_factory=dict)

    def readings(self, step: int = 0) -> tuple[Reading, ...]:
        """As readings of blocks; what was not had gives none."""
        found = []
        for name, each in self.spectra.items():
            for quantity, value in (
                ("jacobian_max", each.largest),
                ("jacobian_mean_square", each.mean_square),
                ("identity_distance", each.identity_distance),
            ):
                if value is not None:
                    found.append(Reading(step=step, place="block", name=name, quantity=quantity, value=value))
        return tuple(found)


def block_spectra(
    model: nn.Module,
    batch: object,
    *,
    blocks: Sequence[str] | None = None,
    num_probes: int = NUM_PROBES,
    max_iterations: int = MAX_ITERATIONS,
    tolerance: float = TOLERANCE,
    seed: int = 0,
) -> BlockSpectra:
    """Measure blocks of a model where they stand, in the mode in which the model is; it is left as found.

    The model runs twice forward, traced and followed; then each block's Jacobian is measured by backward passes
    between its two boundary tensors. Dropout has the masks of the followed pass. The numbers are as exact as the
    model's dtype; see `jacobian.spectrum` for the rest.

    Args:
        model: any; see `unwrapped`.
        batch: see `read_batch`.
        blocks: names, as in the structure; None for all.
        num_probes: as for `spectrum`, as are the following.
        max_iterations: likewise.
        tolerance: likewise.
        seed: likewise.

    Raises:
        UserError: an unknown block; as for `read_batch`.
    """
    check_counts(num_probes, max_iterations)
    inner = unwrapped(model)
    read = read_batch(batch, inner, with_loss=False)
    device = next((each.device for each in (*inner.parameters(), *inner.buffers())), torch.device("cpu"))
    with as_found(inner), differentiating(device):
        read, traced = taken(read, partial(_traced, inner))
        measured = list(_chosen(traced.structure, blocks))
        anchors, departed = _followed(inner, read, traced)
        spectra: dict[str, Spectrum] = {}
        missing: dict[str, str] = {}
        for block in measured:
            ends = anchors.get(block.index), anchors.get(block.index + 1)
            if departed or ends[0] is None or ends[1] is None:
                missing[block.name] = departed or _unseen(block, ends[0] is None, read)
                continue
            try:
                spectra[block.name] = spectrum_of(
                    Linearised(ends[0], ends[1]),
                    num_probes=num_probes,
                    max_iterations=max_iterations,
                    tolerance=tolerance,
                    seed=seed,
                    name=block.name,
                )
            except RuntimeError as error:  # of a backward pass: reentrant checkpoints refuse this one, for example
                missing[block.name] = f"its backward pass fails: {words_of(error)}"
    return BlockSpectra(structure=traced.structure, spectra=spectra, missing=missing)


def cost(
    structure: Structure,
    num_examples: int,
    *,
    blocks: Sequence[str] | None = None,
    itemsize: int = 4,
    num_probes: int = NUM_PROBES,
    max_iterations: int = MAX_ITERATIONS,
) -> Cost:
    """Of `block_spectra`, at most: the largest singular value as a rule needs fewer iterations than it may take.

    All blocks are taken as equally costly.

    Args:
        structure: of the model.
        num_examples: in the batch.
        blocks: as for `block_spectra`, as are the last two.
        itemsize: bytes of a number in the model's dtype.
        num_probes: likewise.
        max_iterations: likewise.

    Raises:
        UserError: an unknown block.
    """
    measured = list(_chosen(structure, blocks))
    products, num_bytes = 0, 0
    for block in measured:
        sizes = [math.prod(structure.boundaries[index].shape) for index in (block.index, block.index + 1)]
        mixing = any(op.name == "batch" and op.facts.get("training") for op in block.ops)
        rows = sizes[1] * (num_examples if mixing else 1)
        exact = rows <= EXACT
        # Two tell whether examples mix; with the adjoint's check, two an iteration.
        products += 2 + (rows if exact else num_probes + 3 + 2 * max_iterations)
        stored = num_examples * sizes[0] * (rows if exact else 2) + 3 * num_examples * sizes[1]
        num_bytes = max(num_bytes, (8 + itemsize) * stored)
    num_bytes += itemsize * num_examples * sum(math.prod(each.shape) for each in structure.boundaries)
    return Cost(
        what=f"Jacobian spectra of {len(measured)} of {len(structure.blocks)} blocks",
        forwards=2,
        backwards=products / 2 / max(len(structure.blocks), 1),
        num_bytes=num_bytes,
    )


def _chosen(structure: Structure, names: Sequence[str] | None) -> Iterator[Block]:
    by_name = {block.name: block for block in structure.blocks}
    for name in by_name if names is None else names:
        if name not in by_name:
            raise UserError(unknown_name("block", name, by_name))
        yield by_name[name]


class _Keeper:
    """Keeps the boundary tensors' places in the graph."""

    def __init__(self) -> None:
        self.anchors: dict[int, Anchor] = {}

    def boundary(self, index: int, tensor: Tensor) -> None:
        if tensor.is_floating_point() and tensor.requires_grad and tensor.numel():
            self.anchors[index] = Anchor(tensor)

    def addition(self, index: int, branch: Tensor, skip: Tensor) -> None:
        pass


def _traced(model: nn.Module, batch: Batch) -> Traced:
    args, kwargs, _ = batch.fresh()
    return trace(model, args, kwargs)


def _followed(model: nn.Module, batch: Batch, traced: Traced) -> tuple[dict[int, Anchor], str]:
    args, kwargs, leaves = batch.fresh()
    if not leaves:
        # Integers have no gradient: the graph must begin at the parameters, frozen ones too. as_found puts it back.
        for parameter in model.parameters():
            if parameter.is_floating_point():
                parameter.requires_grad_(True)
    keeper = _Keeper()
    follow = Follow(traced, keeper)
    with follow:
        model(*args, **kwargs)
    return keeper.anchors, follow.departed


def _unseen(block: Block, at_start: bool, batch: Batch) -> str:
    if at_start and block.index == 0 and batch.closed:
        return "the model demands that its input requires no gradient"
    if at_start and block.index == 0:
        return "the model's input is not of floating point"
    return f"its {'input' if at_start else 'output'} is not of floating point, or autograd does not follow it"
