"""Points of a map in a worker, which keeps the map that it last worked on ready for the next order."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass

import torch
from threadpoolctl import threadpool_limits

from depthscope.core.errors import UserError
from depthscope.execute.pages import keep_pages
from depthscope.probes.curvature import Hessian, check_mean
from depthscope.record.landscape import MapHead, PointKind
from depthscope.study.catalog import is_user_code
from depthscope.study.landscape import MapSpec
from depthscope.train.exact import exact
from depthscope.train.examples import head_of
from depthscope.train.mapping import Mapper, Point, Source, head_of_map
from depthscope.train.usercode import code_digest
from depthscope.train.variants.generators import Side


@dataclass(frozen=True, kw_only=True)
class PointsOrder:
    """Points to find.

    Attributes:
        source: whose landscape.
        head: what the map is of, as its driver found it; a worker that finds other weights or examples refuses.
        kind: of the points.
        indices: their numbers.
    """

    source: Source
    head: MapHead
    kind: PointKind
    indices: tuple[int, ...]


@dataclass(frozen=True, kw_only=True)
class Found:
    """What became of an order: figures by the points' numbers, and the seconds that these took."""

    rows: Mapping[int, Point]
    seconds: float


_held: tuple[Source, MapSpec, Mapper] | None = None


def find_points(order: PointsOrder) -> Found:
    """The figures of an order's points. They depend on the point alone, whatever was ordered before.

    Raises:
        UserError: bad input; or the source gives other weights or examples here than the driver found.
    """
    threads = order.head.provenance.threads
    keep_pages()
    with exact(threads), threadpool_limits(limits=threads, user_api="blas"):
        mapper = _mapper(order.source, order.head.spec)
        _check(mapper, order.head)
        begin = time.perf_counter()
        rows = {index: mapper.point(order.kind, index) for index in order.indices}
        return Found(rows=rows, seconds=time.perf_counter() - begin)


def prepare(source: Source, spec: MapSpec, threads: int) -> tuple[MapHead, Point]:
    """What a map is of, and the figures of its centre: for the checks before anything is written.

    The head's spec has the number of examples that there are, where it was asked for at most so many.

    Orders that work in this process find the map ready.

    Raises:
        UserError: bad input, in one line; the Hessian is asked for, and its products are wrong.
    """
    with exact(threads), threadpool_limits(limits=threads, user_api="blas"):
        mapper = _mapper(source, spec)
        head, centre = head_of_map(source, mapper.spec, mapper, threads), mapper.point("loss", spec.grid().centre)
        loss = head.source.loss
        code = code_digest(loss) if head.source.kind == "code" and is_user_code(loss) else None
        kept = {"code": code, "centre": None if centre["loss"] is None else repr(centre["loss"])}
        if spec.hessian_points:
            _check_curvature(mapper)
        return head.model_copy(update=kept), centre


def _check_curvature(mapper: Mapper) -> None:
    of, spec = mapper.material, mapper.spec
    dtype = torch.float64 if spec.precision == "float64" else torch.float32
    Hessian(of.model, head_of(list(of.batches), spec.hessian_examples), of.loss_fn, dtype=dtype).check_symmetric()


def release() -> None:
    """Let go of the map that is kept ready."""
    global _held
    _held = None


def _mapper(source: Source, spec: MapSpec) -> Mapper:
    global _held
    if _held is not None and _held[0] == source and _held[1] == spec:
        return _held[2]
    release()  # first, so that two never take memory at once
    with Side(0, "probe", "landscape").drawing():  # code of the user's draws from it, and nothing of the caller's
        material = source.material(spec)
        check_mean(material.loss_fn, "landscape")
        mapper = Mapper(spec=material.spec or spec, material=material)
    _held = (source, mapper.spec, mapper)
    return mapper


def _check(mapper: Mapper, head: MapHead) -> None:
    named = head.source
    for what, name, found, wanted in (
        ("weights", named.model, mapper.weights, head.weights),
        ("examples", named.data, mapper.data, head.data),
        ("a device", named.model, mapper.device, head.provenance.device),
    ):
        if found != wanted:
            raise UserError(
                f"{name}: gives other {what} each time, or in each process. Wanted the same: load them from a file, or "
                "draw them from a seed."
                if what != "a device"
                else f"{name}: works on {found} in a worker, on {wanted} here. Name the device with --device."
            )
