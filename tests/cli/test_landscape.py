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
from depthscope.analysis.landscape import map_figures
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


def test_by_default_the_examples_are_at_most_512_and_the_map_is_that_of_their_number(
    call: Call, tmp_path: Path
) -> None:
    asked = [each for each in OWN if each not in ("--examples", "40")]
    done = call("landscape", *asked, "--executor", "serial", "--hessian-points", "3", "--out", tmp_path / "map")
    assert done.code == 0, done.err
    assert "3 x 3 points, 40 examples" in done.out
    spec = read_map(tmp_path / "map").spec
    assert (spec.examples, spec.hessian_examples) == (40, 40)
    kept = {path.name: path.read_bytes() for path in (tmp_path / "map").iterdir()}
    for same in (asked, (*OWN, "--hessian-examples", "40")):
        again = call(
            "landscape", *same, "--executor", "serial", "--hessian-points", "3", "--out", tmp_path / "map", "--json"
        )
        assert again.code == 0, again.err
        assert json.loads(again.out)["map"]["spec"]["examples"] == 40
    assert {path.name: path.read_bytes() for path in (tmp_path / "map").iterdir()} == kept


def test_a_default_map_is_none_of_more_examples_than_the_default(tmp_path: Path) -> None:
    code = __import__(NAME)
    x, y = (each.repeat_interleave(14, 0) for each in code.data())
    settings: dict[str, Any] = {"axes": 1, "points": 3, "out": tmp_path / "map"}
    depthscope.landscape(code.model(), (x, y), "cross_entropy", examples=560, **settings)
    with pytest.raises(UserError, match="examples 560, not 512"):
        depthscope.landscape(code.model(), (x, y), "cross_entropy", **settings)


def test_pictures_are_written_and_refused_before_the_work(call: Call, tmp_path: Path) -> None:
    svg, png = tmp_path / "map.svg", tmp_path / "map.png"
    done = call("landscape", *OWN, "--executor", "serial", "--svg", svg, "--png", png)
    assert done.code == 0, done.err
    assert svg.read_bytes().startswith(b"<svg")
    assert png.read_bytes().startswith(b"\x89PNG")
    for option in ("--svg", "--png"):
        refused = call("landscape", *OWN, "--out", tmp_path / "map", option, tmp_path / "none" / "map")
        assert (refused.code, refused.err.count("\n")) == (2, 1)
        assert "there is no folder" in refused.err
        assert not (tmp_path / "map").exists()


def test_a_map_begun_in_processes_goes_on_in_this_one_and_says_at_once_how_many_points_are_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from depthscope.execute import points

    heard: list[tuple[int, int]] = []

    def stop(at: MapProgress) -> None:
        if at.done > 2:
            raise KeyboardInterrupt

    def prepare(*arguments: Any, **options: Any) -> Any:
        heard.append((-1, -1))
        return prepared(*arguments, **options)

    settings: dict[str, Any] = {"data": f"{NAME}:data", "loss_fn": "cross_entropy", "points": 5}
    whole = depthscope.landscape(f"{NAME}:model", executor="serial", **settings)
    with pytest.raises(KeyboardInterrupt):
        depthscope.landscape(f"{NAME}:model", out=tmp_path, workers=1, progress=stop, **settings)
    left = read_map(tmp_path).missing
    assert 0 < len(left) < 25
    prepared = points.prepare
    monkeypatch.setattr(points, "prepare", prepare)
    found = depthscope.landscape(
        f"{NAME}:model",
        out=tmp_path,
        executor="serial",
        progress=lambda at: heard.append((at.before, at.done)),
        **settings,
    )
    there = 25 - len(left)
    assert heard[:3] == [(there, there), (-1, -1), (there, there)]
    assert heard[-1] == (there, 25)
    assert (found.loss == whole.loss).all()


def test_a_map_says_what_it_is_of_and_is_short_in_a_list() -> None:
    code = __import__(NAME)
    found = depthscope.landscape(code.model(), code.data(), "cross_entropy", points=5, seed=3, extent=0.5, norm="batch")
    first, of, told, figures = str(found).splitlines()
    assert first == "Sequential: 5 x 5 points, 40 examples, loss cross_entropy"
    cosine = found.record.head.facts["cosine"]
    assert of == (
        f"Filter-normalised directions of seed 3 (cosine {cosine:.2g}), from -0.5 to 0.5, batch norm re-estimated at "
        "every point."
    )
    assert f"The loss is {found.record.centre_loss:.4g} at the network" in told
    of_map = map_figures(found.record)
    assert figures == (
        f"Roughness {of_map['landscape_roughness']:.3g}, rise {of_map['landscape_rise']:.3g} orders of magnitude."
    )
    assert repr(found) == f"<Landscape of {first}>"
    shown = found._repr_html_()
    assert shown.startswith("<div><svg")
    assert first in shown


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
