"""`depthscope.probe`: right numbers on a net of known multipliers, and what a checkup gives of them."""

from __future__ import annotations

import json
import math
import re
import sys
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")

import depthscope  # noqa: E402
from depthscope.api.demand import TIERS  # noqa: E402
from depthscope.api.document import strict  # noqa: E402
from depthscope.core.errors import UserError  # noqa: E402


def scaled(*factors: float) -> Any:
    """Linear layers that multiply by a number: every multiplier is that number."""
    layers = [torch.nn.Linear(8, 8, bias=False) for _ in factors]
    with torch.no_grad():
        for layer, factor in zip(layers, factors, strict=True):
            layer.weight.copy_(factor * torch.eye(8))
    return torch.nn.Sequential(*layers)


BATCH = torch.ones(24, 8)


def test_multipliers_of_a_known_net_and_their_total() -> None:
    checkup = depthscope.probe(scaled(0.5, 3.0, 0.5, 2.0), BATCH)
    found = checkup.profile.values("block", "grad_multiplier")
    assert list(found.values()) == pytest.approx([0.5, 3.0, 0.5, 2.0])
    assert checkup.profile.value("grad_multiplier") == pytest.approx(1.5)
    assert checkup.name == "Sequential"
    assert checkup.profile.conditions[0].objective == "cotangent"


def test_the_table_says_the_verdict_first_then_a_row_a_block() -> None:
    text = str(depthscope.probe(scaled(*[0.1] * 6), BATCH))
    head, *lines = text.splitlines()
    assert head == "Sequential: vanishing"
    rows = [line.split() for line in lines if line[:1].isdigit() or line.startswith("output")]
    assert len(rows) >= 6
    assert all(".1" in row for row in rows[:6])
    assert "no loss was given" in text


def test_a_long_model_is_told_by_its_ends(capsys: pytest.CaptureFixture[str]) -> None:
    print(depthscope.probe(scaled(*[1.0] * 90), BATCH))
    out = capsys.readouterr().out
    assert "30 blocks more" in out
    assert len(out.splitlines()) < 80


def test_json_is_strict_and_holds_what_is_not_finite_as_text(tmp_path: Path) -> None:
    broken = scaled(1.0, 1.0, 1.0, 1.0)
    with torch.no_grad():
        broken[2].weight.mul_(math.inf)
    path = tmp_path / "checkup.json"
    text = depthscope.probe(broken, BATCH).to_json(path)

    def refuse(name: str) -> None:
        raise AssertionError(f"{name} is no JSON")

    document = json.loads(path.read_text(encoding="utf-8"), parse_constant=refuse)
    assert document == json.loads(text)
    assert document["schema"] == 1
    assert document["diagnosis"]["cause"] == "non-finite values"
    values = {row["value"] for row in document["readings"] if isinstance(row["value"], str)}
    assert values
    assert values <= {"nan", "inf", "-inf"}
    assert strict({"a": [math.nan, 1.0]}) == {"a": ["nan", 1.0]}


def test_rows_without_pandas_say_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    checkup = depthscope.probe(scaled(1.0, 1.0, 1.0), BATCH)
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(UserError, match="pip install pandas"):
        checkup.to_pandas()


def test_a_notebook_gets_a_table_in_which_names_are_text() -> None:
    html = depthscope.probe(scaled(1.0, 1.0, 1.0), BATCH)._repr_html_()
    assert html.count("<tr>") == 4
    assert "<script" not in html


def test_on_demand_what_is_asked_is_measured_and_its_cost_told() -> None:
    told: list[str] = []
    checkup = depthscope.probe(scaled(0.5, 3.0, 0.5), torch.randn(24, 8), measure=TIERS, tell=told.append)
    values = checkup.profile.values
    assert list(values("block", "jacobian_max").values()) == pytest.approx([0.5, 3.0, 0.5], rel=1e-4)
    assert list(values("block", "jacobian_mean_square").values()) == pytest.approx([0.25, 9.0, 0.25], rel=1e-4)
    assert list(values("block", "identity_distance").values()) == pytest.approx([0.5, 2.0, 0.5], rel=1e-4)
    ranks = list(values("boundary", "rank").values())
    assert ranks == pytest.approx([ranks[0]] * 4, rel=1e-4)  # a scale changes no rank
    assert set(values("boundary", "dead").values()) == {0.0}
    assert checkup.profile.value("trust") == pytest.approx(1.0, abs=1e-6)
    assert checkup.costs == tuple(told)
    assert len(told) == 4
    plain = depthscope.probe(scaled(0.5, 3.0, 0.5), torch.randn(24, 8))
    assert not plain.profile.values("block", "jacobian_max")
    assert plain.costs == ()


@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize("norms", [True, False])
def test_a_note_says_which_statistics_batch_norm_used(training: bool, norms: bool) -> None:
    layers = [each for _ in range(4) for each in (torch.nn.Linear(8, 8), torch.nn.BatchNorm1d(8), torch.nn.Tanh())]
    net = torch.nn.Sequential(*layers).train(training)
    for layer in layers[1::3]:
        layer.train(norms)
    notes = " | ".join(depthscope.probe(net, BATCH).diagnosis.notes)
    assert ("the batch's own statistics" in notes) == (norms and not training)
    assert ("its running statistics" in notes) == (not norms)
    assert ("measured in eval mode" in notes) == (not training)


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"measure": ("ranks",)}, r"unknown measurement 'ranks'. Did you mean 'rank'\?"),
        ({"measure": ("units",), "batch": BATCH[:4]}, "wanted 20 samples or more, got 4"),
        ({"seed": "a"}, "seed: wanted an integer of 0 or more, got 'a'"),
        ({"step": -1}, "step: wanted an integer of 0 or more, got -1"),
        ({"data": "foo"}, "unknown origin 'foo'. Known: given, noise"),
        ({"model": "net"}, "wanted a torch.nn.Module, got 'net'"),
        ({"batch": None}, "wanted a tensor"),
        ({"loss_fn": lambda output, target: output}, "one number"),
        ({"loss_fn": lambda output, target: output.detach().sum()}, "no gradient"),
    ],
)
def test_bad_input_is_one_line(options: dict[str, Any], says: str) -> None:
    given = {"model": scaled(1.0, 1.0, 1.0), "batch": BATCH, **options}
    with pytest.raises(UserError, match=says) as caught:
        depthscope.probe(**given)
    assert "\n" not in str(caught.value)


def test_a_page_is_written_whole_or_not_at_all(tmp_path: Path) -> None:
    checkup = depthscope.probe(scaled(1.0, 1.0, 1.0), BATCH)
    made = checkup.page(tmp_path / "page.html", lang="zh")
    assert (tmp_path / "page.html").read_bytes() == made
    with pytest.raises(UserError, match="language"):
        checkup.page(tmp_path / "other.html", lang="fr")
    assert not (tmp_path / "other.html").exists()


@pytest.mark.parametrize("form", ["tensors", "arrays", "dataset", "loader", "batches"])
def test_every_form_of_data_is_the_same_batch(form: str) -> None:
    """The first batch, with the generators left alone."""
    inputs, targets = torch.randn(64, 8, generator=torch.Generator().manual_seed(1)), torch.arange(64) % 8
    dataset = torch.utils.data.TensorDataset(inputs, targets)
    data: Any = {
        "tensors": (inputs, targets),
        "arrays": (inputs.double().numpy(), targets.numpy()),
        "dataset": dataset,
        "loader": torch.utils.data.DataLoader(dataset, batch_size=64, shuffle=True),
        "batches": iter([(inputs, targets)]),
    }[form]
    net = scaled(0.5, 2.0, 1.5)
    before = torch.get_rng_state()
    found = depthscope.probe(net, data, torch.nn.functional.cross_entropy)
    assert torch.equal(torch.get_rng_state(), before)
    expected = torch.nn.functional.cross_entropy(1.5 * inputs, targets).item()
    assert found.profile.value("loss") == pytest.approx(expected, rel=1e-6)
    assert found.profile.conditions[0].batch == 64
    assert f"a uniform guess of 8 classes has {math.log(8):.3g}" in str(found)


def test_an_input_without_a_batch_is_told() -> None:
    assert "the input has one dimension, taken for 8 examples" in str(depthscope.probe(scaled(1.0, 1.0, 1.0), BATCH[0]))
    assert "one dimension" not in str(depthscope.probe(scaled(1.0, 1.0, 1.0), BATCH))


@pytest.mark.parametrize(
    ("targets", "wrap", "says"),
    [
        (torch.arange(24) % 9, False, "the output float32 [24, 8] and the targets int64 [24] of 0 to 8"),
        (torch.arange(24) % 8, True, "lambda output, targets: loss(output['scores'], targets)"),
    ],
)
def test_a_loss_that_raises_is_told_with_what_it_was_given(targets: Any, wrap: bool, says: str) -> None:
    class Wrapped(torch.nn.Module):  # type: ignore[name-defined, misc]
        def __init__(self) -> None:
            super().__init__()
            self.net = scaled(1.0, 1.0, 1.0)

        def forward(self, x: Any) -> Any:
            return {"scores": self.net(x)} if wrap else self.net(x)

    with pytest.raises(UserError) as told:
        depthscope.probe(Wrapped(), (BATCH, targets), torch.nn.functional.cross_entropy)
    assert says in str(told.value)


def test_a_model_that_raises_is_told_with_its_own_line() -> None:
    class Wrong(torch.nn.Module):  # type: ignore[name-defined, misc]
        def __init__(self) -> None:
            super().__init__()
            self.layer = torch.nn.Linear(3, 3)

        def forward(self, x: Any) -> Any:
            return self.layer(x)

    line = Wrong.forward.__code__.co_firstlineno + 1
    with pytest.raises(UserError, match=rf"\(test_model\.py, line {line}\)"):
        depthscope.probe(Wrong(), BATCH)


def test_what_is_measured_on_demand_stands_in_the_table() -> None:
    found = depthscope.probe(scaled(2.0, 2.0, 2.0, 2.0), BATCH, measure=("rank", "jacobian", "trust"))
    text = str(found)
    (head,) = (line.split() for line in text.splitlines() if line.startswith("block "))
    assert head[-4:] == ["rank", "max", "s.v.", "|J-I|/|I|"]
    rows = [line.split() for line in text.splitlines() if re.match(r"(\d|output)  ", line)]
    assert {(row[-2], row[-1]) for row in rows} == {("2", "1")}  # |2 I - I| / |I| = 1
    assert "trust: the cosine of this gradient with that in float64 is 1" in text
