"""`depthscope landscape`: what it writes and says; one clear line for bad input, and nothing lost."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch")

from tests.small_net import NAME, write

import depthscope
from depthscope.cli.landscape import progress
from depthscope.core.errors import UserError
from depthscope.execute.tell import MapProgress
from depthscope.record.landscape import read_map

Call = Callable[..., Any]
OWN = (f"{NAME}:model", "--data", f"{NAME}:data", "--loss", "cross_entropy", "--examples", "40", "--points", "3")


@pytest.fixture(scope="module", autouse=True)
def _code(tmp_path_factory: pytest.TempPathFactory) -> None:
    write(tmp_path_factory.mktemp("code"))


def test_a_map_is_kept_shown_and_gone_on_with(call: Call, tmp_path: Path) -> None:
    out, page = tmp_path / "map", tmp_path / "page.html"
    done = call("landscape", *OWN, "--workers", "1", "--out", out, "--html", page)
    assert done.code == 0, done.err
    assert f"{NAME}:model: 3 x 3 points, 40 examples" in done.out
    assert "9 of 9 points" in done.err
    assert page.read_bytes().startswith(b"<!")
    kept = {path.name: path.read_bytes() for path in out.iterdir()}
    again = call("landscape", *OWN, "--workers", "1", "--out", out, "--json")
    assert again.code == 0
    document = json.loads(again.out)
    assert document["loss"] == read_map(out).loss.tolist()
    assert document["coordinates"] == [-1.0, 0.0, 1.0]
    assert "landscape" in document["command"]
    assert {path.name: path.read_bytes() for path in out.iterdir()} == kept

    other = call("landscape", *OWN, "--workers", "1", "--out", out, "--seed", "1")
    assert (other.code, other.err.count("\n")) == (2, 1)
    assert "holds another map: seed 0, not 1" in other.err
    assert {path.name: path.read_bytes() for path in out.iterdir()} == kept


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("--points", "4"), "points: wanted an odd number"),
        (("--extent", "0"), "extent: wanted more than 0"),
        (("--examples", "41"), "the data hold 40 examples, wanted 41"),
        (("--norm", "train"), "norm: wanted 'eval' or 'batch', got 'train'"),
        (("--precision", "float16"), "precision: wanted"),
        (("--hessian-points", "2"), "hessian_points: wanted 0, or an odd number"),
        (("--loss", "mse"), "targets"),
        (("--loss", "cross_entrop"), "Did you mean 'cross_entropy'?"),
        (("--loss", f"{NAME}:broken"), "the loss raised RuntimeError: not today"),
        (("--data", f"{NAME}:model"), "got batches of Linear"),
        (("--data", "nowhere:data"), "no module 'nowhere'"),
        (("--executor", "threads"), "unknown executor"),
        (("--workers", "0"), "workers: wanted a whole number of 1 or more"),
        (("--device", "tpu"), "unknown device"),
    ],
)
def test_bad_input_is_one_line_and_nothing_is_written(
    arguments: tuple[str, ...], told: str, call: Call, tmp_path: Path
) -> None:
    done = call("landscape", *OWN, "--out", tmp_path / "map", *arguments)
    assert (done.code, done.out) == (2, "")
    assert told in done.err
    assert done.err.count("\n") == 1
    assert not (tmp_path / "map").exists()


@pytest.mark.parametrize(
    ("model", "told"),
    [
        (f"{NAME}:frozen", "nothing can move"),
        (f"{NAME}:modle", "Did you mean 'model'?"),
        (f"{NAME}:data", "wanted a torch.nn.Module"),
    ],
)
def test_a_model_that_has_no_map(model: str, told: str, call: Call, tmp_path: Path) -> None:
    done = call("landscape", model, *OWN[1:], "--out", tmp_path / "map")
    assert done.code == 2
    assert told in done.err
    assert not (tmp_path / "map").exists()


def test_a_folder_of_other_things_is_left_alone(call: Call, tmp_path: Path) -> None:
    (tmp_path / "diary.txt").write_text("mine")
    done = call("landscape", *OWN, "--out", tmp_path)
    assert done.code == 2
    assert "holds other files and no map" in done.err
    assert [path.name for path in tmp_path.iterdir()] == ["diary.txt"]


def test_in_python_a_model_object_and_a_name_give_the_same_map() -> None:
    code = __import__(NAME)
    settings: dict[str, Any] = {"points": 3, "examples": 40, "batch_size": 16}
    named = depthscope.landscape(f"{NAME}:with_data", loss_fn="cross_entropy", workers=1, **settings)
    given = depthscope.landscape(code.model(), code.data(), "cross_entropy", **settings)
    assert (named.loss == given.loss).all()
    assert given.svg().startswith(b"<svg")
    frame = given.to_pandas()
    assert list(frame.columns) == ["a", "b", "loss", "accuracy"]
    assert frame.loss[4] == given.record.centre_loss
    assert "Sequential: 3 x 3 points" in str(given)
    with pytest.raises(UserError, match="cannot be sent to workers"):
        depthscope.landscape(code.model(), code.data(), workers=2)


def test_time_left_is_that_of_the_points_found_now(capsys: pytest.CaptureFixture[str]) -> None:
    times = iter([0.0, 0.0, 10.0, 70.0])
    hear = progress(is_terminal=False, clock=lambda: next(times))
    for done in (50, 60, 100):
        hear(MapProgress(number=0, done=done, total=100, before=50))
    assert capsys.readouterr().err.splitlines() == [
        "50 of 100 points are there already",
        "60 of 100 points, about 0:00:40 left",
        "100 of 100 points",
    ]
