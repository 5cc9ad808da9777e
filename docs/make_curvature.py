"""Makes the generated part of docs/curvature.md: what its command says.

python docs/make_curvature.py
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from results import fill

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "curvature.md"
COMMAND = (
    "depthscope curvature deep:short --data deep:data --loss cross_entropy --batch-size 512 "
    "--what extremes,trace,density"
)


def shown() -> str:
    """What the command of the page prints."""
    sys.path.insert(0, str(ROOT / "docs" / "examples"))
    import depthscope

    what = ("extremes", "trace", "density")
    return str(depthscope.curvature("deep:short", "deep:data", "cross_entropy", what=what, batch_size=512))


if __name__ == "__main__":
    PAGE.write_text(fill(PAGE.read_text(encoding="utf-8"), "curvature", f"```text\n{shown()}\n```"), encoding="utf-8")
