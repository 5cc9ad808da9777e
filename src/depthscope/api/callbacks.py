"""`depthscope.watch` for those who leave the loop to Lightning or to Hugging Face's Trainer.

Both libraries are imported when a callback is made, and only the one that it is for.
"""

from __future__ import annotations

import importlib
import importlib.util
import sys
from typing import TYPE_CHECKING, Any

from depthscope.api.watch import Watch, watch
from depthscope.core.errors import MissingDependencyError, UserError, unknown_name

if TYPE_CHECKING:
    from torch import nn


def lightning_callback(every: int = 100, *, module: str = "", validation: str = "val_loss", **options: Any) -> Any:
    """A Lightning `Callback` that watches `Trainer.fit`: `Trainer(callbacks=[lightning_callback()])`.

    Its attribute `watch` is the `Watch` of the fit under way or of the last. Optimisers and the precision
    plugin's scaler are the Trainer's. Written is to the Trainer's own loggers, or to `writer`.

    Args:
        every: see `watch`.
        module: name of the submodule to watch, the one whose forward pass `training_step` calls. By default the
            LightningModule itself where it defines `forward`, else its only child that has parameters.
        validation: which of the Trainer's metrics is the validation loss.
        options: further arguments of `watch`.

    Raises:
        MissingDependencyError: Lightning is not installed.
    """
    base = _lightning().Callback

    class DepthscopeCallback(base):  # type: ignore[misc, valid-type]
        """See `lightning_callback`."""

        watch: Watch | None = None

        def __repr__(self) -> str:
            return _named("lightning_callback", every, self.watch)

        def on_train_start(self, trainer: Any, pl_module: Any) -> None:
            scaler = getattr(trainer.precision_plugin, "scaler", None)
            self.watch = watch(
                _submodule(pl_module, module),
                list(trainer.optimizers) or None,
                every,
                **{"writer": list(trainer.loggers), "scaler": scaler, "first_step": trainer.global_step, **options},
            )
            self.watch.start()

        def on_train_batch_end(self, trainer: Any, pl_module: Any, outputs: Any, batch: Any, batch_idx: int) -> None:
            loss = outputs.get("loss") if isinstance(outputs, dict) else outputs
            if self.watch is not None and loss is not None and loss.numel() == 1:
                self.watch.loss(loss)

        def on_validation_end(self, trainer: Any, pl_module: Any) -> None:
            value = trainer.callback_metrics.get(validation)
            if self.watch is not None and value is not None and not trainer.sanity_checking:
                self.watch.validation(value)

        def on_train_end(self, trainer: Any, pl_module: Any) -> None:
            self._stop()

        def on_exception(self, trainer: Any, pl_module: Any, exception: BaseException) -> None:
            self._stop()

        def teardown(self, trainer: Any, pl_module: Any, stage: str) -> None:
            self._stop()

        def _stop(self) -> None:
            if self.watch is not None:
                self.watch.stop()

    return DepthscopeCallback()


def trainer_callback(every: int = 100, **options: Any) -> Any:
    """A Hugging Face `TrainerCallback` that watches `Trainer.train`: `Trainer(..., callbacks=[trainer_callback()])`.

    Its attribute `watch` is the `Watch` of the training under way or of the last. The model, the optimiser and both
    losses, as the Trainer logs them, are the Trainer's. The Trainer tells its callbacks of no exception: call
    `callback.stop()` after one, to take the hooks away.

    Args:
        every: see `watch`.
        options: further arguments of `watch`, such as `writer`.

    Raises:
        MissingDependencyError: transformers is not installed.
    """
    base = _module("transformers", "trainer_callback").TrainerCallback

    class DepthscopeCallback(base):  # type: ignore[misc, valid-type]
        """See `trainer_callback`."""

        watch: Watch | None = None

        def __repr__(self) -> str:
            return _named("trainer_callback", every, self.watch)

        def on_train_begin(self, args: Any, state: Any, control: Any, **given: Any) -> None:
            self.stop()
            self.watch = watch(
                given["model"], given.get("optimizer"), every, **{"first_step": state.global_step, **options}
            )
            self.watch.start()

        def on_log(self, args: Any, state: Any, control: Any, logs: Any = None, **given: Any) -> None:
            if self.watch is not None and "loss" in (logs or {}):
                self.watch.loss(float(logs["loss"]))

        def on_evaluate(self, args: Any, state: Any, control: Any, metrics: Any = None, **given: Any) -> None:
            if self.watch is not None and "eval_loss" in (metrics or {}):
                self.watch.validation(float(metrics["eval_loss"]))

        def on_train_end(self, args: Any, state: Any, control: Any, **given: Any) -> None:
            self.stop()

        def stop(self) -> None:
            """End the watch and take its hooks away."""
            if self.watch is not None:
                self.watch.stop()

    return DepthscopeCallback()


def _named(maker: str, every: int, watch: Watch | None) -> str:
    return f"depthscope.{maker}(every={every}){'' if watch is None else f': {watch!r}'}"


def _lightning() -> Any:
    """The Lightning that the program uses already: its two names are two packages with two `Callback` classes."""
    loaded = [name for name in ("lightning", "pytorch_lightning") if name in sys.modules]
    found = [name for name in ("lightning", "pytorch_lightning") if importlib.util.find_spec(name)]
    if not found:
        raise MissingDependencyError("lightning_callback: Lightning is not installed: pip install lightning.")
    name = (loaded or found)[0]
    return _module(name, "pytorch") if name == "lightning" else _module(name)


def _module(package: str, part: str = "") -> Any:
    try:
        return importlib.import_module(f"{package}.{part}" if part else package)
    except ModuleNotFoundError as error:
        raise MissingDependencyError(
            f"{'trainer_callback' if package == 'transformers' else 'lightning_callback'}: {error.name} is not "
            f"installed: pip install {package}."
        ) from error


def _submodule(pl_module: nn.Module, name: str) -> nn.Module:
    from torch import nn

    if name:
        try:
            return pl_module.get_submodule(name)
        except AttributeError:
            known = [each for each, _ in pl_module.named_modules() if each]
            raise UserError(f"lightning_callback: {unknown_name('module', name, known)}") from None
    base = next(each for each in type(pl_module).__mro__ if each.__name__ == "LightningModule")
    if getattr(type(pl_module), "forward", None) not in (getattr(base, "forward", None), nn.Module.forward):
        return pl_module
    children = [each for each in pl_module.children() if any(True for _ in each.parameters())]
    return children[0] if len(children) == 1 else pl_module
