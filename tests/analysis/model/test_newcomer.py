"""Models as newcomers bring them: what is said of each, with real measurements."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
import torch
from tests.analysis.model.made import Around, linear, plain, pre_ln, profile
from tests.analysis.model.test_measured import Residual
from torch import Tensor, nn

from depthscope.analysis.model import CAUSES, VERDICTS, ModelDiagnosis, diagnose
from depthscope.analysis.model.thresholds import MEANINGS, THRESHOLDS
from depthscope.core.structure import Op
from depthscope.probes.measure.profile import profile_model

W, K = 32, 4


def judged(model: nn.Module, inputs: Tensor | None = None, scale: float = 1.0) -> ModelDiagnosis:
    torch.manual_seed(1)
    given = scale * torch.randn(64, W) if inputs is None else inputs
    return diagnose(profile_model(model, (given, torch.randint(K, (len(given),))), nn.functional.cross_entropy))


def mlp(depth: int = 6, *, end: nn.Module | None = None) -> nn.Sequential:
    torch.manual_seed(0)
    layers: list[nn.Module] = []
    for _ in range(depth):
        layers += [nn.Linear(W, W), nn.ReLU()]
        nn.init.kaiming_normal_(layers[-2].weight, nonlinearity="relu")  # type: ignore[arg-type]
        nn.init.zeros_(layers[-2].bias)  # type: ignore[arg-type]
    return nn.Sequential(*layers, nn.Linear(W, K), *([end] if end else []))


def test_every_verdict_and_threshold_has_a_meaning() -> None:
    assert MEANINGS.keys() == THRESHOLDS.keys()
    assert all(text and not text.endswith(".") for text in (*VERDICTS.values(), *MEANINGS.values(), *CAUSES.values()))


@pytest.mark.parametrize("value", [0.0, 0.02])
def test_weights_that_are_all_equal(value: float) -> None:
    """Zeros everywhere, or one constant: units are copies. A classifier of zeros alone is not that."""
    model = mlp()
    for layer in model:
        if isinstance(layer, nn.Linear):
            nn.init.constant_(layer.weight, value)
    found = judged(model)
    assert (found.verdict, found.cause, found.where[0]) == ("not depth", "identical units", "0")
    assert found.numbers["layers of equal weights"] == 7
    assert found.numbers["value"] == pytest.approx(value)
    assert "kaiming_normal_" in found.repair
    only_head = mlp()
    nn.init.zeros_(only_head[-1].weight)  # type: ignore[arg-type]
    assert judged(only_head).cause == "zero classifier"


class PythonList(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layers = [nn.Linear(W, W) for _ in range(7)]
        self.head = nn.Linear(W, K)

    def forward(self, x: Tensor) -> Tensor:
        for layer in self.layers:
            x = torch.relu(layer(x))
        return self.head(x)  # type: ignore[no-any-return]


def test_layers_in_a_python_list() -> None:
    found = judged(PythonList())
    assert (found.verdict, found.cause) == ("cannot tell", "unregistered weights")
    assert found.sentence.startswith("7 operations of forward take weights that are no parameters")
    assert "nn.ModuleList" in found.repair


class Recurrent(nn.Module):
    def __init__(self, layer: nn.Module, *, by_hand: bool = False) -> None:
        super().__init__()
        self.layer, self.head, self.by_hand = layer, nn.Linear(W, K), by_hand

    def forward(self, x: Tensor) -> Tensor:
        if not self.by_hand:
            return self.head(self.layer(x)[0][:, -1])  # type: ignore[no-any-return]
        state = x.new_zeros(len(x), W)
        for step in range(x.shape[1]):
            state = self.layer(x[:, step], state)
        return self.head(state)  # type: ignore[no-any-return]


@pytest.mark.parametrize(
    ("layer", "by_hand"),
    [(nn.LSTM(W, W, 4, batch_first=True), False), (nn.RNN(W, W, batch_first=True), False), (nn.RNNCell(W, W), True)],
)
def test_a_recurrence_is_not_measured_and_said_so(layer: nn.Module, by_hand: bool) -> None:
    found = judged(Recurrent(layer, by_hand=by_hand), torch.randn(16, 12, W))
    assert (found.verdict, found.cause, found.inferred) == ("cannot tell", "recurrence", False)
    assert "over time steps" in found.sentence


def test_a_recurrence_among_layers_is_noted() -> None:
    blocks = plain(8)
    step = Op(kind="recurrent", name="lstm", module="blocks.3.lstm", weights=("blocks.3.lstm.weight",))
    found = diagnose(profile([*blocks[:3], replace(blocks[3], ops=(step,), multiplier=1e-4), *blocks[4:]]))
    assert found.verdict == "healthy"
    assert found.rate is not None
    assert found.rate.num_blocks == 7
    assert any(note.startswith("blocks.3.lstm is recurrent") for note in found.notes)


def test_a_softmax_under_cross_entropy() -> None:
    assert any("logits" in note for note in judged(mlp(end=nn.Softmax(-1))).notes)
    assert not any("logits" in note for note in judged(mlp()).notes)


def test_the_scale_of_input_and_loss() -> None:
    notes = " | ".join(judged(mlp(), scale=1e4).notes)
    assert "times that of a uniform guess (ln 4 = 1.386): the output is out of scale at the start" in notes
    assert "the input's standard deviation is 1" in notes
    assert "standard deviation" not in " | ".join(judged(mlp(), scale=5.0).notes)


def test_a_summed_loss_is_not_held_against_chance() -> None:
    """The factor is the batch of 50: |dL/dlogits| is sqrt(.9 / 50) times that."""
    notes = diagnose(profile(plain(8), Around(loss_factor=50.0))).notes
    assert notes[0] == "the loss is 115, no mean cross entropy: it was not held against a uniform guess"


def test_a_branch_of_zeros_is_dead_unless_its_factor_learns() -> None:
    def net(*, dead: bool) -> nn.Module:
        torch.manual_seed(0)
        blocks = [Residual(nn.LayerNorm(W), nn.Linear(W, W), nn.GELU(), nn.Linear(W, W)) for _ in range(6)]
        nn.init.zeros_(blocks[3].branch[0].weight)  # type: ignore[arg-type]
        if dead:
            for parameter in blocks[3].parameters():
                nn.init.zeros_(parameter)
        return nn.Sequential(nn.Linear(W, W), *blocks, nn.Linear(W, K))

    assert judged(net(dead=False)).verdict == "healthy"
    found = judged(net(dead=True))
    assert (found.verdict, found.cause, found.where[0]) == ("unused layers", "dead layer", "4.branch")


def test_a_frozen_block_is_not_called_none() -> None:
    blocks = pre_ln(8)
    found = diagnose(profile([*blocks[:5], replace(blocks[5], status="frozen"), *blocks[6:]]))
    assert found.cause == "frozen block"
    assert not any("no fault" in note for note in found.notes)


def test_batch_norm_in_eval_mode_is_no_inference() -> None:
    layers = [each for _ in range(20) for each in (nn.Linear(W, W), nn.BatchNorm1d(W), nn.ReLU())]
    found = judged(nn.Sequential(*layers, nn.Linear(W, K)).eval())
    assert (found.cause, found.inferred) == ("not recognised", False)
    assert found.sentence.startswith("None of the known causes fits: a block multiplies the gradient by .")
    assert "train()" in found.repair


@pytest.mark.parametrize(
    ("last", "verdict", "word"),
    [
        (0.0, "rank collapse", "all examples map to one point within rounding"),
        (1.05, "rank collapse", "falls from 30 to 1.05 over the body"),
        (1.3, "healthy", "near collapse"),
        (1.6, "healthy", ""),
    ],
)
def test_a_rank_near_its_threshold(last: float, verdict: str, word: str) -> None:
    ranks = [30.0, 12.0, 5.0, 2.0, 1.7, last]
    found = diagnose(profile([replace(each, rank=rank) for each, rank in zip(plain(6), ranks, strict=True)]))
    assert found.verdict == verdict
    assert word in " | ".join((found.sentence, *found.notes))
    assert ("near collapse" in " ".join(found.notes)) is (word == "near collapse")


def test_the_rate_is_one_number() -> None:
    """Embeddings of .02: the first block is left out of headline, numbers and rate alike."""
    blocks = pre_ln(12)
    blocks[0] = replace(blocks[0], ratio=50.0, multiplier=50.0)
    found = diagnose(profile(blocks, Around(stem_rms=0.02)))
    assert found.rate is not None
    assert found.rate.num_blocks == 11
    assert found.rate.value == found.numbers["rate"]
    assert found.rate.total_log10 == pytest.approx(math.log10(13 / 2) / 2, abs=1e-9)


def test_repairs_are_code() -> None:
    blocks = [replace(each, ops=(linear(f"blocks.{at}.w", 1 / 3), *each.ops[1:])) for at, each in enumerate(plain(30))]
    found = diagnose(profile([replace(each, multiplier=0.41) for each in blocks]))
    assert 'nn.init.kaiming_normal_(w, nonlinearity="relu")' in found.repair
