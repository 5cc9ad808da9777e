"""What `depthscope plan` shows: runs, parameters, FLOPs, memory, and the time where it was measured."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from depthscope.api import half_repairs, outlines
from depthscope.cli.tables import console, print_json

Counts = Mapping[str, Any] | None
_NUMBERS = ("seeds", "parameters", "training FLOPs a run", "memory", "time a run")


@contextmanager
def timing(*, quiet: bool) -> Iterator[Callable[[int, int], None]]:
    """A line on stderr that says how many kinds of run are timed already."""
    out = Console(stderr=True, markup=False, highlight=False)
    if quiet or not out.is_terminal:
        yield lambda done, total: None
        return
    with out.status("timing a few steps of each kind of run") as status:
        yield lambda done, total: status.update(f"timing a few steps of each kind of run: {done} of {total}")


def plan(planned: Any, costs: Counts, estimate: Any = None, *, as_json: bool) -> None:
    """A row for each arm at each value of the axes, and what they come to."""
    rows = list(_rows(planned, costs, estimate))
    study = planned.study
    if as_json:
        document = {"study": study.name, "size": study.size, "num_runs": len(planned.runs), "rows": rows}
        document["claims"] = [{**asdict(each), "words": str(each)} for each in outlines(planned)]
        if estimate is not None:
            names = ("seconds", "low", "high", "work", "workers", "at_most")
            document["estimate"] = {name: getattr(estimate, name) for name in names}
        if planned.maps:
            document["maps"] = {"runs": len(planned.maps), "maps": num_maps(planned), **_map_facts(planned)}
        document["remark"] = half_repairs(planned)
        print_json(document)
        return
    out = console()
    size = f", size {study.size}" if study.size else ""
    table = Table(title=Text(f"{study.name}{size}: {len(planned.runs)} runs"), title_justify="left")
    columns = ["part", "arm", "at", *_NUMBERS]
    for column in columns if estimate is not None else columns[:-1]:
        table.add_column(column, justify="right" if column in _NUMBERS else "left")
    for row in rows:
        flops, memory = row["train_flops_per_run"], row["memory_bytes"]
        cells = [
            row["part"],
            row["arm"],
            ", ".join(f"{key} {value}" for key, value in row["axes"].items()),
            str(len(row["run_ids"])),
            f"{row['parameters']:,}" if row["parameters"] is not None else "needs torch",
            f"{flops:.2e}" if flops else "–",
            size_of(memory) if memory is not None else "–",
        ]
        table.add_row(*cells, *([duration(row["seconds_per_run"])] if estimate is not None else []))
    out.print(table)
    for line in _sums(planned, costs, estimate):
        out.print(line)
    if planned.maps:
        out.print(Text(_maps(planned)))
    claims = outlines(planned)
    out.print(Text("\nClaims:" if claims else "\nNo claims: the page will show the figures alone."))
    for each in claims:
        out.print(Text(f"- {each}"))
    remark = half_repairs(planned)
    if remark:
        out.print(Text(f"\n{remark}"))


def _rows(planned: Any, costs: Counts, estimate: Any) -> Iterator[dict[str, Any]]:
    rows: dict[tuple[str, ...], dict[str, Any]] = {}
    for cell in planned.cells:
        axes = {key: str(value) for key, value in cell.axes.items()}
        key = (cell.part, cell.arm, *axes.values())
        row = rows.setdefault(key, {"part": cell.part, "arm": cell.arm, "axes": dict(cell.axes), "run_ids": []})
        row["run_ids"].append(cell.run_id)
    for row in rows.values():
        first = row["run_ids"][0]
        counted = costs.get(first) if costs else None
        row["parameters"] = counted.parameters if counted else None
        row["train_flops_per_run"] = counted.train_flops if counted else None
        row["memory_bytes"] = counted.memory.total if counted else None
        row["side_by_side"] = counted.group if counted else None
        if estimate is not None:
            row["seconds_per_run"] = estimate.runs[first]
        yield row


def num_maps(planned: Any) -> int:
    """Maps of all runs."""
    return sum(map(len, planned.maps.values()))


def _map_facts(planned: Any) -> dict[str, Any]:
    spec = next(iter(planned.maps.values()))[0]
    grid, hessian = spec.grid(), spec.hessian_grid()
    return {"points": grid.size, "examples": spec.examples, "hessian_points": hessian.size if hessian else 0}


def _sizes(planned: Any) -> Iterator[int]:
    """Points of each map, with those of eigenvalues."""
    for specs in planned.maps.values():
        for spec in specs:
            hessian = spec.hessian_grid()
            yield spec.grid().size + (hessian.size if hessian else 0)


def _maps(planned: Any) -> str:
    facts, planes = _map_facts(planned), planned.study.landscape.planes
    maps, runs = num_maps(planned), len(planned.maps)
    of = f"{runs:,} run{'s' if runs > 1 else ''}" + ("" if planes == 1 else f", {planes} planes each")
    curved = ""
    if facts["hessian_points"]:
        curved = f", and the Hessian's extremes at {facts['hessian_points']:,}"
        some = planned.study.landscape.hessian_planes
        curved += "" if some >= planes else f" of its first {'plane' if some == 1 else f'{some} planes'}"
    return (
        f"Maps: {maps:,} ({of}), made when the runs are done. A map has the loss of {facts['examples']:,} examples at "
        f"{facts['points']:,} points{curved}; {sum(_sizes(planned)):,} points in all."
    )


def _sums(planned: Any, costs: Counts, estimate: Any) -> Iterator[str]:
    counted = [costs[run_id] for run_id in planned.runs] if costs else []
    total = sum(each.train_flops or 0.0 for each in counted)
    if total:
        yield f"{total:.2e} training FLOPs in all (a multiply and an add are two)."
    if counted:
        most = max(counted, key=lambda each: each.memory.total)
        together = f" for {most.group} seeds side by side" if most.group > 1 else ""
        yield (
            f"Memory: up to {size_of(most.memory.total)} a worker{together} (weights, gradients, optimiser, "
            "activations of a batch, data), beside Python and its libraries."
        )
    if estimate is not None:
        workers = "1 worker" if estimate.workers == 1 else f"{estimate.workers} workers"
        bound = "at most " if estimate.at_most else "about "
        early = "; runs may stop early" if estimate.at_most else ""
        yield (
            f"Time: {bound}{duration(estimate.seconds)} with {workers} (by the spread of the steps timed, "
            f"{duration(estimate.low)} to {duration(estimate.high)}{early}). An estimate from a few steps on this "
            "machine as busy as it is; the start of the workers and the page come on top."
        )


def size_of(num_bytes: int) -> str:
    """Bytes for people.

    >>> size_of(900), size_of(2_300_000), size_of(41_000_000_000)
    ('1 kB', '2.3 MB', '41 GB')
    """
    value, unit = num_bytes / 1e3, "kB"
    for larger in ("MB", "GB", "TB"):
        if value >= 1000:
            value, unit = value / 1e3, larger
    return f"{value:.1f} {unit}" if value < 10 and unit != "kB" else f"{value:.0f} {unit}"


def duration(seconds: float) -> str:
    """Seconds for people.

    >>> duration(0.04), duration(7.31), duration(125), duration(7320), duration(300_000)
    ('0.04 s', '7.3 s', '2 min 05 s', '2 h 02 min', '3 d 11 h')
    """
    if seconds < 1:
        return f"{seconds:.2g} s"
    if seconds < 60:
        return f"{seconds:.1f} s" if seconds < 10 else f"{seconds:.0f} s"
    if seconds < 3600:
        return f"{seconds // 60:.0f} min {seconds % 60:02.0f} s"
    if seconds < 86_400:
        return f"{seconds // 3600:.0f} h {seconds % 3600 // 60:02.0f} min"
    return f"{seconds // 86_400:.0f} d {seconds % 86_400 // 3600:02.0f} h"
