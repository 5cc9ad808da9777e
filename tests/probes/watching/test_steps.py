"""What counts as one step of a training, found out from outside."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from depthscope.core.errors import UserError
from depthscope.probes.watching import Watching


def net() -> nn.Sequential:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(4, 6), nn.Tanh(), nn.Linear(6, 6), nn.Tanh(), nn.Linear(6, 2))


def norms(watching: Watching) -> list[float]:
    """The model's gradient norm of each record."""
    return [
        next(each.value for each in record.readings if each.place == "model" and each.quantity == "grad_norm")
        for record in watching.records()
    ]


def norm_of(model: nn.Module) -> float:
    return float(torch.cat([each.grad.double().ravel() for each in model.parameters() if each.grad is not None]).norm())


def sgd(model: nn.Module, lr: float = 0.1) -> torch.optim.SGD:
    return torch.optim.SGD(model.parameters(), lr)


def test_passes_without_a_training_step_are_none() -> None:
    """Evaluation under no_grad, in eval mode, in inference mode; a penalty on the input's gradient in eval mode."""
    model = net()
    optimizer = sgd(model)
    wanted = []
    with Watching(model, optimizer, 1) as watching:
        for _ in range(3):
            optimizer.zero_grad()
            model(torch.randn(5, 4)).square().sum().backward()
            with torch.no_grad():
                model(torch.randn(9, 4))
            model.eval()
            with torch.inference_mode():
                model(torch.randn(9, 4))
            x = torch.randn(9, 4, requires_grad=True)
            torch.autograd.grad(model(x).sum(), x)
            model.train()
            wanted.append(norm_of(model))
            optimizer.step()
    assert watching.num_steps == 3
    assert [each.conditions.batch for each in watching.records()] == [5, 5, 5]
    assert [each.conditions.silent for each in watching.records()] == [""] * 3
    assert norms(watching) == pytest.approx(wanted, rel=1e-12)


def test_a_training_pass_that_nobody_differentiates_is_left_out() -> None:
    model = net()
    optimizer = sgd(model)
    with Watching(model, optimizer, 1) as watching:
        model(torch.randn(9, 4))
        optimizer.zero_grad()
        model(torch.randn(5, 4)).square().sum().backward()
        model(torch.randn(7, 4))
        optimizer.step()
    (record,) = watching.records()
    assert (record.conditions.batch, record.conditions.silent) == (5, "")


def clear_none(model: nn.Module) -> None:
    model.zero_grad()


def clear_zero(model: nn.Module) -> None:
    model.zero_grad(set_to_none=False)


@pytest.mark.parametrize("clear", [clear_none, clear_zero])
@pytest.mark.parametrize("late", [False, True], ids=["cleared before the forward pass", "after it"])
def test_a_gan_s_discriminator_does_not_count_the_generator_s_gradients(
    clear: Callable[[nn.Module], None], late: bool
) -> None:
    discriminator, generator = net(), nn.Linear(3, 4)
    optimizer, other = sgd(discriminator), sgd(generator)
    wanted = []
    with Watching(discriminator, optimizer, 1) as watching, Watching(generator, other, 1) as beside:
        for _ in range(3):
            real, noise = torch.randn(6, 4), torch.randn(5, 3)
            if not late:
                clear(discriminator)
            loss = discriminator(real).square().mean() + discriminator(generator(noise).detach()).abs().mean()
            if late:
                clear(discriminator)
            loss.backward()
            wanted.append(norm_of(discriminator))
            optimizer.step()
            generator.zero_grad()
            discriminator(generator(noise)).square().mean().backward()
            other.step()
    assert watching.num_steps == beside.num_steps == 3
    assert norms(watching) == pytest.approx(wanted, rel=1e-12)
    # The generator's first pass of each step was detached: no gradient came back through it.
    assert [each.conditions.batch for each in watching.records()] == [11, 11, 11]
    assert [each.conditions.batch for each in beside.records()] == [5, 5, 5]


def test_two_optimisers_after_one_backward_pass_are_one_step() -> None:
    model = net()
    matrices = torch.optim.SGD([each for each in model.parameters() if each.ndim == 2], 0.1)
    vectors = torch.optim.Adam([each for each in model.parameters() if each.ndim == 1], 0.1)
    wanted = []
    with Watching(model, [matrices, vectors], 1) as watching:
        for step in range(4):
            model.zero_grad()
            model(torch.randn(5, 4)).square().sum().backward()
            wanted.append(norm_of(model))
            matrices.step()
            if step != 1:  # the other one rests at times
                vectors.step()
    assert watching.num_steps == 4
    assert norms(watching) == pytest.approx(wanted, rel=1e-12)


def test_two_optimisers_with_a_backward_pass_each_make_two_steps() -> None:
    model = nn.ModuleDict({"a": net(), "b": net()})
    model.forward = lambda x, which: model[which](x)
    optimizers = {name: sgd(model[name]) for name in "ab"}
    with Watching(model, list(optimizers.values()), 1) as watching:
        for _ in range(2):
            for name, optimizer in optimizers.items():
                model.zero_grad()
                model(torch.randn(5, 4), name).square().sum().backward()
                optimizer.step()
    records = watching.records()
    assert watching.num_steps == 4
    assert [(each.statuses["a.0.weight"], each.statuses["b.0.weight"]) for each in records[::2]] == [
        ("ok", "unused")
    ] * 2
    assert ["a.0.weight" in {each.name for each in record.readings if each.quantity == "weight_grad_norm"}
            for record in records] == [True, False, True, False]  # fmt: skip


def test_a_line_search_is_one_step_measured_where_it_starts() -> None:
    model = net()
    optimizer: Any = torch.optim.LBFGS(model.parameters(), 0.5, max_iter=4, line_search_fn="strong_wolfe")
    x = torch.randn(8, 4)
    evaluations: list[list[float]] = []

    def closure() -> Tensor:
        optimizer.zero_grad()
        loss: Tensor = (model(x) - 1).square().mean()
        loss.backward()  # type: ignore[no-untyped-call]
        evaluations[-1].append(norm_of(model))
        return loss

    sizes = []
    with Watching(model, optimizer, 1) as watching:
        for _ in range(3):
            evaluations.append([])
            sizes.append(float(model.get_parameter("0.weight").detach().double().norm()))
            optimizer.step(closure)
    assert min(len(each) for each in evaluations) > 1
    assert watching.num_steps == 3
    assert norms(watching) == pytest.approx([each[0] for each in evaluations], rel=1e-12)
    profile = watching.profile
    assert [profile.values("parameter", "weight_norm", step)["0.weight"] for step in range(3)] == pytest.approx(
        sizes, rel=1e-12
    )
    assert not any(each.conditions.clipped or each.conditions.silent for each in watching.records())


def test_clipping_inside_of_a_closure_is_seen() -> None:
    """So does Lightning: training step, clearing, backward pass and clipping all lie in the optimiser's step."""
    model = net()
    optimizer = sgd(model)
    wanted = []

    def closure() -> Tensor:
        loss: Tensor = model(torch.randn(8, 4)).square().mean()
        optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        before = norm_of(model)
        nn.utils.clip_grad_norm_(model.parameters(), 0.01)
        wanted.append((before, norm_of(model)))
        return loss

    with Watching(model, optimizer, 1) as watching:
        for _ in range(2):
            optimizer.step(closure)
    profile = watching.profile
    found = [(profile.value("grad_norm", step), profile.value("clipped_grad_norm", step)) for step in (0, 1)]
    assert found == [pytest.approx(each, rel=1e-12) for each in wanted]


@pytest.mark.parametrize("micro_batches", [1, 3])
def test_without_an_optimiser_a_step_lies_between_two_clearings(micro_batches: int) -> None:
    model = net()
    optimizer = sgd(model)
    wanted = []
    with Watching(model, every=1) as watching:
        for _ in range(3):
            optimizer.zero_grad()
            for _ in range(micro_batches):
                model(torch.randn(5, 4)).square().sum().backward()
            wanted.append(norm_of(model))
            optimizer.step()
    assert watching.num_steps == 3
    assert norms(watching) == pytest.approx(wanted, rel=1e-12)
    assert [each.conditions.batch for each in watching.records()] == [5 * micro_batches] * 3


def test_without_an_optimiser_the_loop_may_say_it() -> None:
    model = net()
    with Watching(model, every=1) as watching:
        for step in range(3):
            model.zero_grad()
            model(torch.randn(5, 4)).square().sum().backward()
            watching.step()
            assert watching.num_steps == step + 1
    assert len(watching.records()) == 3
    with pytest.raises(UserError, match="outside of the with block"):
        watching.step()
    with Watching(model, sgd(model)) as watching, pytest.raises(UserError, match="steps are seen"):
        watching.step()


def test_a_model_within_a_model_and_one_that_calls_itself() -> None:
    class Twice(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer = nn.Linear(4, 4)

        def forward(self, x: Tensor, again: bool = True) -> Tensor:
            x = torch.tanh(self.layer(x))
            out: Tensor = self(x, False) if again else x
            return out

    model = Twice()
    optimizer = sgd(model)
    with Watching(model, optimizer, 1) as watching, Watching(model.layer, optimizer, 1) as inner:
        for _ in range(2):
            optimizer.zero_grad()
            model(torch.randn(5, 4)).square().sum().backward()
            optimizer.step()
    assert [each.conditions.batch for each in watching.records()] == [5, 5]
    assert norms(watching) == pytest.approx(norms(inner), rel=1e-12)
    assert (
        "layer#1"
        in {each.name for each in watching.structure.boundaries}
        | {op.module for block in watching.structure.blocks for op in block.ops}
        or len(watching.structure.blocks) == 2
    )


def test_a_write_that_torch_does_not_mark_is_clipping_too() -> None:
    """Old code clips through `.data`, which moves no version."""
    model = net()
    optimizer = sgd(model)
    with Watching(model, optimizer, 1) as watching:
        model(torch.randn(5, 4)).square().sum().backward()
        for parameter in model.parameters():
            assert parameter.grad is not None
            parameter.grad.data.mul_(0.25)
        optimizer.step()
    profile = watching.profile
    assert profile.value("clipped_grad_norm") == pytest.approx(0.25 * profile.value("grad_norm"), rel=1e-7)


def test_where_no_pass_is_seen_the_parameters_are_measured_and_it_says_so() -> None:
    model = net()
    optimizer = sgd(model)
    with Watching(model, optimizer, 1) as watching:
        x = torch.randn(5, 4)
        for layer in model:
            x = layer(x)
        x.square().sum().backward()  # type: ignore[no-untyped-call]
        wanted = norm_of(model)
        optimizer.step()
    (record,) = watching.records()
    assert norms(watching) == pytest.approx([wanted], rel=1e-12)
    assert "no training pass" in record.conditions.silent
    assert {each.place for each in record.readings} == {"parameter", "model"}


def test_a_model_that_takes_another_way_says_where_it_departed() -> None:
    class Forked(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.a, self.b, self.c = nn.Linear(4, 4), nn.Linear(4, 4), nn.Linear(4, 4)
            self.other = False

        def forward(self, x: Tensor) -> Tensor:
            x = torch.sigmoid(self.b(x)) if self.other else torch.tanh(self.a(x))
            out: Tensor = self.c(x)
            return out

    model = Forked()
    optimizer = sgd(model)
    with Watching(model, optimizer, 1) as watching:
        for step in range(4):
            model.other = step == 1
            optimizer.zero_grad()
            model(torch.randn(5, 4)).square().sum().backward()
            optimizer.step()
    silent = [each.conditions.silent for each in watching.records()]
    assert [bool(each) for each in silent] == [False, True, False, False]
    assert "another way" in silent[1]
    assert "boundary" not in {each.place for each in watching.records()[1].readings}


def test_a_model_that_cannot_be_traced_is_trained_all_the_same() -> None:
    class Once(nn.Module):
        calls = 0

        def __init__(self) -> None:
            super().__init__()
            self.layer = nn.Linear(4, 4)

        def forward(self, x: Tensor) -> Tensor:
            if torch.utils._python_dispatch._get_current_dispatch_mode() is not None:
                raise RuntimeError("not under a mode")
            out: Tensor = self.layer(x)
            return out

    model = Once()
    optimizer = sgd(model)
    with Watching(model, optimizer, 1) as watching:
        model(torch.randn(5, 4)).square().sum().backward()
        optimizer.step()
    (record,) = watching.records()
    assert "not recognised: RuntimeError: not under a mode" in record.conditions.silent
    assert [each.name for each in watching.structure.parameters] == ["layer.weight", "layer.bias"]


def test_history_keeps_scheduled_steps_or_all_and_the_last() -> None:
    for every_step, wanted in ((False, [0, 1, 2, 4, 5]), (True, list(range(6)))):
        model = net()
        optimizer = sgd(model)
        with Watching(model, optimizer, 5, every_step=every_step) as watching:
            for _ in range(6):
                optimizer.zero_grad()
                model(torch.randn(5, 4)).square().sum().backward()
                optimizer.step()
        assert [each.step for each in watching.records()] == wanted
        last = watching.last()
        assert last is not None
        assert last.step == 5
        assert watching.last() == last  # made again of the same numbers
        silent = {each.step: each.conditions.silent for each in watching.records()}
        assert [bool(silent[step]) for step in wanted] == [step not in (0, 1, 2, 4, 5) for step in wanted]


def test_a_watch_rests_and_goes_on() -> None:
    model = net()
    optimizer = sgd(model)
    watching = Watching(model, optimizer, 1)
    for step in range(5):
        if step in (0, 3):
            watching.start()
        optimizer.zero_grad()
        model(torch.randn(5, 4)).square().sum().backward()
        optimizer.step()
        if step == 1:
            watching.stop()
    watching.stop()
    assert watching.num_steps == 4
    assert [each.conditions.silent for each in watching.records()] == [""] * 4


def test_losses_are_told_or_the_model_s_own() -> None:
    class WithLoss(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer = nn.Linear(4, 3)

        def forward(self, x: Tensor, y: Tensor) -> dict[str, Tensor]:
            logits = self.layer(x)
            return {"loss": F.cross_entropy(logits, y), "logits": logits}

    model: Any = WithLoss()
    optimizer = sgd(model)
    wanted = []
    with Watching(model, optimizer, 1) as watching:
        for _ in range(3):
            optimizer.zero_grad()
            loss = model(torch.randn(5, 4), torch.arange(5) % 3)["loss"]
            loss.backward()
            wanted.append(loss.item())
            optimizer.step()
    assert [watching.profile.value("loss", step) for step in range(3)] == wanted
    assert {each.conditions.objective for each in watching.records()} == {"model loss"}
    model = net()
    optimizer = sgd(model)
    with Watching(model, optimizer, 1) as watching:
        for step in range(3):
            optimizer.zero_grad()
            loss = model(torch.randn(5, 4)).square().mean()
            if step:
                watching.loss(loss)  # before the step
            loss.backward()
            optimizer.step()
            if not step:
                watching.loss(7.0)  # or after it
        watching.validation(0.5)
    assert [step for step, _ in watching.curve("loss")] == [0, 1, 2]
    assert watching.profile.value("loss", 0) == 7.0
    assert watching.curve("validation") == [(3, 0.5)]
    with pytest.raises(UserError, match="wanted one number"):
        watching.loss(torch.zeros(2))
