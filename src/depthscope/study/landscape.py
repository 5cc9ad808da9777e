"""MapSpec: all that decides the numbers of one loss landscape, beside the model and its data; and its grid.

Source: Li et al. 2018, "Visualizing the Loss Landscape of Neural Nets" (arXiv 1712.09913).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, Any, Literal

from pydantic import Field, model_validator

from depthscope.core.hashing import digest
from depthscope.study.faults import FieldFaults
from depthscope.study.run import Float, Frozen, Int

MAP_MATHEMATICS = 1
"""Counted up when a change of code changes the numbers of a map whose spec stayed the same."""

MAX_POINTS = 1001


class _MapFields(Frozen):
    """What the maps of a study share."""

    axes: Literal[1, 2] = Field(default=2, description="directions: 1 gives a curve, 2 a plane")
    points: Annotated[Int, Field(ge=3, le=MAX_POINTS)] = Field(
        default=51, description="points along each axis; odd, so that the network itself is one"
    )
    extent: Annotated[Float, Field(gt=0, le=1e6)] = Field(
        default=1.0, description="coordinates run from -extent to extent, in units of the directions"
    )
    directions: Literal["random", "trajectory"] = Field(
        default="random", description="Gaussian, or the principal directions of the training's path"
    )
    normalise: Literal["filter", "none"] = Field(
        default="filter", description="random directions: each filter scaled to the norm of the weights' filter"
    )
    norm: Literal["eval", "batch"] = Field(
        default="eval", description="batch norm: running statistics as found, or re-estimated at every point"
    )
    examples: Annotated[Int, Field(ge=1)] = Field(
        default=512, description="the first so many of the data, in their order; the same at every point"
    )
    batch_size: Annotated[Int, Field(ge=1)] = Field(default=128, description="examples a batch")
    precision: Literal["float32", "bfloat16", "float64"] = Field(default="float32", description="of the forward pass")
    hessian_points: Annotated[Int, Field(ge=0, le=MAX_POINTS)] = Field(
        default=0,
        description="points along each axis of a coarser grid, odd, where the Hessian's largest and smallest "
        "eigenvalue are found; 0: nowhere",
    )
    hessian_examples: Annotated[Int, Field(ge=1)] = Field(
        default=128, description="of these examples, the first so many are the Hessian's"
    )

    @model_validator(mode="after")
    def _coherent(self) -> Any:
        faults = []
        if self.points % 2 == 0:
            faults.append(("points", f"wanted an odd number, so that the centre is a point; got {self.points}."))
        if self.hessian_points and (self.hessian_points % 2 == 0 or self.hessian_points < 3):
            faults.append(("hessian_points", f"wanted 0, or an odd number of 3 or more; got {self.hessian_points}."))
        if self.hessian_points > self.points:
            wanted = f"wanted a grid no finer than the map's own {self.points} points, got {self.hessian_points}."
            faults.append(("hessian_points", wanted))
        if self.hessian_points and self.hessian_examples > self.examples:
            wanted = f"wanted at most the map's own {self.examples} examples, got {self.hessian_examples}."
            faults.append(("hessian_examples", wanted))
        if self.directions == "trajectory" and self.normalise != "filter":
            faults.append(("normalise", "is for random directions alone; leave it away for those of the trajectory."))
        faults += self._further()
        if faults:
            raise FieldFaults(faults)
        return self

    def _further(self) -> list[tuple[str, str]]:
        return []


class MapSpec(_MapFields):
    """One map. It is a pure function of its spec, the weights and the examples."""

    seed: Annotated[Int, Field(ge=0, lt=2**31)] = Field(
        default=0, description="names the streams (seed, 'landscape', parameter name, axis) of random directions"
    )

    def _further(self) -> list[tuple[str, str]]:
        if self.directions == "trajectory" and self.seed:
            return [("seed", "names random directions alone; leave it away for those of the trajectory.")]
        return []

    @property
    def map_id(self) -> str:
        """16 hex digits that name all that decides the map's numbers, beside the model and its data."""
        return digest({"mathematics": MAP_MATHEMATICS, **self.model_dump(mode="json")})

    def of_examples(self, num: int) -> MapSpec:
        """The same of at most so many examples."""
        if num >= self.examples:
            return self
        hessian = min(num, self.hessian_examples) if self.hessian_points else self.hessian_examples
        return self.model_copy(update={"examples": num, "hessian_examples": hessian})

    def grid(self) -> Grid:
        """Where the loss is found."""
        return Grid(axes=self.axes, num=self.points, extent=self.extent)

    def hessian_grid(self) -> Grid | None:
        """Where the Hessian's extreme eigenvalues are found, on the same square."""
        return Grid(axes=self.axes, num=self.hessian_points, extent=self.extent) if self.hessian_points else None


class Maps(_MapFields):
    """The `[landscape]` table of a study: the maps of each of its runs."""

    planes: Annotated[Int, Field(ge=1, le=100)] = Field(
        default=1, description="maps of each run, with directions of seed 0, 1, ..."
    )
    hessian_planes: Annotated[Int, Field(ge=1, le=100)] = Field(
        default=1, description="of these maps, the first so many have the Hessian's eigenvalues, which take long"
    )
    parts: tuple[str, ...] = Field(
        default=(), description="parts of the study whose runs are mapped; left out or empty, all"
    )

    def _further(self) -> list[tuple[str, str]]:
        faults = []
        if self.directions == "trajectory" and self.planes > 1:
            faults.append(("planes", f"a trajectory has one principal plane, got {self.planes}."))
        if self.hessian_planes > 1 and not self.hessian_points:
            faults.append(("hessian_planes", "no eigenvalues are asked for; give hessian_points too, 3 or more."))
        elif self.hessian_planes > self.planes:
            faults.append(("hessian_planes", f"wanted at most the {self.planes} of planes, got {self.hessian_planes}."))
        return faults

    def specs(self) -> tuple[MapSpec, ...]:
        """The maps of one run."""
        shared = {name: getattr(self, name) for name in _MapFields.model_fields}
        without = {**shared, "hessian_points": 0}
        return tuple(
            MapSpec(**(shared if seed < self.hessian_planes else without), seed=seed) for seed in range(self.planes)
        )


@dataclass(frozen=True, kw_only=True)
class Grid:
    """The points of a map, counted along the first axis first: a is the column, b the row.

    Attributes:
        axes: 1 or 2.
        num: points along each axis, odd.
        extent: coordinates run from -extent to extent.

    >>> grid = Grid(axes=2, num=3, extent=1.0)
    >>> grid.coordinates, grid.at(1), grid.at(3), grid.at(grid.centre)
    ((-1.0, 0.0, 1.0), (0.0, -1.0), (-1.0, 0.0), (0.0, 0.0))
    """

    axes: int
    num: int
    extent: float

    @property
    def size(self) -> int:
        """Points of the whole grid."""
        return int(self.num**self.axes)

    @property
    def shape(self) -> tuple[int, ...]:
        """[num] or [num, num], of which the last is the first axis."""
        return (self.num,) * self.axes

    @cached_property
    def coordinates(self) -> tuple[float, ...]:
        """Along each axis. The middle one is exactly 0, and those around it differ in sign alone."""
        last = self.num - 1
        return tuple(self.extent * ((2 * each - last) / last) for each in range(self.num))

    def at(self, index: int) -> tuple[float, ...]:
        """(a,) or (a, b) of a point by its number.

        Raises:
            IndexError: there is no such point.
        """
        if not 0 <= index < self.size:
            raise IndexError(f"point {index} of {self.size}")
        along = self.coordinates
        return tuple(along[index // self.num**axis % self.num] for axis in range(self.axes))

    @property
    def centre(self) -> int:
        """Number of the point where the network itself is."""
        return self.size // 2
