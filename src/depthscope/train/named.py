"""Models, data and losses of the user's own by name, `package.module:function`, as objects."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.utils.data import Dataset

from depthscope.core.errors import UserError, shown, unknown_name
from depthscope.study.catalog import is_user_code
from depthscope.train.build import choose_device
from depthscope.train.usercode import asked_to_end, kept_cwd, resolve, takes, told
from depthscope.train.variants.generators import seed_all

LOSSES = ("cross_entropy", "mse")
Loss = Callable[[Any, Any], Tensor]


def called(target: str, option: str, **arguments: Any) -> Any:
    """What a function of the user's gives; an object that is no function, as it is.

    Raises:
        UserError: no such name, or the function raised.
    """
    if not is_user_code(target):
        raise UserError(f"{option}: wanted package.module:function, got {shown(target)}.")
    with kept_cwd():
        found = resolve(target)
        if isinstance(found, nn.Module):
            return found
        _check_arguments(target, found, arguments)
        try:
            return found(**arguments)
        except BaseException as error:
            if asked_to_end(error):
                raise
            raise UserError(f"{target}: raised {told(error)}") from error


def _check_arguments(target: str, function: Any, arguments: Mapping[str, Any]) -> None:
    """Refuse a function that wants more than it is given.

    Raises:
        UserError: it does.
    """
    try:
        signature = inspect.signature(function)
        signature.bind(**arguments)
    except ValueError:  # none to be read
        return
    except TypeError as error:
        raise UserError(
            f"{target}: wanted a function without arguments, got {target.partition(':')[2]}{signature}. Give its "
            "arguments defaults, or wrap it in a def."
        ) from error


def built(target: str, device: str | None = None) -> tuple[nn.Module, Any]:
    """A model from its factory, and the batch that it may give beside it.

    The global generators are put at the start of a named stream before, so that a verdict repeats.

    Raises:
        UserError: no such name, the factory raised, or it gives no model.
    """
    seed_all(0, "init", "probe")
    return _model(target, device)


def fresh(target: str, device: str | None) -> nn.Module:
    """A model from its factory, with the generators as they are.

    Raises:
        UserError: as for `built`.
    """
    return _model(target, device)[0]


def _model(target: str, device: str | None) -> tuple[nn.Module, Any]:
    found = called(target, "the model")
    model, batch = found if isinstance(found, tuple) and len(found) == 2 else (found, None)
    if not isinstance(model, nn.Module):
        raise UserError(f"{target}: gives {shown(model)}; wanted a torch.nn.Module, or (module, batch).")
    return (model if device is None else model.to(choose_device(device))), batch


def moved(value: Any, model: nn.Module) -> Any:
    """A batch with its tensors where the model lies."""
    home = next((each.device for each in (*model.parameters(), *model.buffers())), torch.device("cpu"))
    if isinstance(value, Tensor):
        return value.to(home)
    if isinstance(value, Mapping):
        return {name: moved(item, model) for name, item in value.items()}
    if type(value) in (tuple, list):
        return type(value)(moved(item, model) for item in value)
    return value


def data_named(target: str) -> Any:
    """Data of the user's own, in whatever form they come; a function of the seed gets 0.

    Raises:
        UserError: no such name, the function raised, or gives nothing that data could be.
    """
    seeded = is_user_code(target) and takes(target, "seed")
    found = called(target, "--data", **({"seed": 0} if seeded else {}))
    if not isinstance(found, Dataset | Iterable):
        raise UserError(f"{target}: gives {shown(found)}; wanted a batch, a Dataset, a DataLoader or batches.")
    return found


def loss_named(name: str) -> Loss:
    """A loss by name, or of the user's own.

    Raises:
        UserError: no such name.
    """
    if name == "cross_entropy":
        return cross_entropy
    if name == "mse":
        return mse
    if is_user_code(name):
        return resolve(name)
    raise UserError(f"the loss: {unknown_name('loss', name, LOSSES)} One of your own is package.module:function.")


def cross_entropy(output: Any, targets: Tensor) -> Tensor:
    """Of scores [B, K] or [B, K, ...], or of sequences [B, T, K] with targets [B, T]."""
    scores = scores_of(output)
    if scores.ndim > 2 and targets.shape == scores.shape[:-1]:
        return functional.cross_entropy(scores.flatten(0, -2), targets.flatten())
    return functional.cross_entropy(scores, targets)


def mse(output: Any, targets: Tensor) -> Tensor:
    """Mean squared error, of equal shapes."""
    scores = scores_of(output)
    if scores.shape != targets.shape:
        raise UserError(
            f"the loss mse: the output has shape {tuple(scores.shape)}, the targets {tuple(targets.shape)}; wanted "
            "equal ones."
        )
    return functional.mse_loss(scores, targets)


def scores_of(output: Any) -> Tensor:
    """The scores in what a model gave: itself, or its `logits`.

    Raises:
        UserError: it has none.
    """
    found = output if isinstance(output, Tensor) else getattr(output, "logits", None)
    if found is None and isinstance(output, Mapping):
        found = output.get("logits")
    if not isinstance(found, Tensor):
        raise UserError(
            f"the loss: the model gives {shown(type(output).__name__)}, neither a tensor nor something with logits; "
            "name a loss of your own, package.module:function."
        )
    return found
