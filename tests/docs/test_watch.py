"""docs/watch.md: its loops run as they stand, and what it says of them is so."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch")

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "watch.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
OTHERS = ("torch.utils.tensorboard", "wandb", "mlflow", "lightning", "transformers")
"""Packages that some blocks need: those are read here, not run."""


def test_the_loops_run_as_they_stand(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    told: dict[str, Any] = {}
    ran = []
    for index, block in enumerate(BLOCKS):
        code = compile(block, "docs/watch.md", "exec")
        if any(name in block for name in OTHERS):
            continue
        ran.append(index)
        exec(code, told)
        if index == 0:
            assert (tmp_path / "training.html").stat().st_size > 100_000
            text, w = capsys.readouterr().out, told["w"]
            shown = PAGE.split("```text\n")[1].split("```")[0]
            assert text.splitlines()[0] == shown.splitlines()[0] == "Sequential at step 100: vanishing"
            names = [
                [line.split()[0] for line in said.splitlines() if re.match(r"\d+ ", line)] for said in (text, shown)
            ]
            assert names[0] == names[1]
            assert (len(w.losses), len(w.validations)) == (120, 3)
    assert ran == [0, 1, len(BLOCKS) - 3]
    assert capsys.readouterr().out.startswith("step 0: ")


def test_every_metric_named_is_one() -> None:
    from depthscope.core.readings import READINGS

    named = re.findall(r"`depth/(model/)?(\w+)", PAGE.split("| metric |")[1])
    known = {(place == "model", name) for place, quantities in READINGS.items() for name in quantities}
    assert len(named) >= 8
    assert {(bool(model), name) for model, name in named} <= known
