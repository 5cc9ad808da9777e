"""The page of transformers and of depth in time: made from records, its code runs, its studies are bundled."""

from __future__ import annotations

import importlib
import re
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import depthscope
from depthscope.core.errors import UserError
from depthscope.data.text_files import TEXTS
from depthscope.study.toml import bundled

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "elsewhere.md"
TEXT = PAGE.read_text(encoding="utf-8")
MARKS = re.findall(r"<!-- made: (.*?) -->\n(.*?)<!-- end -->", TEXT, re.DOTALL)
STUDIES = ("microgpt", "transformer", "deepnorm", "time", "relational", "identity")


def load() -> Any:
    sys.path.insert(0, str(ROOT / "docs"))
    try:
        return importlib.import_module("make_studies")
    finally:
        sys.path.remove(str(ROOT / "docs"))


def filled(folder: Path, at: Path) -> str:
    """What the maker puts between the marks of microgpt."""
    shutil.copy(PAGE, at / "elsewhere.md")
    load().main([folder], at)
    text = (at / "elsewhere.md").read_text(encoding="utf-8")
    (part,) = re.findall(r"<!-- made: microgpt -->\n(.*?)<!-- end -->", text, re.DOTALL)
    assert isinstance(part, str)
    return part


STUDY = """
name = "microgpt"
seeds = 2
title = { en = "Small" }
[base]
backend = "numpy"
family = "gpt"
width = 8
init = "gpt2"
norm = "rms"
activation = "relu"
data = "names"
data_options = { num_train = 40, num_test = 10 }
model_options = { heads = 2 }
optimizer = "adam"
lr = 0.01
batch_size = 8
steps = 2
measures = ["samples"]
[parts.names]
title = { en = "Names" }
axes = { depth = [1, 2, 3] }
arms = [
  { name = "plain", set = { shortcut = "none" } },
  { name = "residual", label = { en = "with | a plus" }, set = { shortcut = "identity" } },
]
[[claims]]
name = "learns"
kind = "level"
part = "names"
metric = "test_loss"
unit = "nats"
statistic = "every_seed"
cells = [{ arm = "plain" }]
expect = "at_most"
than = 9.0
text = { en = "Learns" }
"""


@pytest.fixture(scope="module")
def names(tmp_path_factory: pytest.TempPathFactory, real_data: Path) -> Path:
    """A small study of names that was run."""
    at = tmp_path_factory.mktemp("elsewhere")
    try:
        TEXTS["names"].find(real_data)
    except UserError as error:
        pytest.skip(f"the names are not here: {error}")
    (at / "study.toml").write_text(STUDY, encoding="utf-8")
    depthscope.run(at / "study.toml", out=at / "out", data=real_data)
    return at


def test_the_page_is_filled_from_records_with_what_the_networks_wrote(names: Path) -> None:
    part = filled(names / "out", names)
    assert "12 runs" in part
    assert "| arm | at | n | parameters | test loss (nats) |" in part  # of the claim, before what is usual
    assert "with \\| a plus | depth 3 | 2 of 2" in part
    (written,) = re.findall(r"\| arm \| depth \| sample \| train loss \|\n.*?\n((?:\|.*\n)+)", part)
    rows = [line.split(" | ") for line in written.splitlines()]
    assert [row[1] for row in rows] == ["1", "3", "1", "3"]  # the least depth and the greatest, arm by arm
    held = depthscope.make_report(names / "out").results
    first = next(row for row in held.rows if row.cell.arm == "plain" and row.spec.depth == 1 and row.cell.seed == 0)
    assert first.record is not None
    assert rows[0][2].startswith(f"`` {first.record.samples[0][:80]}")
    assert rows[0][3] == f"{first.record.summary['train_loss']:.3f} |"


def test_a_study_that_is_not_of_the_page_is_refused(copy_of_spiral: Callable[[Path], Path], tmp_path: Path) -> None:
    folder = copy_of_spiral(tmp_path / "spiral")
    with pytest.raises(SystemExit, match="holds study 'spiral'; wanted one of microgpt"):
        load().main([folder])


def test_the_page_has_a_place_for_each_study_and_waits_for_those_not_run() -> None:
    pages = load().PAGES
    assert tuple(name for name, _ in MARKS) == STUDIES == tuple(each for each in pages if pages[each] == "elsewhere.md")
    assert tuple(pages) == tuple(load().FIGURES)
    for name, page in pages.items():
        assert f"<!-- made: {name} -->" in (ROOT / "docs" / page).read_text(encoding="utf-8")
    assert set(STUDIES) <= set(bundled())
    for name, content in MARKS:
        assert content == "Not run yet.\n" or f"*Study `{name}`, size `" in content


@pytest.mark.parametrize("target", sorted(set(re.findall(r"\]\(((?!https?:|#)[^)#]+)", TEXT))))
def test_every_link_is_there(target: str) -> None:
    assert (ROOT / "docs" / target).exists()


def test_the_code_checks_a_gpt_and_shows_what_a_plus_sign_does_along_time(capsys: pytest.CaptureFixture[str]) -> None:
    made: dict[str, Any] = {}
    for code in re.findall(r"```python\n(.*?)```", TEXT, re.DOTALL):
        exec(compile(code, "elsewhere.md", "exec"), made)
    every = [row for row in made["checked"] if row.method == "complex" and row.tensor is None]
    assert [row.count for row in every] == [sum(value.size for value in _params(made).values())]
    assert every[0].worst < 1e-10
    assert capsys.readouterr().out.count("\n") == 3
    assert made["flow"].factor() > 1  # residual, the last of the loop


def _params(made: dict[str, Any]) -> dict[str, np.ndarray[Any, Any]]:
    from depthscope.lab import Gpt, init_params

    return init_params(Gpt(depth=1, width=16, num_tokens=27, length=8, activation="tanh", bias=False), [0])
