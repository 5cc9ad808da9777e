"""How long `import depthscope` and `depthscope --help` take, each in fresh processes.

    python benchmarks/start.py [--times 15]

By the clock, the interpreter's own start included, which is measured beside them, turn by turn. On a busy machine the
processor's time, told among the facts, is the steadier one.
"""

from __future__ import annotations

import argparse
import resource
import statistics
import subprocess
import sys
import time

from pairs import figure

BARE = [sys.executable, "-c", "pass"]
IMPORT = [sys.executable, "-c", "import depthscope"]
HELP = [sys.executable, "-c", "from depthscope.cli.main import main; main()", "--help"]


def taken(command: list[str]) -> tuple[float, float]:
    """Milliseconds of the clock and of the processor."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    began = time.perf_counter()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    wall = time.perf_counter() - began
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return 1e3 * wall, 1e3 * (after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime)


def slowest(command: list[str], rows: int = 6) -> dict[str, float | str]:
    """The modules whose own import takes the longest, in ms."""
    done = subprocess.run(
        [command[0], "-X", "importtime", *command[1:]], check=True, capture_output=True, text=True, encoding="utf-8"
    )
    lines = [line.removeprefix("import time:").split("|") for line in done.stderr.splitlines() if "|" in line][1:]
    found = sorted(((int(own), name.strip()) for own, _, name in lines), reverse=True)[:rows]
    return {f"profile {at}": f"{own / 1e3:.1f} ms {name}" for at, (own, name) in enumerate(found, start=1)}


def main(times: int) -> None:
    commands = {"bare": BARE, "import": IMPORT, "help": HELP}
    spent: dict[str, list[tuple[float, float]]] = {name: [] for name in commands}
    for turn in range(times + 1):
        for name, command in commands.items():
            found = taken(command)
            if turn:  # the first reads the disk
                spent[name].append(found)
    middle = {name: statistics.median(own for _, own in each) for name, each in spent.items()}
    bare = statistics.median(wall for wall, _ in spent["bare"])
    for name, what, want in (
        ("import", "`import depthscope` in a fresh process", 100),
        ("help", "`depthscope --help`", 250),
    ):
        values = [wall for wall, _ in spent[name]]
        missed = statistics.median(values) > want
        facts: dict[str, float | str] = {
            "processor, ms": round(middle[name], 1),
            "interpreter alone, ms": round(bare, 1),
            "interpreter alone, processor, ms": round(middle["bare"], 1),
        }
        figure(
            name,
            what,
            values,
            unit="ms",
            want=want,
            clock="wall",
            facts={**facts, **(slowest(commands[name]) if missed else {})},
        )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--times", type=int, default=15)
    main(parser.parse_args().times)
