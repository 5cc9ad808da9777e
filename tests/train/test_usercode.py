"""Names into calls: by the signature, each misfit told in a line; digests of the source."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.train.own import package, spec

from depthscope.core.errors import UserError
from depthscope.train.sources import source_files
from depthscope.train.usercode import call, changed_code, check_signature, code_digests, resolve

CODE = """
VALUE = 3

def one(depth, width=4):
    return depth, width

def many(depth, **rest):
    return depth, rest

def by_position(depth, /):
    return depth

class Thing:
    def __init__(self, *, depth):
        self.depth = depth
"""


def test_a_call_passes_what_the_signature_names(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    name = package(monkeypatch, tmp_path, code=CODE)
    offered = {"depth": 2, "norm": "none"}
    assert call(f"{name}.code:one", offered) == (2, 4)
    assert call(f"{name}.code:one", offered, {"width": 9}) == (2, 9)
    assert call(f"{name}.code:many", offered, {"extra": 1}) == (2, {"norm": "none", "extra": 1})
    assert call(f"{name}.code:Thing", offered).depth == 2


@pytest.mark.parametrize(
    ("function", "offered", "options", "message"),
    [
        ("one", ["norm"], [], "wants 'depth', which nothing gives; give it a default, or a value in model_options"),
        ("one", ["depth"], ["widht"], r"takes no argument 'widht' \(model_options.widht\). Did you mean 'width'"),
        ("one", ["depth"], ["depth"], "model_options.depth is given by the run itself"),
        ("by_position", ["depth"], [], "by position only"),
    ],
)
def test_a_call_that_cannot_fit_is_told(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, function: str, offered: list[str], options: list[str], message: str
) -> None:
    name = package(monkeypatch, tmp_path, code=CODE)
    with pytest.raises(UserError, match=message):
        check_signature(f"{name}.code:{function}", offered, options, "model_options")


@pytest.mark.parametrize(
    ("text", "function", "message"),
    [
        ("", "net", r"has no 'net'"),
        ("def nets(): ...", "net", r"\(code.py\) has no 'net'. Did you mean 'nets'"),
        ("net = 3", "net", "'net' is a int, wanted a function or class"),
        ("import nowhere_at_all", "net", "no module 'nowhere_at_all' can be imported"),
        ("def net(:", "net", r"cannot be imported: SyntaxError: .* \(code.py, line 1\)"),
        ("\n1 / 0", "net", r"cannot be imported: ZeroDivisionError: division by zero \(code.py, line 2\)"),
        ("raise SystemExit(3)", "net", "cannot be imported: SystemExit: 3"),
        ("from os import no_such_thing", "net", "cannot be imported: ImportError"),
    ],
)
def test_a_name_that_leads_nowhere_is_one_line(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, text: str, function: str, message: str
) -> None:
    name = package(monkeypatch, tmp_path, code=text)
    with pytest.raises(UserError, match=message) as told:
        resolve(f"{name}.code:{function}")
    assert "\n" not in str(told.value)


def test_the_digest_follows_the_source_of_a_package(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    pytest.importorskip("torch")
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    one, same = (package(monkeypatch, tmp_path / folder) for folder in "ab")
    digests = [code_digests(spec(name)) for name in (one, same)]
    assert [set(each) for each in digests] == [{f"{name}.model:Net", f"{name}.data:points"} for name in (one, same)]
    # Of equal files it is equal, wherever they lie, and whatever lies beside them that they do not import.
    assert list(digests[0].values()) == list(digests[1].values())
    (tmp_path / "c").mkdir()
    other = package(monkeypatch, tmp_path / "c", helper="X = 1")
    assert code_digests(spec(other))[f"{other}.model:Net"] == digests[0][f"{one}.model:Net"]


def test_the_source_of_a_function_is_what_its_module_imports_of_its_package(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    files = {
        "code": "import numpy\nfrom .helper import f\nfrom . import near\ndef go(): ...",
        "helper": "def f():\n    import NAME.deep.far\n    import depthscope",
        "near": "X = 1",
        "unrelated": "X = 1",
    }
    name = package(monkeypatch, tmp_path, **{**files, "helper": "def f(): ..."})
    (tmp_path / name / "helper.py").write_text(files["helper"].replace("NAME", name))
    (tmp_path / name / "deep").mkdir()
    (tmp_path / name / "deep" / "far.py").write_text("from .. import near")
    resolve(f"{name}.code:go")
    wanted = {"__init__.py", "code.py", "helper.py", "near.py", "deep/far.py"}
    assert set(source_files(f"{name}.code")) == wanted
    # A module in no package, and the file beside it that it imports.
    (tmp_path / f"{name}_alone.py").write_text(f"import {name}_beside\ndef go(): ...")
    (tmp_path / f"{name}_beside.py").write_text("")
    (tmp_path / f"{name}_other.py").write_text("")
    monkeypatch.syspath_prepend(str(tmp_path))
    resolve(f"{name}_alone:go")
    assert set(source_files(f"{name}_alone")) == {f"{name}_alone.py", f"{name}_beside.py"}


def test_records_of_another_version_are_counted(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    pytest.importorskip("torch")
    name = package(monkeypatch, tmp_path)
    now = code_digests(spec(name))
    assert changed_code([now, {}]) == []
    (line,) = changed_code([now, {**now, f"{name}.model:Net": "0123"}])
    assert line.startswith(f"1 run here was made with another version of {name}.model:Net.")
    # Where the package is not here, there is nothing to compare with.
    assert changed_code([{"not_here.model:Net": "0123"}]) == []
    # One cause, one line.
    (line,) = changed_code([dict.fromkeys(now, "0123"), now, dict.fromkeys(now, "4567")])
    assert line.startswith(f"2 runs here were made with another version of {name}.data:points, {name}.model:Net. What")
