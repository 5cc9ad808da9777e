"""How a study grows with its runs, and a profile with its layers.

    python benchmarks/growth.py [--only runs|layers] [--times 3]

A study of 10, 100 and 1,000 runs is made (tiny networks of the laboratory, each with its profile by layers); then
`status`, `make_report` and the `run` of a study that has nothing left to do are timed, each in a process of its own,
what it imports on the way included. `depthscope.probe` is timed on plain stacks of 10, 100 and 1,000 layers.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

from pairs import PACKAGES, RECORDS, machine

SIZES = {10: (1, 1, 5), 100: (1, 10, 5), 1000: (5, 10, 10)}
"""Runs: (gains, depths, seeds), of a plain and of a residual network."""

LAYERS = (10, 100, 1000)
SECONDS, PAGE_MB = 5.0, 5.0


@dataclass(frozen=True, kw_only=True)
class Growth:
    """How something grows.

    Attributes:
        name: short name, the file's.
        what: in words.
        along: what `at` counts: runs or layers.
        at: the sizes, ascending.
        processor_s: median seconds of the processor at each.
        memory_mib: peak memory of the process at each.
        page_mb: size of the page at each; empty where none is made.
        times: how often each was measured.
        want: what was asked, in words.
        kind: tells this record from one of pairs.
    """

    name: str
    what: str
    along: str
    at: list[int]
    processor_s: list[float]
    memory_mib: list[float]
    page_mb: list[float] = field(default_factory=list)
    times: int
    want: str
    kind: str = "growth"
    machine: str = field(default_factory=machine)
    versions: dict[str, str] = field(
        default_factory=lambda: {each: version(each) for each in PACKAGES} | {"python": platform.python_version()}
    )
    when: str = field(default_factory=lambda: datetime.now(UTC).date().isoformat())

    def save(self) -> Growth:
        """Write it, in place of an older one of that name, and print it."""
        RECORDS.mkdir(parents=True, exist_ok=True)
        (RECORDS / f"{self.name}.json").write_text(json.dumps(asdict(self), indent=1) + "\n")
        told = "; ".join(
            f"{at} {self.along}: {seconds:.2f} s, {memory:.0f} MiB"
            for at, seconds, memory in zip(self.at, self.processor_s, self.memory_mib, strict=True)
        )
        pages = f"; pages {', '.join(f'{size:.2f}' for size in self.page_mb)} MB" if self.page_mb else ""
        print(f"{self.name}: {told}{pages}", flush=True)
        return self


def study(num: int) -> Any:
    """A study of that many runs."""
    from depthscope.study.study import StudySpec

    gains, depths, seeds = SIZES[num]
    arms = [
        {
            "name": f"{name}-{index}",
            "label": {"en": f"{name}, gain {0.7 + index / 10:g}"},
            "set": {"shortcut": shortcut, "gain": 0.7 + index / 10},
        }
        for index in range(gains)
        for name, shortcut in (("plain", "none"), ("residual", "identity"))
    ]
    deep, shallow = ({"arm": "plain-0", "where": {"depth": end}} for end in ("max", "min"))
    claim = {
        "name": "plain-degrades",
        "kind": "difference",
        "confirmatory": True,
        "text": {"en": "Depth raises the training loss of the plain network"},
        "part": "main",
        "metric": "train_loss",
        "unit": "nats",
        "a": deep,
        "b": shallow if depths > 1 else {"arm": "residual-0", "where": {"depth": "max"}},
        "expect": "at_least",
        "than": 0.0,
    }
    return StudySpec.model_validate(
        {
            "name": f"growth-{num}",
            "title": {"en": f"A study of {num} runs"},
            "question": {"en": "How long do status, report and resume take?"},
            "seeds": seeds,
            "base": {
                "backend": "numpy",
                "family": "mlp",
                "activation": "tanh",
                "width": 8,
                "init": "gaussian",
                "data": "spiral",
                "steps": 100,
                "measures": ["layers"],
            },
            "parts": {
                "main": {
                    "title": {"en": "Training against depth"},
                    "baseline": "plain-0",
                    "axes": {"depth": [4 * (index + 1) for index in range(depths)] if depths > 1 else [40]},
                    "arms": arms,
                }
            },
            "claims": [claim],
        }
    )


def status(folder: str) -> None:
    import depthscope

    assert depthscope.status(folder).complete


def report(folder: str) -> None:
    from depthscope.api.reports import make_report

    make_report(folder)


def resume(folder: str) -> None:
    import depthscope

    depthscope.run(f"{folder}/study.toml", out=folder, workers=1)


def probe(layers: str) -> None:
    import torch
    from torch import nn

    import depthscope

    torch.manual_seed(0)
    torch.set_num_threads(1)
    num = int(layers)
    stack = [part for _ in range(num - 1) for part in (nn.Linear(16, 16), nn.Tanh())]
    model = nn.Sequential(*stack, nn.Linear(16, 10))
    x, y = torch.randn(64, 16), torch.randint(10, (64,))
    depthscope.probe(model, (x, y))


VERBS: dict[str, Callable[[str], None]] = {"status": status, "report": report, "resume": resume, "probe": probe}


def alone(verb: str, of: str) -> tuple[float, float]:
    """(seconds of the processor, peak memory in MiB) of a verb, in a process of its own."""
    own = {**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    command = [sys.executable, __file__, "--verb", verb, "--of", of]
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=own)
    seconds, memory = done.stdout.splitlines()[-1].split()
    return float(seconds), float(memory)


def measure(verb: str, of: str) -> None:
    begin = time.process_time()
    VERBS[verb](of)
    print(time.process_time() - begin, resident_mib())


def resident_mib(what: str = "VmHWM") -> float:
    """MiB of this process, by a name of Linux's `/proc/self/status`: by default what it held of memory at most.

    The peak that `getrusage` tells is no less than that of the process which started this one, and stands in only
    where the system has no such file.
    """
    try:
        lines = Path("/proc/self/status").read_text().splitlines()
        return next(int(line.split()[1]) / 1024 for line in lines if line.startswith(f"{what}:"))
    except (OSError, StopIteration):
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (2**20 if sys.platform == "darwin" else 1024)


def grown(verb: str, of: list[str], times: int) -> tuple[list[float], list[float]]:
    found = [[alone(verb, each) for _ in range(times)] for each in of]
    seconds = [statistics.median(each[0] for each in some) for some in found]
    return seconds, [statistics.median(each[1] for each in some) for some in found]


def runs(times: int) -> None:
    import depthscope

    with tempfile.TemporaryDirectory() as place:
        folders = []
        for num in SIZES:
            folder = Path(place) / str(num)
            assert len(depthscope.run(study(num), out=folder).results.records) == num
            folders.append(folder)
        of = [str(folder) for folder in folders]
        for verb, what in (
            ("status", "`depthscope status` of a study"),
            ("report", "`depthscope report` of a study: findings, table and page"),
            ("resume", "`depthscope run` of a study with nothing left to do: records read, judged and shown again"),
        ):
            seconds, memory = grown(verb, of, times)
            pages = [(folder / "report.html").stat().st_size / 1e6 for folder in folders] if verb == "report" else []
            Growth(
                name=f"growth-{verb}",
                what=what,
                along="runs",
                at=list(SIZES),
                processor_s=seconds,
                memory_mib=memory,
                page_mb=pages,
                times=times,
                want=f"under {SECONDS:g} s at 1,000 runs" + (f", under {PAGE_MB:g} MB at 100" if pages else ""),
            ).save()


def layers(times: int) -> None:
    seconds, memory = grown("probe", [str(num) for num in LAYERS], times)
    Growth(
        name="growth-probe",
        what="`depthscope.probe` of a plain stack, 64 examples",
        along="layers",
        at=list(LAYERS),
        processor_s=seconds,
        memory_mib=memory,
        times=times,
        want="linear",
    ).save()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", choices=("runs", "layers"))
    parser.add_argument("--times", type=int, default=3)
    parser.add_argument("--verb", choices=VERBS, help=argparse.SUPPRESS)
    parser.add_argument("--of", help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.verb:
        measure(asked.verb, asked.of)
        return
    if asked.only != "layers":
        runs(asked.times)
    if asked.only != "runs":
        layers(asked.times)


if __name__ == "__main__":
    main()
