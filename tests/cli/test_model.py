"""`depthscope probe` and `compare`: exit codes, one clear line for bad input, nothing written then."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch")

Call = Callable[..., Any]

CODE = """
import sys

import torch
from torch import nn

def plain(depth=12):
    layers = [each for _ in range(depth) for each in (nn.Linear(16, 16), nn.ReLU())]
    return nn.Sequential(*layers, nn.Linear(16, 3))


class Skipping(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(16, 16) for _ in range(6)])
        self.head = nn.Linear(16, 3)

    def forward(self, x):
        for layer in self.layers:
            x = x + 0.2 * torch.tanh(layer(x))
        return self.head(x)


def tokens():
    return nn.Sequential(nn.Embedding(50, 8), *[nn.Linear(8, 8) for _ in range(5)])


def with_batch():
    return Skipping(), (torch.ones(4, 16), torch.zeros(4, dtype=torch.long))


def breaks():
    raise RuntimeError("not today")


def wants(width):
    return nn.Linear(width, width)


def seeded(seed):
    return torch.utils.data.TensorDataset(*data())


def number():
    return 3


def data():
    inputs = torch.randn(64, 16, generator=torch.Generator().manual_seed(0))
    return inputs, inputs[:, :3].argmax(1)


def batches():
    yield data()


class Leaving(Skipping):
    def forward(self, x):
        sys.exit(0)


class Impatient(Skipping):
    def forward(self, x):
        raise KeyboardInterrupt


class Lazy(Skipping):
    def __init__(self):
        super().__init__()
        self.head = nn.LazyLinear(3)


def loss(output, target):
    return output.square().mean()


def vector(output, target):
    return output.sum(dim=1)
"""


LOUD = """
from their_models import Skipping

print("import")


class Talking(Skipping):
    def forward(self, x):
        print("forward")
        return super().forward(x)


def talking():
    print("factory")
    return Talking()
"""


@pytest.fixture
def mine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    (tmp_path / "their_models.py").write_text(CODE, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    path = list(sys.path)
    yield tmp_path
    sys.path[:] = path
    sys.modules.pop("their_models", None)


def files(folder: Path) -> list[str]:
    return sorted(each.name for each in folder.iterdir() if each.suffix != ".pyc" and each.name != "__pycache__")


def test_a_named_verdict_is_exit_code_1_and_no_other_is(call: Call, mine: Path) -> None:
    noise = ("their_models:plain", "--input", "32x16")
    met = call("probe", *noise, "--fail-on", "exploding,vanishing")
    assert met.code == 1
    assert met.out.startswith("Sequential: vanishing\n")
    assert "made-up noise" in met.out
    assert call("probe", *noise, "--fail-on", "exploding,unused-layers").code == 0
    again = call("probe", *noise)
    assert (again.code, again.out) == (0, met.out)  # named streams: the same verdict, to the digit


def test_json_and_page_of_a_model_with_its_own_data_and_loss(call: Call, mine: Path) -> None:
    shell = call(
        "probe", "their_models:Skipping", "--data", "their_models:batches", "--loss", "cross_entropy", "--json",
        "--html", "page.html", "--lang", "zh", "--measure", "rank",
    )  # fmt: skip
    assert shell.code == 0
    document = json.loads(shell.out)
    assert document["conditions"][0]["data"] == "given"
    assert document["conditions"][0]["num_classes"] == 3
    assert len(document["structure"]["additions"]) == 6
    assert document["command"].startswith("depthscope probe their_models:Skipping --data")
    assert "training steps" in shell.err  # the cost of what was asked for
    page = (mine / "page.html").read_text(encoding="utf-8")
    assert 'lang="zh-CN"' in page
    assert document["command"] in page


@pytest.mark.parametrize(
    "arguments",
    [
        ("their_models:tokens", "--tokens", "2x5", "--vocab", "50", "--loss", "cross_entropy"),
        ("their_models:with_batch", "--loss", "their_models:loss"),
        ("their_models:Skipping", "--input", "4x16", "--loss", "mse"),
        ("their_models:Skipping", "--data", "their_models:seeded", "--loss", "cross_entropy"),
        ("their_models:Skipping", "--input", "4x16", "--loss", "cross_entropy", "--classes", "3", "--device", "cpu"),
    ],
)
def test_every_way_to_a_batch_and_a_loss(call: Call, mine: Path, arguments: tuple[str, ...]) -> None:
    shell = call("probe", *arguments, "--json")
    assert shell.code == 0, shell.err
    assert json.loads(shell.out)["conditions"][0]["objective"] == "loss"


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("no_such_module:plain", "--input", "2x16"), "no module 'no_such_module' can be imported"),
        (("their_models:plian", "--input", "2x16"), "has no 'plian'. Did you mean 'plain'?"),
        (("their_models", "--input", "2x16"), "wanted package.module:function"),
        (("their_models:number", "--input", "2x16"), "gives 3; wanted a torch.nn.Module"),
        (("their_models:breaks", "--input", "2x16"), "raised RuntimeError: not today"),
        (("their_models:wants", "--input", "2x16"), "wanted a function without arguments, got wants(width)"),
        (("their_models:plain",), "gives no batch: give --input"),
        (("their_models:Leaving", "--input", "2x16"), "raised SystemExit"),
        (("their_models:Leaving", "--input", "2x16", "--loss", "mse"), "SystemExit: 0"),
        (("their_models:plain", "--input", "8x16", "--measure", "rank,units"), "wanted 20 samples or more, got 8"),
        (("their_models:plain", "--input", "2x17"), "shapes cannot be multiplied"),
        *(
            (
                ("their_models:tokens", "--input", shape, *loss),
                f"--input {shape}: noise is no index of a row in the model's table of 50 tokens. Give --tokens "
                f"{tokens} --vocab 50 in its place.",
            )
            for shape, tokens in (("2x16", "2x16"), ("2x3x16", "8x128"))
            for loss in ((), ("--loss", "cross_entropy"))
        ),
        (("their_models:plain", "--input", "2,16"), "--input: wanted a shape such as 8x3x32x32"),
        (("their_models:plain", "--input", "2x16", "--data", "their_models:data"), "give one of them"),
        (("their_models:tokens", "--tokens", "2x5"), "--tokens and --vocab go together"),
        (("their_models:plain", "--data", "their_models:number"), "gives 3; wanted a batch"),
        (("their_models:plain", "--input", "2x16", "--loss", "mee"), "unknown loss 'mee'. Did you mean 'mse'?"),
        (("their_models:plain", "--input", "2x16", "--loss", "their_models:vector"), "one number"),
        (("their_models:plain", "--input", "2x16", "--classes", "3"), "beside --loss cross_entropy"),
        (
            ("their_models:plain", "--input", "2x16", "--loss", "cross_entropy", "--classes", "9"),
            "whose classes would be 3",
        ),
        (("their_models:plain", "--input", "2x16", "--fail-on", "vanish"), "Did you mean 'vanishing'?"),
        (("their_models:plain", "--input", "2x16", "--measure", "ranks"), "Did you mean 'rank'?"),
        (("their_models:plain", "--input", "2x16", "--device", "tpu"), "unknown device 'tpu'"),
        (("their_models:plain", "--input", "2x16", "--html", "their_models.py/page.html"), "cannot be written"),
        (("their_models:plain", "--input", "2x16", "--html", "nowhere/page.html"), "there is no folder nowhere"),
        (("their_models:plain", "--input", "2x16", "--html", "."), "Is a directory). Name another file."),
    ],
)
def test_bad_input_is_one_line_and_nothing_is_written(
    call: Call, mine: Path, arguments: tuple[str, ...], says: str
) -> None:
    before = files(mine)
    html = () if "--html" in arguments else ("--html", "page.html")
    shell = call("probe", *arguments, *html)
    assert shell.code == 2
    assert shell.out == ""
    assert says in shell.err
    assert len(shell.err.strip().splitlines()) == 1
    assert files(mine) == before


def test_what_the_users_code_prints_is_not_in_the_result(call: Call, mine: Path) -> None:
    (mine / "loud_models.py").write_text(LOUD, encoding="utf-8")
    shell = call("probe", "loud_models:talking", "--input", "4x16", "--json")
    assert json.loads(shell.out)["model"] == "Talking"
    assert [shell.err.count(each) for each in ("import\n", "factory\n", "forward\n")] == [1, 1, 2]
    del sys.modules["loud_models"]
    arms = ("loud_models:talking", "their_models:Skipping", "--data", "their_models:data", "--loss", "cross_entropy")
    shell = call("compare", *arms, "--steps", "2", "--seeds", "1", "--json")
    assert json.loads(shell.out)["setup"]["steps"] == 2
    assert "factory\nfactory\n" in shell.err
    del sys.modules["loud_models"]


def test_an_interrupted_probe_keeps_nothing_and_says_nothing_else(call: Call, mine: Path) -> None:
    before = files(mine)
    shell = call("probe", "their_models:Impatient", "--input", "4x16", "--html", "page.html")
    assert shell.code == 130
    assert shell.err == "\nInterrupted.\n"
    assert files(mine) == before


def test_compare_trains_tells_and_writes(call: Call, mine: Path) -> None:
    models = ("their_models:plain", "their_models:Skipping", "--names", "as is,with skip")
    shell = call(
        "compare", *models, "--data", "their_models:data", "--loss", "cross_entropy", "--steps", "3", "--seeds", "1",
        "--html", "page.html",
    )  # fmt: skip
    assert shell.code == 0, shell.err
    assert "undecided (confirmatory): “with skip” ends with a lower training loss than “as is”" in shell.out
    assert (mine / "page.html").stat().st_size > 100_000
    for arguments, says in (
        (("their_models:plain",), "two factories or more"),
        (("their_models:plain", "their_models:Lazy"), "head.weight has no values yet (a lazy layer)"),
        (("their_models:plain", "their_models:plain"), "the same factory twice"),
        (("their_models:plain", "their_models:Skipping", "--names", "a"), "wanted 2 names"),
        (("their_models:plain", "their_models:breaks"), "not today"),
    ):
        refused = call("compare", *arguments, "--data", "their_models:data", "--loss", "cross_entropy")
        assert (refused.code, refused.out) == (2, "")
        assert says in refused.err
        assert len(refused.err.strip().splitlines()) == 1


def test_a_variant_of_which_too_little_was_seen_is_exit_code_1(call: Call, mine: Path) -> None:
    given = ("--data", "their_models:data", "--loss", "cross_entropy", "--steps", "3", "--seeds", "2")
    wrong = call("compare", "their_models:Skipping", "their_models:tokens", *given)
    assert wrong.code == 1
    assert "“tokens” failed in 2 of 2 runs." in wrong.out
    assert "No seed on which both have it: “tokens” on 0 of 2, “Skipping” on 2 of 2. So: undecided (" in wrong.out
    lost = call("compare", "their_models:Skipping", "their_models:plain", *given, "--lr", "1e9")
    assert lost.code == 1
    assert "speaks" not in lost.out
    assert "not known and not known" not in lost.out


@pytest.mark.parametrize(("arguments", "code"), [(("--fail-on", "vanishing"), 1), ((), 0)])
def test_a_reader_that_went_away_takes_nothing_from_the_exit_code(
    mine: Path, arguments: tuple[str, ...], code: int
) -> None:
    read, write = os.pipe()
    os.close(read)
    program = ("import sys; from depthscope.cli.main import main; sys.argv[0] = 'depthscope'; main()",)
    done = subprocess.run(
        [sys.executable, "-c", *program, "probe", "their_models:plain", "--input", "32x16", *arguments],
        stdout=write,
        stderr=subprocess.PIPE,
        text=True,
        timeout=120,
    )
    os.close(write)
    assert (done.returncode, done.stderr) == (code, "")
