"""The page of results of the repairs: made from records, its sentences by the numbers."""

from __future__ import annotations

import importlib.util
import re
import shutil
from pathlib import Path
from typing import Any

import pytest

import depthscope
from depthscope.study.toml import bundled

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "repairs.md"
STUDY = """
name = "repairs-spiral"
title = { en = "Small" }
seeds = 2
[base]
backend = "numpy"
family = "mlp"
activation = "tanh"
width = 4
init = "gaussian"
data = "spiral"
data_options = { points_per_arm = 8 }
optimizer = "adam"
lr = 0.01
steps = 10
[parts.main]
title = { en = "All arms" }
ranked = "train_loss"
axes = { depth = [2, 4] }
arms = [
  { name = "plain" },
  { name = "residual", label = { en = "with | a plus" }, set = { shortcut = "identity" } },
  { name = "wild", set = { lr = 1e6, optimizer = "sgd" } },
]
"""


def load() -> Any:
    spec = importlib.util.spec_from_file_location("make_repairs", ROOT / "docs" / "make_repairs.py")
    assert spec is not None
    assert spec.loader is not None
    found = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(found)
    return found


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A page that the maker filled from a finished study."""
    at = tmp_path_factory.mktemp("repairs")
    (at / "study.toml").write_text(STUDY, encoding="utf-8")
    depthscope.run(at / "study.toml", out=at / "out")
    shutil.copy(PAGE, at / "repairs.md")
    load().main([at / "out"], at / "repairs.md")
    return at


def test_the_page_is_filled_from_records(made: Path) -> None:
    text = (made / "repairs.md").read_text(encoding="utf-8")
    (part,) = re.findall(r"<!-- made: repairs-spiral -->\n(.*?)<!-- end -->", text, re.DOTALL)
    assert "12 runs" in part
    assert re.search(r"python \d", part)
    assert "wild" in part.splitlines()[0]  # the finding tells whose runs were lost
    assert "2 of 2 at 4" in part
    assert "with \\| a plus" in part
    rows = [line for line in part.splitlines() if re.match(r"\| \d", line)]
    assert [row.split(" | ")[0] for row in rows] == ["| 1", "| 2", "| 3"]
    (picture,) = re.findall(r"\]\((figures/.*?\.png)\)", part)
    assert (made / picture).read_bytes().startswith(b"\x89PNG")
    others = text.replace(part, "")
    assert others.count("<!-- made: ") == PAGE.read_text(encoding="utf-8").count("<!-- made: ")


def test_a_study_without_a_place_on_the_page_is_refused() -> None:
    with pytest.raises(SystemExit, match="no place for 'spiral'"):
        load().fill(PAGE.read_text(encoding="utf-8"), "spiral", "x")


def test_every_place_is_of_a_study_of_ours_or_waits_for_one() -> None:
    text = PAGE.read_text(encoding="utf-8")
    for name, content in re.findall(r"<!-- made: (.*?) -->\n(.*?)<!-- end -->", text, re.DOTALL):
        assert name in (*bundled(), "names") or content == "Not run yet.\n"


def test_the_table_of_names_is_that_of_the_catalogue() -> None:
    maker = load()
    text = PAGE.read_text(encoding="utf-8")
    assert maker.fill(text, "names", maker.catalogue()) == text, "make it anew: python docs/make_repairs.py"


@pytest.mark.parametrize("target", sorted(set(re.findall(r"\]\(((?!https?:|#)[^)#]+)", PAGE.read_text("utf-8")))))
def test_every_link_is_there(target: str) -> None:
    assert (ROOT / "docs" / target).exists()
