from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from depthscope.core.errors import FaultsError, UserError
from depthscope.record.folder import check_folder, read_study, write_study
from depthscope.study.study import StudySpec
from depthscope.study.toml import bundled, load, read_source, sizes_of

BUNDLED = [(name, size) for name in bundled() for size in sizes_of(read_source(name)[1])]


@pytest.fixture
def study() -> StudySpec:
    return load("spiral", "smoke")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "out"


def content(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() if path.is_file() else b"" for path in folder.rglob("*")}


@pytest.mark.parametrize(("name", "size"), BUNDLED)
def test_a_folder_holds_the_study_at_its_size(folder: Path, name: str, size: str) -> None:
    study = load(name, size)
    check_folder(folder, study)
    assert not folder.exists()  # looking is not touching
    write_study(folder, study)
    assert read_study(folder) == study
    check_folder(folder, study)


def test_more_seeds_or_arms_of_the_same_study_are_welcome(folder: Path, study: StudySpec) -> None:
    write_study(folder, study)
    (folder / "runs").mkdir()
    (folder / "report.html").write_text("")
    check_folder(folder, study.model_copy(update={"seeds": 9}))


Make = Callable[[Path], Any]


def hold(folder: Path, name: str, written: bytes) -> None:
    folder.mkdir()
    (folder / name).write_bytes(written)


REFUSED: list[tuple[str, Make, str]] = [
    (
        "another study",
        lambda at: write_study(at, load("cifar10", "smoke")),
        "holds the study 'cifar10' at size 'smoke', ",
    ),
    ("another size", lambda at: write_study(at, load("spiral", "quick")), "'quick', not 'spiral' at size 'smoke'."),
    ("other files", lambda at: hold(at, "thesis.tex", b""), "holds other files and no study."),
    ("runs alone", lambda at: (at / "runs").mkdir(parents=True), "holds other files and no study."),
    ("a file", lambda at: at.write_text("mine"), "is a file; wanted a folder."),
    ("not UTF-8", lambda at: hold(at, "study.toml", b"\xff"), "byte 0 is not UTF-8 text."),
    ("a folder for a study", lambda at: (at / "study.toml").mkdir(parents=True), "cannot be read (Is a directory)"),
]


@pytest.mark.parametrize(("make", "says"), [each[1:] for each in REFUSED], ids=[each[0] for each in REFUSED])
def test_a_folder_for_something_else(folder: Path, study: StudySpec, make: Make, says: str) -> None:
    make(folder)
    before = content(folder.parent)
    with pytest.raises(UserError) as told:
        check_folder(folder, study)
    assert says in str(told.value)
    assert str(folder) in str(told.value)
    assert len(str(told.value).splitlines()) == 1
    assert content(folder.parent) == before


@pytest.mark.parametrize(
    ("find", "put", "path"),
    [
        ("seeds = 2", "seeds = ", ""),
        ("[base]", "[bases]", "bases"),
        ('name = "plain"', "name = 3", "parts.sweep.arms.0.name"),
        ('metric = "train_accuracy"', 'metric = "train_acc"', "claims.0.metric"),
    ],
)
def test_a_study_damaged_by_hand(folder: Path, study: StudySpec, find: str, put: str, path: str) -> None:
    write_study(folder, study)
    text = (folder / "study.toml").read_text(encoding="utf-8")
    assert find in text
    (folder / "study.toml").write_text(text.replace(find, put, 1), encoding="utf-8")
    for read in (read_study, lambda at: check_folder(at, study)):
        with pytest.raises(FaultsError) as told:
            read(folder)
        assert told.value.source == str(folder / "study.toml")
        assert told.value.faults[0][0] == path
        assert told.value.faults[-1] == ("", "Restore the file, or choose another folder with --out.")


def test_what_a_killed_first_write_leaves_is_no_hindrance(folder: Path, study: StudySpec) -> None:
    folder.mkdir()
    (folder / ".study.toml.0a1b2c").write_text("half a f")
    (folder / ".DS_Store").write_text("")
    check_folder(folder, study)


def test_a_folder_within_a_file(tmp_path: Path, study: StudySpec) -> None:
    (tmp_path / "file").write_text("mine")
    with pytest.raises(UserError, match=r"file is a file; wanted a folder\. Choose another with --out\.$"):
        check_folder(tmp_path / "file" / "a" / "b", study)


@pytest.mark.parametrize("exists", [True, False])
def test_a_read_only_folder(folder: Path, study: StudySpec, monkeypatch: pytest.MonkeyPatch, exists: bool) -> None:
    if exists:
        folder.mkdir()
    monkeypatch.setattr(os, "access", lambda path, mode: False)  # the tests may run as root, whom no permission stops
    says = rf"^{folder if exists else folder.parent} is read-only\. Choose another folder with --out, or change"
    with pytest.raises(UserError, match=says):
        check_folder(folder, study)


def test_a_folder_that_may_not_be_listed(folder: Path, study: StudySpec, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_: Path) -> None:
        raise PermissionError(13, "Permission denied")

    folder.mkdir()
    monkeypatch.setattr(Path, "iterdir", refuse)
    with pytest.raises(UserError, match=r"cannot be read \(Permission denied\)\. Choose another folder with --out\.$"):
        check_folder(folder, study)


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda at: None, "does not exist or is not a folder. Wanted the --out folder of a `depthscope run`."),
        (lambda at: at.write_text(""), "does not exist or is not a folder."),
        (lambda at: at.mkdir(), "holds no study (no study.toml)."),
    ],
)
def test_a_folder_without_a_study(folder: Path, make: Make, says: str) -> None:
    make(folder)
    with pytest.raises(UserError) as told:
        read_study(folder)
    assert str(told.value).startswith(f"{folder} {says}")
