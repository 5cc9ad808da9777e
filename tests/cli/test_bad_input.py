"""Bad input: one line that names the fault and the mend, exit code 2, no traceback, nothing written."""

from __future__ import annotations

import errno
import importlib.util
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Call = Callable[..., Any]

STUDY = """
name = "mine"
title = { en = "Mine" }
seeds = 1
[base]
backend = "torch"
family = "cifar_resnet"
depth = 8
width = 4
norm = "batch"
activation = "relu"
init = "he_fan_in"
data = "images"
epochs = 1
[parts.main]
[[parts.main.arms]]
name = "plain"
"""


@pytest.mark.parametrize(
    ("arguments", "told", "where"),
    [
        (("landscape", "--svgg", "x"), "No such option: --svgg", "depthscope landscape"),
        (("landscape",), "Missing argument 'MODEL'.", "depthscope landscape"),
        (("run", "mine", "--sedes", "3"), "No such option: --sedes", "depthscope run"),
        (("plan", "mine", "--lang", "en"), "No such option: --lang", "depthscope plan"),
        (("lanscape",), "No such command 'lanscape'.", "depthscope"),
    ],
)
def test_an_unknown_option_is_told_with_the_help_of_its_command(
    call: Call, arguments: tuple[str, ...], told: str, where: str
) -> None:
    shell = call(*arguments)
    assert (shell.code, shell.out, shell.err.count("\n")) == (2, "", 1)
    assert told in shell.err
    fault, help_, end = shell.err.rpartition(f" See `{where} --help`.\n")
    assert (help_ != "", end) == (True, "")
    assert fault[-1] in ".?"
    assert fault[-2:] != ".."


def refused(call: Call, out: Path, *arguments: object, says: tuple[str, ...], lines: int = 1) -> None:
    """The call is refused as the house promises, and `out` is as it was."""
    before = sorted(out.rglob("*")) if out.exists() else None
    shell = call("run", *arguments, "--out", out)
    assert shell.code == 2, shell
    assert "Traceback" not in shell.err
    for words in says:
        assert words in shell.err, shell.err
    assert len(shell.err.strip().splitlines()) == lines, shell.err
    assert shell.out == ""
    assert (sorted(out.rglob("*")) if out.exists() else None) == before


def study(tmp_path: Path, *changes: tuple[str, str]) -> Path:
    text = STUDY
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    path = tmp_path / "mine.toml"
    path.write_text(text)
    return path


@pytest.fixture
def out(tmp_path: Path) -> Path:
    return tmp_path / "out"


def test_an_unknown_study(call: Call, out: Path) -> None:
    refused(call, out, "cifar", says=("unknown study 'cifar'", "Did you mean 'cifar10'?", "spiral"))


def test_an_unknown_size(call: Call, out: Path) -> None:
    refused(call, out, "spiral", "--size", "quik", says=("unknown size 'quik'", "Did you mean 'quick'?"))


def test_a_missing_study_file(call: Call, out: Path, tmp_path: Path) -> None:
    refused(call, out, tmp_path / "none.toml", says=("cannot be read", "No such file"))


def test_an_unknown_key(call: Call, out: Path, tmp_path: Path) -> None:
    path = study(tmp_path, ("seeds = 1", "seed = 1"))
    refused(call, out, path, says=("seed: unknown key", "Did you mean 'seeds'?"), lines=2)


def test_an_unknown_shortcut(call: Call, out: Path, tmp_path: Path) -> None:
    path = study(tmp_path, ('name = "plain"', 'name = "plain"\nset = { shortcut = "identiti" }'))
    says = ("parts.main.arms.0.set.shortcut", "unknown shortcut 'identiti'", "Did you mean 'identity'?")
    refused(call, out, path, says=says, lines=2)


@pytest.mark.parametrize(("depth", "near"), [(21, "20 and 26"), (55, "50 and 56"), (2, "8 and 14")])
def test_a_depth_that_is_not_6n_plus_2(call: Call, out: Path, tmp_path: Path, depth: int, near: str) -> None:
    path = study(tmp_path, ("depth = 8", f"depth = {depth}"))
    refused(call, out, path, says=("base.depth", "6n+2", near), lines=2)


def test_several_faults_at_once_each_with_its_path(call: Call, out: Path, tmp_path: Path) -> None:
    path = study(
        tmp_path,
        ("depth = 8", "depth = 9"),
        ('data = "images"', 'data = "image"'),
        ("width = 4", "width = -4"),
        ("epochs = 1", "epochs = 1\nlearning_rate = 0.1"),
    )
    says = ("base.data", "base.width", "base.learning_rate", "base.depth", "4 faults")
    refused(call, out, path, says=says, lines=5)


def test_not_toml(call: Call, out: Path, tmp_path: Path) -> None:
    path = study(tmp_path, ("seeds = 1", "seeds == 1"))
    refused(call, out, path, says=("not TOML", "line 4"), lines=2)


def test_data_that_is_not_there(call: Call, out: Path, tmp_path: Path) -> None:
    says = (str(tmp_path / "nowhere"), "no such folder", "--data")
    refused(call, out, "cifar10", "--data", tmp_path / "nowhere", says=says)


def test_a_truncated_data_file(call: Call, out: Path, tmp_path: Path, real_data: Path) -> None:
    folder = tmp_path / "data"
    shutil.copytree(real_data / "cifar10-parquet", folder / "cifar10-parquet")
    path = next(folder.rglob("train-*.parquet"))
    path.chmod(0o644)
    os.truncate(path, path.stat().st_size // 2)
    refused(call, out, "cifar10", "--data", folder, says=(path.name,))


def test_an_altered_data_file(call: Call, out: Path, tmp_path: Path, real_data: Path) -> None:
    folder = tmp_path / "data"
    shutil.copytree(real_data / "cifar10-parquet", folder / "cifar10-parquet")
    path = next(folder.rglob("test-*.parquet"))
    path.chmod(0o644)
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)
    refused(call, out, "cifar10", "--data", folder, says=(path.name,))


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (('data = "images"', 'data = "images"\ndata_options = { image_size = 1 }'), "image_size"),
        (('family = "cifar_resnet"', 'family = "no_such:thing"'), "no module 'no_such'"),
        (('data = "images"', 'data = "no_such:thing"'), "no module 'no_such'"),
    ],
)
def test_code_or_options_that_lead_nowhere(
    call: Call, out: Path, tmp_path: Path, change: tuple[str, str], says: str
) -> None:
    shell = call("run", study(tmp_path, change), "--out", out)
    assert shell.code == 2
    assert says in shell.err
    assert "Traceback" not in shell.err
    assert not out.exists()


def test_a_folder_of_another_study(call: Call, small: Path) -> None:
    refused(call, small, "spiral", says=("holds the study 'small'", "--out"))


def test_a_folder_of_another_size(call: Call, out: Path) -> None:
    out.mkdir()
    (out / "study.toml").write_text(call_dump())
    refused(call, out, "spiral", says=("holds the study 'spiral' at size 'smoke'", "--out"))


def call_dump() -> str:
    from depthscope.study.toml import dump, load

    return dump(load("spiral", "smoke"))


def test_a_folder_that_holds_other_files(call: Call, out: Path) -> None:
    out.mkdir()
    (out / "thesis.tex").write_text("do not lose me")
    refused(call, out, "spiral", says=("holds other files", "--out"))


def test_a_file_in_place_of_the_folder(call: Call, out: Path) -> None:
    out.write_text("a file")
    refused(call, out, "spiral", says=("is a file",))


def test_a_read_only_folder(call: Call, out: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # Root may write anywhere, so the system's answer is played.
    monkeypatch.setattr(os, "access", lambda path, mode: False)
    refused(call, out, "spiral", says=("read-only", "--out"))


def test_a_full_disk(call: Call, out: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(descriptor: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    shell = call("run", "spiral", "--size", "smoke", "--out", out, "--workers", 1)
    assert shell.code == 2
    assert "No space left on device" in shell.err
    assert "Traceback" not in shell.err
    assert not [path for path in out.rglob("*") if path.is_file()]


def test_cuda_without_cuda(call: Call, out: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    torch = pytest.importorskip("torch")
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    refused(call, out, "cifar10", "--size", "smoke", "--device", "cuda", says=("device 'cuda'", "Working: cpu"))


def test_an_unknown_device(call: Call, out: Path) -> None:
    refused(call, out, "cifar10", "--size", "smoke", "--device", "gpu", says=("unknown device 'gpu'", "cuda"))


def test_a_seed_given_twice(call: Call, out: Path) -> None:
    refused(call, out, "spiral", "--seeds=3,1,1", says=("seeds: 1 is given more than once",))
    path = study(out.parent, ("seeds = 1", "seeds = [3, 1, 1]"))
    refused(call, out, path, says=("seeds: 1 is given more than once",), lines=2)


@pytest.mark.parametrize("seeds", ["0", "-1", "three", "1,x", "", "1,-2"])
def test_bad_seeds(call: Call, out: Path, seeds: str) -> None:
    refused(call, out, "spiral", f"--seeds={seeds}", says=("--seeds",))


def test_bad_workers(call: Call, out: Path) -> None:
    refused(call, out, "spiral", "--workers", "0", says=("workers",))


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--executor", "rya"], ("unknown executor 'rya'", "Did you mean 'ray'?", "processes, ray, serial")),
        (["--address", "auto"], ("address 'auto'", "only executor ray")),
        (["--checkpoint-minutes", "0"], ("checkpoint_minutes", "above 0")),
        (["--checkpoint-minutes", "nan"], ("checkpoint_minutes", "above 0")),
        (["--checkpoint-minutes", "often"], ("--checkpoint-minutes", "valid")),
        (["--log", "tensorbord"], ("unknown log 'tensorbord'", "Did you mean 'tensorboard'?")),
    ],
)
def test_bad_ways_to_do_it(call: Call, out: Path, arguments: list[str], says: tuple[str, ...]) -> None:
    refused(call, out, "spiral", "--size", "smoke", *arguments, says=says)


def test_event_files_without_tensorboard(call: Call, out: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    refused(
        call, out, "spiral", "--size", "smoke", "--log", "tensorboard", says=("pip install 'depthscope[tensorboard]'",)
    )


def test_watching_is_not_for_programs(call: Call, tmp_path: Path) -> None:
    shell = call("status", tmp_path, "--watch", "--json")
    assert shell.code == 2
    assert "choose one" in shell.err


def test_an_unknown_option(call: Call, out: Path) -> None:
    refused(call, out, "spiral", "--speed", "9", says=("--speed",))


@pytest.mark.parametrize("verb", ["status", "report"])
def test_a_folder_without_a_study(call: Call, tmp_path: Path, verb: str) -> None:
    for folder in (tmp_path, tmp_path / "nowhere"):
        shell = call(verb, folder)
        assert shell.code == 2
        assert len(shell.err.strip().splitlines()) == 1
        assert "depthscope run" in shell.err
    assert not any(tmp_path.iterdir())


def test_json_errors_are_json(call: Call, out: Path) -> None:
    import json

    shell = call("run", "cifar", "--out", out, "--json")
    assert shell.code == 2
    assert "Did you mean" in json.loads(shell.err)["error"]
