"""The light promise, at run time: lazy imports hide from a linter."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from depthscope.core.errors import UserError
from depthscope.data.text_files import TEXTS


def python(code: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-c", code, *arguments], capture_output=True, text=True, timeout=300)


BLOCKED = """
import sys

class NoTorch:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] == "torch":
            raise ModuleNotFoundError("No module named 'torch'", name="torch")

sys.meta_path.insert(0, NoTorch())
"""

CALL = """
import sys
from depthscope.cli.main import main
sys.argv = ["depthscope", *sys.argv[1:]]
try:
    main()
except SystemExit as end:
    assert not end.code, end.code
finally:
    loaded = {name.partition(".")[0] for name in sys.modules}
    print("LOADED", *sorted(loaded & {"torch", "altair", "scipy", "pyarrow", "numpy"}), file=sys.stderr)
"""


@pytest.mark.parametrize("arguments", [["--help"], ["run", "--help"], ["plan", "--help"], ["--version"]])
def test_help_loads_no_torch_and_no_altair(arguments: list[str]) -> None:
    done = python(CALL, *arguments)
    assert done.returncode == 0, done.stderr
    assert done.stderr.strip().splitlines()[-1] == "LOADED"


def test_import_loads_next_to_nothing() -> None:
    done = python(
        "import sys, depthscope; print(*(name for name in ('torch', 'altair', 'numpy') if name in sys.modules))"
    )
    assert done.stdout.strip() == ""


def test_the_smoke_spiral_runs_with_torch_blocked(tmp_path: Path) -> None:
    code = BLOCKED + CALL
    done = python(code, "run", "spiral", "--size", "smoke", "--out", str(tmp_path / "spiral"), "--workers", "1")
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "spiral" / "report.html").stat().st_size > 100_000
    assert "Residual networks fit every training point" in done.stdout


def test_the_smoke_transformer_runs_with_torch_blocked(tmp_path: Path, real_data: Path) -> None:
    try:
        TEXTS["names"].find(real_data)
    except UserError as error:
        pytest.skip(f"the names are not here: {error}")
    out = tmp_path / "microgpt"
    options = ("--size", "smoke", "--data", str(real_data), "--out", str(out), "--workers", "1")
    done = python(BLOCKED + CALL, "run", "microgpt", *options)
    assert done.returncode == 0, done.stderr
    assert "LOADED" in done.stderr.splitlines()[-1]
    assert "torch" not in done.stderr.splitlines()[-1]
    assert "agrees with the complex step" in done.stdout


def test_a_torch_study_without_torch_says_how_to_get_it(tmp_path: Path) -> None:
    code = BLOCKED + "import sys\nfrom depthscope.cli.main import main\nmain()"
    out = tmp_path / "out"
    done = subprocess.run(
        [sys.executable, "-c", code, "run", "cifar10", "--size", "smoke", "--out", str(out)],
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 2
    assert "PyTorch is not installed" in done.stderr
    assert "Traceback" not in done.stderr
    assert not out.exists()


def test_a_plan_without_torch_lists_the_runs_and_says_that_counts_need_it() -> None:
    code = BLOCKED + CALL
    done = python(code, "plan", "cifar10", "--size", "full")
    assert done.returncode == 0, done.stderr
    assert "18 runs" in done.stdout
    assert "needs torch" in done.stdout
