"""All of docs/speed.md: every benchmark in turn, each a process of its own, and the page made of their records.

    python benchmarks/bench.py [--quick] [--data FOLDER]

About half an hour on two cores, which should have nothing else to do. `--quick` takes two pairs of each, to see that
all runs: it prints what it finds, and neither records nor page are written. FOLDER holds CIFAR-10.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent


def commands(quick: bool, data: str | None) -> list[list[str]]:
    """One a script, with how often it measures."""

    def often(usual: int) -> str:
        return str(2 if quick else usual)

    return [
        ["start.py", "--times", often(15)],
        ["laboratory.py", "--pairs", often(8)],
        ["training.py", "--pairs", often(8)],
        ["watch.py", "--norms", "--rounds", often(8)],
        ["memory.py", "--times", often(3), *(["--only", "110"] if quick else [])],
        ["growth.py", "--times", often(3)],
        ["landscape.py", "--pairs", often(5)],
        ["studies.py", "--only", "sweep", "--pairs", often(3)],
        ["studies.py", "--only", "quick", "--pairs", "1", *(["--data", data] if data else [])],
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--data")
    asked = parser.parse_args()
    failed = []
    with tempfile.TemporaryDirectory() as scratch:
        own = {**os.environ, "BENCH_RECORDS": scratch} if asked.quick else None
        for script, *options in commands(asked.quick, asked.data):
            began = time.perf_counter()
            # Of Python's, as it is called here: the interpreter whose packages are measured.
            code = subprocess.run([sys.executable, str(HERE / script), *options], env=own).returncode
            print(f"-- {script}: {time.perf_counter() - began:.0f} s", flush=True)
            failed += [script] if code else []
    if not asked.quick:
        subprocess.run([sys.executable, str(HERE.parent / "docs" / "make_speed.py")], check=True)
    if failed:
        raise SystemExit(f"failed: {', '.join(failed)}")


if __name__ == "__main__":
    main()
