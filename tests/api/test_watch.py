"""`depthscope.watch` as a user meets it, and the callbacks for those whose loop is a library's."""

from __future__ import annotations

import builtins
import importlib.util
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

import depthscope
from depthscope.core.errors import MissingDependencyError, UserError
from depthscope.report.words import Words


def net() -> nn.Sequential:
    torch.manual_seed(0)
    return nn.Sequential(*(nn.Sequential(nn.Linear(4, 4), nn.Tanh()) for _ in range(5)), nn.Linear(4, 2))


def test_two_lines_around_a_loop() -> None:
    model = net()
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    told: dict[int, dict[str, float]] = {}
    with depthscope.watch(model, optimizer, every=5, writer=lambda values, step: told.update({step: values})) as w:
        for _ in range(7):
            loss = F.cross_entropy(model(torch.randn(6, 4)), torch.arange(6) % 2)
            optimizer.zero_grad()
            loss.backward()  # type: ignore[no-untyped-call]
            w.loss(loss)
            optimizer.step()
        w.validation(0.7)
    assert repr(w) == "Watch(7 steps, 5 recorded: 0, 1, 2, 4, 5)"
    assert w.profile.steps() == (0, 1, 2, 4, 5)
    assert [step for step, _ in w.losses] == list(range(7))
    assert w.validations == [(7, 0.7)]
    assert list(told) == [0, 1, 2, 4, 5]
    assert told[4]["depth/grad_norm/2"] == w.profile.values("boundary", "grad_norm", 4)["2"]
    last = w.last()
    assert last is not None
    assert last.step == 6
    assert len(w.structure.blocks) == 6


def test_a_diagnosis_of_the_last_profile_with_the_curves_told() -> None:
    torch.manual_seed(0)
    model = nn.Sequential(*(nn.Sequential(nn.Linear(32, 32), nn.ReLU()) for _ in range(12)), nn.Linear(32, 2))
    optimizer = torch.optim.SGD(model.parameters(), 1e-3)
    w = depthscope.watch(model, optimizer, every=2)
    with pytest.raises(UserError, match="nothing was recorded"):
        w.diagnose()
    with w:
        for _ in range(2):
            F.cross_entropy(model(torch.randn(64, 32)), torch.arange(64) % 2).backward()  # type: ignore[no-untyped-call]
            optimizer.step()
    found = w.diagnose()
    assert (found.verdict, found.step) == ("vanishing", 1)  # torch's default for ReLU: .41 a layer
    assert w.diagnose(step=0).step == 0
    with pytest.raises(UserError, match="step 7 was not recorded; recorded: 0, 1"):
        w.diagnose(step=7)


def test_what_a_person_can_read_of_a_training(tmp_path: Path) -> None:
    torch.manual_seed(0)
    model = nn.Sequential(*(nn.Sequential(nn.Linear(32, 32), nn.ReLU()) for _ in range(12)), nn.Linear(32, 2))
    optimizer = torch.optim.SGD(model.parameters(), 1e-3)
    w = depthscope.watch(model, optimizer, every=2)
    assert str(w) == "Watch(0 steps, 0 recorded)"
    with w:
        for step in range(10):
            F.cross_entropy(model(torch.randn(64, 32)), torch.arange(64) % 2).backward()  # type: ignore[no-untyped-call]
            optimizer.step()
            if step == 0:
                untold = str(w)
            w.loss(1.5 - 0.125 * step)
    # The last recorded step is shown, with the numbers of that step alone.
    assert untold.startswith("Sequential at step 0: vanishing\n")
    assert "loss:" not in untold
    text = str(w)
    assert text.startswith("Sequential at step 8: vanishing\n")
    assert "training loss: 1.5 at step 0, .375 at step 9" in text
    assert "no validation loss was told (w.validation): overfitting was not judged" in text
    checkup = w.checkup(step=1)
    assert checkup.profile.steps() == (1,)
    assert checkup.profile.value("grad_norm") == w.profile.value("grad_norm", 1)
    assert str(w.diagnose()).startswith("vanishing\n")
    assert "try: " in str(w.diagnose())
    page = w.page(tmp_path / "w.html", lang="zh")
    assert (tmp_path / "w.html").read_bytes() == page
    for key in ("course.losses_section", "course.multipliers_section"):
        assert Words("zh")(key) in page.decode()
        assert Words("en")(key) not in page.decode()


def test_a_training_that_goes_on_counts_on() -> None:
    model = net()
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    with depthscope.watch(model, optimizer, every=100, first_step=99) as w:
        for _ in range(3):
            model(torch.randn(6, 4)).sum().backward()
            optimizer.step()
    assert w.profile.steps() == (100,)
    assert w.num_steps == 102


def test_pandas_is_asked_for_only_when_wanted(monkeypatch: pytest.MonkeyPatch) -> None:
    model = net()
    with depthscope.watch(model) as w:
        model(torch.randn(6, 4)).sum().backward()
        w.step()
    plain = builtins.__import__

    def without(name: str, *args: Any, **kwargs: Any) -> Any:
        if name.partition(".")[0] == "pandas":
            raise ModuleNotFoundError("No module named 'pandas'", name="pandas")
        return plain(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(MissingDependencyError, match="pip install pandas"):
        w.to_pandas()


def test_as_a_table() -> None:
    pandas = pytest.importorskip("pandas")
    model = net()
    with depthscope.watch(model) as w:
        model(torch.randn(6, 4)).sum().backward()
        w.step()
    table = w.to_pandas()
    assert isinstance(table, pandas.DataFrame)
    assert list(table.columns) == ["step", "place", "name", "quantity", "value"]
    assert len(table) == len(w.profile.readings)


def lightning_parts() -> Any:
    lightning = pytest.importorskip("lightning.pytorch")

    class Module(lightning.LightningModule):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.net = net()

        def training_step(self, batch: list[Tensor], _index: int) -> Tensor:
            x, y = batch
            return F.cross_entropy(self.net(x), y)

        def validation_step(self, batch: list[Tensor], _index: int) -> None:
            x, y = batch
            self.log("val_loss", F.cross_entropy(self.net(x), y))

        def configure_optimizers(self) -> Any:
            return torch.optim.Adam(self.parameters(), 1e-2)

    return lightning, Module


def fit(lightning: Any, module: Any, root: Path, callbacks: list[Any], **options: Any) -> None:
    torch.manual_seed(3)
    data = torch.utils.data.TensorDataset(torch.randn(24, 4), torch.arange(24) % 2)
    loader = torch.utils.data.DataLoader(data, 4)
    trainer = lightning.Trainer(
        max_epochs=1,
        accelerator="cpu",
        default_root_dir=root,
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
        callbacks=callbacks,
        **options,
    )
    trainer.fit(module, loader, loader)


@pytest.mark.slow  # Lightning takes longer to import than all else here
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    "options", [{}, {"gradient_clip_val": 1e-3}, {"accumulate_grad_batches": 2}], ids=["", "clipped", "accumulated"]
)
def test_lightning(tmp_path: Path, options: dict[str, Any]) -> None:
    lightning, make = lightning_parts()
    plain, watched = make(), make()
    fit(lightning, plain, tmp_path, [], **options)
    told: list[int] = []
    callback = depthscope.lightning_callback(every=2, writer=lambda values, step: told.append(step))
    fit(lightning, watched, tmp_path, [callback], **options)
    assert [each.tolist() for each in watched.parameters()] == [each.tolist() for each in plain.parameters()]
    w = callback.watch
    assert w.num_steps == (3 if "accumulate_grad_batches" in options else 6)
    steps = [step for step in (0, 1, 2, 4) if step < w.num_steps]
    assert told == list(w.profile.steps()) == steps
    for step in steps:
        conditions = w.profile.conditions[step]
        assert conditions.silent == ""
        assert conditions.batch == (8 if "accumulate_grad_batches" in options else 4)
        assert conditions.clipped == ("gradient_clip_val" in options)
    if "gradient_clip_val" in options:
        assert w.profile.value("clipped_grad_norm", 0) == pytest.approx(1e-3, rel=2e-3)
    assert len(w.losses) == 6
    assert [step for step, _ in w.validations] == [w.num_steps]
    assert w.structure.blocks[0].name == "0"  # of the child that training_step calls
    assert not watched.net._forward_hooks
    assert not watched.net._forward_pre_hooks


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_lightning_after_an_exception_and_by_the_submodule_s_name(tmp_path: Path) -> None:
    lightning, make = lightning_parts()
    module = make()
    step = module.training_step
    done: list[int] = []

    def failing(batch: list[Tensor], index: int = 0) -> Tensor:
        done.append(index)
        if len(done) > 2:
            raise ZeroDivisionError
        loss: Tensor = step(batch, index)
        return loss

    module.training_step = failing
    callback = depthscope.lightning_callback(module="net.1")
    with pytest.raises(ZeroDivisionError):
        fit(lightning, module, tmp_path, [callback])
    assert callback.watch.num_steps == 2
    assert not module.net[1]._forward_hooks
    with pytest.raises(UserError, match="unknown module 'nett'"):
        fit(lightning, make(), tmp_path, [depthscope.lightning_callback(module="nett")])


class Regression(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.net = net()

    def forward(self, x: Tensor, labels: Tensor) -> dict[str, Tensor]:
        logits = self.net(x)
        return {"loss": F.cross_entropy(logits, labels), "logits": logits}


def test_hugging_face_s_events() -> None:
    """The Trainer's own handler of events, driven by a loop of ours: the Trainer needs a further package."""
    trainer_callback = pytest.importorskip("transformers.trainer_callback")
    callback = depthscope.trainer_callback(every=2)
    assert isinstance(callback, trainer_callback.TrainerCallback)
    assert repr(callback) == "depthscope.trainer_callback(every=2)"
    model = Regression()
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    handler = trainer_callback.CallbackHandler([callback], model, None, optimizer, None)
    state, control = trainer_callback.TrainerState(), trainer_callback.TrainerControl()
    handler.on_train_begin(None, state, control)
    for _ in range(3):
        model(torch.randn(4, 4), torch.arange(4) % 2)["loss"].backward()
        optimizer.step()
        optimizer.zero_grad()
        handler.on_step_end(None, state, control)
    handler.on_log(None, state, control, {"loss": 0.5})
    handler.on_evaluate(None, state, control, {"eval_loss": 0.75})
    handler.on_train_end(None, state, control)
    w = callback.watch
    assert w.profile.steps() == (0, 1, 2)
    assert {each.silent for each in w.profile.conditions.values()} == {""}
    assert w.losses == [(2, 0.5)]
    assert w.validations == [(3, 0.75)]
    assert not model._forward_hooks


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("accumulate", [1, 2])
def test_hugging_face_s_trainer(tmp_path: Path, accumulate: int) -> None:
    pytest.importorskip("accelerate", reason="transformers.Trainer needs accelerate")
    transformers = pytest.importorskip("transformers")

    def run(callbacks: list[Any]) -> nn.Module:
        model = Regression()
        rows = [{"x": torch.full((4,), float(i % 5)), "labels": i % 2} for i in range(24)]
        arguments = transformers.TrainingArguments(
            output_dir=str(tmp_path),
            max_steps=4,
            per_device_train_batch_size=4,
            gradient_accumulation_steps=accumulate,
            use_cpu=True,
            report_to=[],
            save_strategy="no",
            logging_steps=2,
            eval_strategy="steps",
            eval_steps=4,
            max_grad_norm=0.05,
            disable_tqdm=True,
        )
        transformers.Trainer(
            model=model, args=arguments, train_dataset=rows, eval_dataset=rows, callbacks=callbacks
        ).train()
        return model

    callback = depthscope.trainer_callback(every=2)
    watched, plain = run([callback]), run([])
    assert [each.tolist() for each in watched.parameters()] == [each.tolist() for each in plain.parameters()]
    w = callback.watch
    assert w.profile.steps() == (0, 1, 2)
    assert {(each.silent, each.clipped, each.batch) for each in w.profile.conditions.values()} == {
        ("", True, 4 * accumulate)
    }
    assert w.num_steps == 4
    assert [step for step, _ in w.validations] == [4]
    assert not watched._forward_hooks


@pytest.mark.parametrize(
    ("make", "package"), [("lightning_callback", "lightning"), ("trainer_callback", "transformers")]
)
def test_what_is_not_installed_is_named(make: str, package: str, monkeypatch: pytest.MonkeyPatch) -> None:
    find = importlib.util.find_spec
    hidden = {"lightning", "pytorch_lightning", "transformers"}
    monkeypatch.setattr(importlib.util, "find_spec", lambda name, *rest: None if name in hidden else find(name, *rest))
    for name in [each for each in sys.modules if each.partition(".")[0] in hidden]:
        monkeypatch.delitem(sys.modules, name)

    class Hider:
        def find_spec(self, name: str, path: object = None, target: object = None) -> None:
            if name.partition(".")[0] in hidden:
                raise ModuleNotFoundError(f"No module named {name!r}", name=name)

    monkeypatch.setattr(sys, "meta_path", [Hider(), *sys.meta_path])
    with pytest.raises(MissingDependencyError, match=f"pip install {package}"):
        getattr(depthscope, make)()
