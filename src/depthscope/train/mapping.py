"""From whose landscape it is to the figures of its points."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Protocol, final

import torch
from torch import Tensor, nn

from depthscope.core.errors import UserError
from depthscope.core.hashing import combined_digest
from depthscope.probes.copies import own_loss_fn
from depthscope.probes.curvature import Hessian, extremes
from depthscope.probes.guard import unwrapped
from depthscope.probes.landscape.directions import Directions, directions, trajectory_plane
from depthscope.probes.landscape.renorm import normalisers
from depthscope.probes.landscape.surface import Surface
from depthscope.probes.lesion import Judge
from depthscope.record.landscape import MapHead, MapSource, PointKind, Trajectory, grid_of
from depthscope.record.provenance import provenance
from depthscope.study.landscape import MapSpec
from depthscope.train.examples import examples_digest, first_examples, head_of, tensor_digest
from depthscope.train.mapped_loss import Loss, judged, own_loss
from depthscope.train.named import built, data_named, loss_named, moved
from depthscope.train.variants.data import num_examples

HESSIAN_TOL = 1e-2
"""Of the eigenvalues on a map, relative to the spread of the spectrum: what a picture shows. A residual tells how far
each may be off; closer ones take several times as many products at every point.
"""

Point = Mapping[str, float | None]


@dataclass(frozen=True, kw_only=True)
class Material:
    """What a map is made of.

    Attributes:
        model: with the weights of the centre; only read.
        batches: of the examples, on the model's device.
        judge: figures of an output.
        loss_fn: what the Hessian is of; None: the model's own loss.
        snapshots: weights on the way, the last those of the centre, where the trajectory gives the plane.
        steps: updates done at each.
        spec: as asked, save that of at most so many examples it has the number that there is; None: as asked.
    """

    model: nn.Module
    batches: Sequence[Any]
    judge: Judge
    loss_fn: Loss
    snapshots: Sequence[Mapping[str, Tensor]] = ()
    steps: Sequence[int] = ()
    spec: MapSpec | None = None


class Source(Protocol):
    """Whose landscape: what `record.landscape.MapSource` names, as something that can be built.

    One that can be pickled may be sent to workers; there it must give the same material.
    """

    def named(self) -> MapSource:
        """As it is recorded."""

    def material(self, spec: MapSpec) -> Material:
        """The model, the examples and the rest.

        Raises:
            UserError: bad input, in one line.
        """


@final
@dataclass(frozen=True, kw_only=True)
class OfCode:
    """Code of the user's, by name.

    Attributes:
        factory: `package.module:function`, which gives a model, or (model, batch).
        data: likewise, of examples; None where the factory gives them.
        loss: `cross_entropy`, `mse`, or `package.module:function`; None: the model's own `output.loss`.
        device: auto, cpu, cuda or mps; None: where the factory puts the model.
        at_most: whether data with fewer examples than the spec's give all that they hold.
    """

    factory: str
    data: str | None = None
    loss: str | None = None
    device: str | None = None
    at_most: bool = False

    def named(self) -> MapSource:
        """See `Source`."""
        return MapSource(
            kind="code", model=self.factory, data=self.data or self.factory, loss=self.loss or "the model's own"
        )

    def material(self, spec: MapSpec) -> Material:
        """See `Source`. The global generators are left changed: `exact` puts them back."""
        loss_fn = loss_named(self.loss) if self.loss is not None else None
        model, batch = built(self.factory, self.device)
        data = data_named(self.data) if self.data is not None else batch
        if data is None:
            raise UserError(f"{self.factory}: gives no data: give --data package.module:function.")
        return material_of(model, data, loss_fn, spec, at_most=self.at_most)


@final
@dataclass(frozen=True, kw_only=True, eq=False)
class OfObject:
    """A model in this Python process; it stays there.

    Attributes:
        model: as the caller has it.
        data: in any of the forms of `examples.first_examples`.
        loss_fn: see `Loss`.
        at_most: see `OfCode`.
    """

    model: nn.Module
    data: Any
    loss_fn: Loss = None
    at_most: bool = False

    def named(self) -> MapSource:
        """See `Source`."""
        loss = (
            "the model's own"
            if self.loss_fn is None
            else getattr(self.loss_fn, "__name__", type(self.loss_fn).__name__)
        )
        return MapSource(
            kind="object", model=type(unwrapped(self.model)).__name__, data=type(self.data).__name__, loss=loss
        )

    def material(self, spec: MapSpec) -> Material:
        """See `Source`."""
        return material_of(self.model, self.data, self.loss_fn, spec, at_most=self.at_most)


def material_of(model: nn.Module, data: Any, loss_fn: Loss, spec: MapSpec, *, at_most: bool = False) -> Material:
    """What a model, its data and a loss give for a map.

    Raises:
        UserError: see `examples.first_examples`; a trajectory is asked for, which these do not have.
    """
    if spec.directions == "trajectory":
        raise UserError(
            "directions 'trajectory': wanted the run of a study that keeps its weights; a model alone has no path. "
            "Choose random."
        )
    home = next((each.device for each in (*model.parameters(), *model.buffers())), torch.device("cpu"))
    dtype = torch.float64 if spec.precision == "float64" else torch.float32
    batches = moved(first_examples(data, spec.examples, spec.batch_size, at_most=at_most), model)
    return Material(
        model=model,
        batches=batches,
        judge=partial(judged, own_loss_fn(loss_fn, home, dtype)),
        loss_fn=loss_fn or own_loss,
        spec=spec.of_examples(sum(map(num_examples, batches))),
    )


@dataclass(kw_only=True)
class Mapper:
    """A map ready to be asked for its points.

    Attributes:
        spec: of the map.
        material: what it is made of.
        directions: the axes.
        weights: digest of the centre's parameters and buffers, and of the snapshots.
        data: digest of the examples.
    """

    spec: MapSpec
    material: Material
    directions: Directions = field(init=False)
    weights: str = field(init=False)
    data: str = field(init=False)

    def __post_init__(self) -> None:
        spec, of = self.spec, self.material
        tensors = {**dict(of.model.named_parameters()), **dict(of.model.named_buffers())}
        parts = {name: tensor_digest(each) for name, each in tensors.items()}
        if spec.directions == "trajectory":
            for at, snapshot in enumerate(of.snapshots):
                parts |= {f"{at}/{name}": tensor_digest(each) for name, each in snapshot.items()}
            names = [name for name, each in of.model.named_parameters() if each.requires_grad]
            self.directions = trajectory_plane(of.snapshots, names=names, axes=spec.axes)
        else:
            self.directions = directions(of.model, axes=spec.axes, seed=spec.seed, normalise=spec.normalise)
        self.weights, self.data = combined_digest(parts), examples_digest(list(of.batches))
        self._surface = Surface(
            of.model, of.batches, of.judge, self.directions, norm=spec.norm, precision=spec.precision
        )

    @property
    def device(self) -> str:
        """Where it computes: cpu, cuda or mps."""
        return self._surface.device.type

    def trajectory(self) -> Trajectory | None:
        """The path in the plane, where that is the trajectory's."""
        if self.spec.directions != "trajectory":
            return None
        of = self.directions
        return Trajectory(steps=tuple(self.material.steps), path=of.path, explained=of.explained)

    def point(self, kind: PointKind, index: int) -> Point:
        """Figures of a point, by its number on the grid of its kind.

        Raises:
            UserError: the model, or the loss, raised there.
        """
        at = grid_of(self.spec, kind).at(index)
        if kind == "loss":
            found = self._surface.at(*at)
            return {"loss": found["loss"], "accuracy": found.get("accuracy")}
        if torch._C._functorch.peek_interpreter_stack() is not None:
            raise UserError(
                "landscape: eigenvalues of the Hessian cannot be found inside torch.func (grad, vmap, ...). Call it "
                "outside, or with hessian_points=0."
            )
        examples = head_of(list(self.material.batches), self.spec.hessian_examples)
        # On a CPU convolutions in float64 take four times as long, and this is far closer than the tolerance.
        dtype = torch.float64 if self.spec.precision == "float64" else torch.float32
        with self._surface.model_at(*at, dtype=dtype) as model:
            ends = extremes(Hessian(model, examples, self.material.loss_fn, dtype=dtype), tol=HESSIAN_TOL)
        return {
            "lambda_max": ends.largest,
            "lambda_min": ends.smallest,
            "residual_max": ends.residual_largest,
            "residual_min": ends.residual_smallest,
        }


def head_of_map(source: Source, spec: MapSpec, mapper: Mapper, threads: int) -> MapHead:
    """What a map's folder says of it."""
    model = mapper.material.model
    parameters = list(model.parameters())
    facts: dict[str, bool | int | float | str] = {
        "parameters": sum(each.numel() for each in parameters),
        "trained": sum(each.numel() for each in parameters if each.requires_grad),
        "batch_norms": len(normalisers(model)),
        **mapper.directions.facts,
    }
    return MapHead(
        spec=spec,
        source=source.named(),
        weights=mapper.weights,
        data=mapper.data,
        facts=facts,
        trajectory=mapper.trajectory(),
        provenance=provenance(device=mapper.device, threads=threads),
    )
