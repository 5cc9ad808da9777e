"""A loss landscape of any PyTorch model, made or gone on with."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from depthscope.api.surface import Landscape
from depthscope.core.errors import MissingDependencyError, UserError, shown
from depthscope.record.landscape import MapHead, MapRecord, grid_of, kinds, read_points
from depthscope.study.faults import found_in
from depthscope.study.landscape import MapSpec
from depthscope.train.usercode import TORCH_MISSING

if TYPE_CHECKING:
    from torch import nn

    from depthscope.execute.tell import MapProgress
    from depthscope.train.mapping import Source


def landscape(
    model: nn.Module | str,
    data: Any = None,
    loss_fn: Any = None,
    *,
    axes: int = 2,
    points: int = 51,
    extent: float = 1.0,
    normalise: str = "filter",
    seed: int = 0,
    norm: str = "eval",
    examples: int | None = None,
    batch_size: int = 128,
    precision: str = "float32",
    hessian_points: int = 0,
    hessian_examples: int = 128,
    out: str | Path | None = None,
    device: str | None = None,
    workers: int | None = None,
    executor: str | None = None,
    address: str | None = None,
    progress: Callable[[MapProgress], None] | None = None,
    tell: Callable[[str], None] | None = None,
    command: str = "",
) -> Landscape:
    """The loss of a model on a line or a plane through its weights, by Li et al. 2018; the model is only read.

    With `out` a map that was interrupted goes on where it stopped, bit for bit as if it had not been. Each point is
    found from the same weights and examples by one thread (a model object: by as many as torch has been given), so
    that it does not matter either how many workers find them.

    Args:
        model: a module; or `package.module:factory`, which worker processes can call too.
        data: examples, see `train.examples.first_examples`; of a factory `package.module:function`, or None where the
            factory gives (model, batch).
        loss_fn: `(output, targets) -> loss`, a mean over the batch; of a factory `cross_entropy`, `mse` or
            `package.module:function`. None: the model's own `output.loss`.
        axes: see `study.landscape.MapSpec`, as for those that follow.
        points: along each axis; odd.
        extent: coordinates run from -extent to extent.
        normalise: `filter` or `none`.
        seed: of the directions.
        norm: batch norm: `eval` or `batch`.
        examples: the first so many of the data; None takes the first 512, or all where there are fewer.
        batch_size: examples a batch.
        precision: `float32`, `bfloat16` or `float64`.
        hessian_points: along each axis of a coarser grid with the Hessian's extreme eigenvalues; 0: none.
        hessian_examples: the first so many of these.
        out: folder in which the map is kept; made where it does not exist.
        device: of a factory: auto, cpu, cuda or mps; None: where it puts the model.
        workers: of a factory: processes; None takes the number of cores on a CPU and 1 on a GPU.
        executor: of a factory: serial, processes or ray.
        address: of a running Ray, see `run`.
        progress: hears how many points there are.
        tell: hears lines that the person should read.
        command: what makes the map again.

    Raises:
        UserError: bad input, in one line; or the map could not be made. Points that are written stay.

    >>> import depthscope, torch
    >>> net = torch.nn.Linear(2, 1, bias=False)
    >>> _ = torch.nn.init.ones_(net.weight)
    >>> found = depthscope.landscape(net, (torch.eye(2), torch.ones(2, 1)), torch.nn.functional.mse_loss, axes=1,
    ...                              points=3, examples=2)
    >>> found.coordinates, float(found.loss[1])
    ((-1.0, 0.0, 1.0), 0.0)
    """
    from depthscope.execute.executors import available_cores, check_executor, make_executor

    spec = _spec(
        axes=axes,
        points=points,
        extent=extent,
        normalise=normalise,
        seed=seed,
        norm=norm,
        **({} if examples is None else {"examples": examples}),
        batch_size=batch_size,
        precision=precision,
        hessian_points=hessian_points,
        hessian_examples=hessian_examples,
    )
    by_name = isinstance(model, str)
    if not by_name and (executor not in (None, "serial") or workers not in (None, 1) or address is not None):
        raise UserError(
            "landscape: a model in this process cannot be sent to workers. Give the model and the data by name, "
            "package.module:function, or leave workers, executor and address away."
        )
    kind = executor or ("processes" if by_name else "serial")
    check_executor(kind, workers, address)
    folder = Path(out).expanduser().absolute() if out is not None else None
    held = _held(folder, spec, at_most=examples is None, progress=progress)  # told before torch and the model are there
    source = _source(model, data, loss_fn, device, at_most=examples is None)
    made = _make(
        source,
        spec,
        folder,
        held,
        pool=lambda on: make_executor(
            kind, workers or (1 if on in ("cuda", "mps") and kind != "ray" else available_cores()), address
        ),
        progress=progress,
        tell=tell or (lambda line: None),
        threads=1 if by_name else None,
    )
    return Landscape(record=made, **({"command": command} if command else {}))


def _make(
    source: Source,
    spec: MapSpec,
    folder: Path | None,
    held: MapHead | None,
    *,
    pool: Callable[[str], Any],
    progress: Callable[[MapProgress], None] | None,
    tell: Callable[[str], None],
    threads: int | None,
) -> MapRecord:
    import torch

    from depthscope.execute.mapping import MapFault, MapJob, map_points
    from depthscope.execute.points import prepare, release
    from depthscope.record.map_writer import open_map
    from depthscope.study.resources import Resources

    if held is not None:
        threads = held.provenance.threads
    try:
        head, centre = prepare(source, spec, threads or torch.get_num_threads())
        if spec.norm == "batch" and not head.facts["batch_norms"]:
            tell("The model has no batch norm with running statistics: norm 'batch' is the same as 'eval'.")
        if not math.isfinite(centre["loss"] or 0.0):
            tell(f"The loss of the model itself is {centre['loss']}.")
        with pool(head.provenance.device) as executor:
            resources = Resources(gpus=1.0 if head.provenance.device == "cuda" else 0.0)
            executor.check({resources})
            if folder is not None:
                head = open_map(folder, head)
            job = MapJob(source=source, head=head, folder=folder, resources=resources)
            (found,) = map_points([job], executor, on_progress=progress or (lambda at: None), on_note=tell)
    finally:
        release()
    if isinstance(found, MapFault):
        raise UserError(found.reason)
    return found


def _held(
    folder: Path | None, spec: MapSpec, *, at_most: bool, progress: Callable[[MapProgress], None] | None
) -> MapHead | None:
    """What a folder is a map of already; how many of its points are there is heard at once."""
    from depthscope.execute.tell import MapProgress
    from depthscope.record.map_writer import check_map_folder, check_spec

    held = check_map_folder(folder) if folder is not None else None
    if folder is None or held is None:
        return None
    check_spec(folder, held, spec.of_examples(held.spec.examples) if at_most else spec)
    total = sum(grid_of(held.spec, kind).size for kind in kinds(held.spec))
    there = sum(len(read_points(folder, held, kind)) for kind in kinds(held.spec))
    if progress is not None and 0 < there < total:
        progress(MapProgress(number=0, done=there, total=total, before=there))
    return held


def _source(model: Any, data: Any, loss_fn: Any, device: str | None, *, at_most: bool) -> Source:
    try:
        from torch import nn

        from depthscope.train.build import choose_device
        from depthscope.train.mapping import OfCode, OfObject
    except ModuleNotFoundError as error:
        if error.name != "torch":
            raise
        raise MissingDependencyError(TORCH_MISSING.replace("this study", "`landscape`")) from error
    if isinstance(model, str):
        for name, value in (("data", data), ("loss", loss_fn)):
            if not isinstance(value, str | None):
                raise UserError(
                    f"landscape: {name}: of a model by name wanted package.module:function, got {shown(value)}."
                )
        chosen = choose_device(device) if device is not None else None
        return OfCode(factory=model, data=data, loss=loss_fn, device=chosen, at_most=at_most)
    if not isinstance(model, nn.Module):
        raise UserError(f"landscape: model: wanted a torch.nn.Module or package.module:factory, got {shown(model)}.")
    if device is not None:
        raise UserError("landscape: device: a model object is mapped where it lies; move it first, model.to(device).")
    if data is None:
        raise UserError("landscape: data: wanted examples, such as (inputs, targets) or a DataLoader.")
    if isinstance(loss_fn, str):
        from depthscope.train.named import loss_named

        loss_fn = loss_named(loss_fn)
    if loss_fn is not None and not callable(loss_fn):
        raise UserError(f"landscape: loss_fn: wanted a function (output, targets) -> loss, got {shown(loss_fn)}.")
    return OfObject(model=model, data=data, loss_fn=loss_fn, at_most=at_most)


def _spec(**fields: Any) -> MapSpec:
    try:
        return MapSpec(**fields)
    except ValidationError as error:
        faults = [f"{'.'.join(each.path)}: {each.message}" for each in found_in(error)]
        raise UserError(f"landscape: {' '.join(faults)}") from error
