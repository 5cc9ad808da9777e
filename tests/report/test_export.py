from __future__ import annotations

import json
import re

import pytest
from tests.report.conftest import Study

from depthscope.report import figures, png, svg
from depthscope.report.charts import Look


@pytest.fixture(scope="module")
def of_cifar(cifar: Study) -> dict[str, Look]:
    return figures(cifar.results, cifar.findings)


def test_every_figure_has_a_name_fit_for_a_file_and_its_data_inside(of_cifar: dict[str, Look], spiral: Study) -> None:
    assert set(of_cifar) == {"hero", "depth-main", "curves-main", "profile-main", "claims"}
    names = set(figures(spiral.results, spiral.findings, lang="zh"))
    assert {"hero", "profile-flow", "gradcheck-gradcheck", "curves-skip-free", "claims"} <= names
    for name in (*of_cifar, *names):
        assert re.fullmatch(r"[A-Za-z0-9_-]+", name)
    for spec in of_cifar.values():
        json.dumps(spec, allow_nan=False)
        named = set(re.findall(r'"data": \{"name": "([^"]+)"', json.dumps(spec)))
        assert named == set(spec["datasets"])


def test_profiles_stand_still_at_step_0_and_the_last(of_cifar: dict[str, Look]) -> None:
    spec = of_cifar["profile-main"]
    assert [(param["name"], param["value"]) for param in spec["params"]] == [
        ("shown_quantity_0", "dh_norm"),
        ("shown_at_0", 0),
        ("shown_quantity_1", "dh_norm"),
        ("shown_at_1", 20 - 1),
    ]
    titles = [panel["title"]["text"] for panel in spec["vconcat"][-1]["concat"]]
    assert titles == ["56 layers, step 0", "56 layers, step 390 (last)"]


def marks(image: str, color: str) -> int:
    return len(re.findall(rf'(?:stroke|fill)="{color}"', image))


def test_svg_has_every_arm_and_png_is_a_png(of_cifar: dict[str, Look]) -> None:
    for name in ("hero", "depth-main", "profile-main"):
        image = svg(of_cifar[name]).decode("utf-8")
        assert image.startswith("<svg")
        for color in ("#d9481c", "#1f63c4", "#0d917e"):
            assert marks(image, color) > 3, (name, color)
        assert "<script" not in image
    assert png(of_cifar["hero"], scale=1.0).startswith(b"\x89PNG\r\n")


def test_other_kinds_of_figures_convert(spiral: Study) -> None:
    specs = figures(spiral.results, spiral.findings)
    for name in ("curves-skip-free", "profile-flow", "gradcheck-gradcheck", "claims"):
        assert len(svg(specs[name])) > 4000, name
