"""`depthscope.compare`: pairs that are pairs, the caller's things untouched, every fate told."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from torch import Tensor, nn  # noqa: E402
from torch.nn.functional import cross_entropy  # noqa: E402

import depthscope  # noqa: E402
from depthscope.core.errors import UserError  # noqa: E402
from depthscope.core.streams import stream  # noqa: E402


class Deep(nn.Module):
    """Layers of 16, with or without a skip over each; dropout draws in every update."""

    def __init__(self, *, skip: bool, depth: int = 6, dropout: float = 0.1) -> None:
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(16, 16) for _ in range(depth)])
        self.dropout = nn.Dropout(dropout)
        self.head = nn.Linear(16, 3)
        self.skip = skip

    def forward(self, x: Tensor) -> Tensor:
        for layer in self.layers:
            y = torch.tanh(layer(x)) * 0.2
            x = x + y if self.skip else y
        out: Tensor = self.head(self.dropout(x))
        return out


GENERATOR = torch.Generator().manual_seed(0)
INPUTS = torch.randn(96, 16, generator=GENERATOR)
TARGETS = INPUTS[:, :3].argmax(1)
DATA = (INPUTS, TARGETS)


def run(variants: dict[str, Callable[[], nn.Module]], data: Any = DATA, **options: Any) -> depthscope.Comparison:
    given = {"steps": 4, "seeds": 1, "batch_size": 32, **options}
    return depthscope.compare(variants, data, given.pop("loss_fn", cross_entropy), **given)


def skipping() -> nn.Module:
    return Deep(skip=True)


def plain() -> nn.Module:
    return Deep(skip=False)


def test_equal_variants_are_equal_to_the_bit_and_no_difference_is_claimed() -> None:
    result = run({"a": skipping, "b": skipping}, seeds=2)
    by_seed = {(each.arm, each.seed): each for each in result.runs}
    for seed in (0, 1):
        assert by_seed["a", seed].losses == by_seed["b", seed].losses  # batches, dropout and start alike
        assert by_seed["a", seed].init == by_seed["b", seed].init
    assert by_seed["a", 0].losses != by_seed["a", 1].losses
    (loss, *_) = result.findings
    assert loss.estimates[0].values == (0.0, 0.0)
    assert loss.verdict == "undecided"
    assert loss.pairing[0].num_shared == loss.pairing[0].num_common == 14


def test_a_naive_loop_gives_the_same_losses() -> None:
    """The slow twin: built, ordered and stepped by hand from the named streams."""
    result = run({"a": lambda: Deep(skip=True, dropout=0.0), "b": plain}, steps=5)
    (found,) = (each.losses for each in result.runs if each.arm == "a")
    torch.manual_seed(int(stream(0, "init", "variants").integers(2**32, size=3)[0]))
    model = Deep(skip=True, dropout=0.0)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    losses = []
    for epoch in (0, 1):
        order = torch.as_tensor(stream(0, "order", epoch).permutation(96))
        for at in (0, 32, 64):
            index = order[at : at + 32]
            optimizer.zero_grad()
            loss = cross_entropy(model(INPUTS[index]), TARGETS[index])
            losses.append(loss.item())
            loss.backward()  # type: ignore[no-untyped-call]
            optimizer.step()
    assert found == tuple(losses[:5])


def test_the_finding_names_the_better_variant_with_its_interval() -> None:
    result = run({"as is": plain, "with skip": skipping}, steps=30, seeds=3, lr=1e-2)
    (loss, accuracy) = result.findings
    assert loss.confirmatory
    assert (loss.verdict, accuracy.verdict) == ("supported", "supported")
    low, high = loss.estimates[0].low, loss.estimates[0].high
    assert low is not None
    assert high is not None
    assert low < high < 0
    assert result.headline.startswith("“with skip” ends with a lower training loss than “as is”")
    assert result.diagnoses["as is", 0, "first"].verdict == "vanishing"
    assert [len(each.first.structure.additions) for each in result.runs if each.first] == [0, 6] * 3
    document = json.loads(result.to_json())
    assert document["findings"][0]["verdict"] == "supported"
    assert len(document["runs"]) == 6


def test_one_seed_has_no_interval_and_says_so() -> None:
    result = run({"as is": plain, "with skip": skipping})
    assert result.findings[0].verdict == "undecided"
    assert "one seed has no interval; run 3 or more" in result.headline
    assert b"One seed gives no interval" in result.page()


def loader() -> Any:
    return torch.utils.data.DataLoader(torch.utils.data.TensorDataset(*DATA), batch_size=32, shuffle=True)


def drawn(seed: int) -> Iterator[tuple[Tensor, Tensor]]:
    while True:
        yield torch.randn(8, 16), torch.randint(0, 3, (8,))


@pytest.mark.parametrize(
    "data",
    [DATA, torch.utils.data.TensorDataset(*DATA), loader(), [(INPUTS, TARGETS)], drawn],
    ids=["tensors", "dataset", "loader", "batches", "function"],
)
def test_every_form_of_data_is_seen_alike_by_all(data: Any) -> None:
    seen: dict[str, list[Tensor]] = {"a": [], "b": []}

    def watched(name: str) -> Callable[[], nn.Module]:
        def make() -> nn.Module:
            model = Deep(skip=True)
            model.register_forward_pre_hook(
                lambda module, args: seen[name].append(args[0].clone()) if torch.is_grad_enabled() else None
            )
            return model

        return make

    result = run({"a": watched("a"), "b": watched("b")}, data, steps=5)
    assert all(each.outcome.status == "completed" for each in result.runs)
    assert len(seen["a"]) >= 5
    assert all(torch.equal(x, y) for x, y in zip(seen["a"], seen["b"], strict=True))
    again: dict[str, list[Tensor]] = {name: list(found) for name, found in seen.items()}
    for found in seen.values():
        found.clear()
    run({"a": watched("a"), "b": watched("b")}, data, steps=5)
    assert all(torch.equal(x, y) for x, y in zip(again["a"], seen["a"], strict=True))  # and the next time


def test_the_callers_generators_and_data_stay_and_a_variant_may_write_its_input() -> None:
    class Writes(Deep):
        def forward(self, x: Tensor) -> Tensor:
            x.mul_(0.0)
            return super().forward(x)

    torch.manual_seed(3)
    random.seed(3)
    np.random.seed(3)  # noqa: NPY002 - the caller's
    before = torch.get_rng_state(), random.getstate(), np.random.get_state()[1].copy()  # type: ignore[index]  # noqa: NPY002
    kept = INPUTS.clone()
    result = run({"writes": lambda: Writes(skip=True), "reads": skipping})
    assert torch.equal(before[0], torch.get_rng_state())
    assert before[1] == random.getstate()
    assert (before[2] == np.random.get_state()[1]).all()  # type: ignore[index]  # noqa: NPY002
    assert torch.equal(kept, INPUTS)
    alone = run({"reads": skipping, "other": skipping})
    assert result.runs[1].losses == alone.runs[0].losses


def test_divergence_and_failure_are_fates_and_no_hole() -> None:
    class Fails(Deep):
        def forward(self, x: Tensor) -> Tensor:
            if len(x) == 32 and self.training:
                self.calls = getattr(self, "calls", 0) + 1
                if self.calls > 6:
                    raise RuntimeError("out of luck")
            return super().forward(x)

    class Explodes(Deep):
        def forward(self, x: Tensor) -> Tensor:
            return super().forward(x) * self.head.weight.new_tensor(1e30) * 1e30

    variants = {"as is": plain, "fails": lambda: Fails(skip=True), "explodes": lambda: Explodes(skip=True)}
    result = run(variants, steps=12, seeds=2)
    status = {each.arm: each.outcome.status for each in result.runs}
    assert status == {"as is": "completed", "fails": "failed", "explodes": "diverged"}
    assert "out of luck" in str(result)
    assert "“explodes” diverged in 2 of 2 runs." in result.headline
    judged = {each.claim: each for each in result.findings}
    assert judged["train_loss: explodes"].verdict == "undecided"
    assert "divergence speaks against the claim" in judged["train_loss: explodes"].reason
    page = result.page().decode("utf-8")
    assert "out of luck" in page


def test_a_factory_with_a_source_of_its_own_is_named() -> None:
    own = torch.Generator().manual_seed(1)

    def unpaired() -> nn.Module:
        model = Deep(skip=True)
        with torch.no_grad():
            model.head.weight.normal_(generator=own)
        return model

    result = run({"as is": skipping, "unpaired": unpaired})
    assert result.setup.unrepeated == ("unpaired",)
    assert result.findings[0].pairing[0].differing == ("head.weight",)


SAME = Deep(skip=True)


@pytest.mark.parametrize(
    ("variants", "options", "says"),
    [
        ({"a": plain}, {}, "two variants or more"),
        ({"a": plain, "b": lambda: SAME}, {}, "gives the same model"),
        ({"a": plain, "b": lambda: 3}, {}, "wanted a torch.nn.Module"),
        ({"a": plain, "b": SAME}, {}, "got a model"),
        ({"a": plain, "b": skipping}, {"loss_fn": None}, "training needs a loss"),
        ({"a": plain, "b": skipping}, {"data": (INPUTS[:, :4], TARGETS)}, "no variant could be trained"),
        ({"a": plain, "b": skipping}, {"data": (INPUTS, TARGETS[:5])}, "hold 5 and 96 examples"),
        ({"a": plain, "b": skipping}, {"data": iter([DATA])}, "cannot be read again"),
        ({"a": plain, "b": skipping}, {"data": 3}, "data: wanted"),
        ({"a": plain, "b": skipping}, {"seeds": [1, 1]}, "different seeds"),
        ({"a": plain, "b": skipping}, {"seeds": 2.5}, "seeds: wanted a number of seeds"),
        ({"a": plain, "b": skipping}, {"seeds": True}, "seeds: wanted a number of seeds"),
        ({"a": plain, "b": skipping}, {"steps": 0}, "steps: wanted"),
        ({"a": plain, "b": lambda: nn.LazyLinear(3)}, {}, "b: weight has no values yet"),
    ],
)
def test_bad_input_is_one_line(variants: dict[str, Any], options: dict[str, Any], says: str) -> None:
    with pytest.raises(UserError, match=says) as caught:
        run(variants, **options)
    assert "\n" not in str(caught.value)


def test_what_did_not_train_is_told_and_the_best_of_three_named() -> None:
    class Constant(Deep):
        def forward(self, x: Tensor) -> Tensor:
            return 0.0 * super().forward(x)

    variants = {"as is": plain, "constant": lambda: Constant(skip=False), "with skip": skipping}
    result = run(variants, steps=30, seeds=2, lr=1e-2)
    best = result.headline
    assert best.startswith("“with skip” has the lowest mean training loss: ")
    assert (
        "“constant” is at chance (training loss 1.099, a uniform guess has 1.099): it did not train." in result.headline
    )
    assert "“with skip” is at chance" not in result.headline
    text = str(result)
    assert "start: 14 of the 14 tensors that “with skip” and “as is” both have are equal." in text
    assert "Holm" in text
    # Other initial values are what the caller compares, no warning.

    def other() -> nn.Module:
        model = plain()
        nn.init.normal_(model.head.weight)  # type: ignore[arg-type, union-attr]
        return model

    (pair,) = run({"as is": plain, "other": other}).findings[0].pairing
    assert (pair.flags, pair.num_shared, pair.num_common) == ((), 13, 14)
