"""The Hessian of a model's mean loss as a linear map, by exact products with vectors.

Shape letters: P entries of all parameters asked for, in the order of `names`, each flattened.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.sparse.linalg import LinearOperator
from torch import Tensor, nn

from depthscope.core.errors import UserError, words_of
from depthscope.core.streams import stream
from depthscope.probes.copies import own_loss_fn
from depthscope.probes.curvature.replica import Replica
from depthscope.probes.guard import unwrapped
from depthscope.probes.measure.batch import Batch, read_batch
from depthscope.probes.measure.objective import LossFn, described

DTYPES: Mapping[torch.dtype, float] = MappingProxyType({torch.float64: 1e-6, torch.float32: 1e-2})
"""Those that it works in, and how far u^T H v and v^T H u may be apart in them, relative to |H u| + |H v|: far above
what rounding does, and far below what a wrong derivative did."""


@dataclass(frozen=True)
class _Graph:
    """A batch's loss and its gradient; where `keep`, with the graph behind them."""

    loss: float
    gradient: tuple[Tensor | None, ...]


class Hessian:
    """H = d^2 L / d theta^2, [P, P], of L, the mean loss over all examples of `batches`, by trainable parameters theta.

    A batch's loss is a mean over its examples; L is the mean of those, each weighed by its batch's number of examples,
    so that it does not matter how examples are put into batches (in batch norm's train mode, and for losses that
    weigh examples unevenly, it does). A product is exact up to rounding: the gradient of <dL/dtheta, v>. Parameters on
    which the loss does not depend have zero rows. A parameter that stands in several places counts once.

    It works on a copy, made when this is made; the model is left bitwise as found, after exceptions too. Dropout is
    off. What else a model draws is the same in each pass: see `draws`. Attention and weight norm run by plain
    operations, as the second derivatives of fused kernels are missing or wrong.

    Args:
        model: any; see `unwrapped`. In whatever mode.
        batches: each as `read_batch` takes them: (inputs, targets) and others.
        loss_fn: `(output, targets) -> loss`, a mean over the batch. None: the model's own `output.loss`.
        parameters: names; None for all that are trainable.
        train: batch norm takes each batch's own statistics, through which the gradient flows too, as in training;
            else those that it holds. All modules but dropout are in train mode then.
        dtype: float64 or float32 (faster on a GPU; residuals below 1e-6 of the greatest eigenvalue are rounding).

    Attributes:
        names: of the parameters.
        size: P.
        num_examples: of all batches.
        num_products: done so far.

    Raises:
        UserError: bad input, in one line; here or at the first product.

    >>> linear, x, y = nn.Linear(2, 1, bias=False), torch.tensor([[1.0, 0.0], [0.0, 3.0]]), torch.zeros(2, 1)
    >>> Hessian(linear, [(x, y)], nn.functional.mse_loss).matvec(np.array([1.0, 1.0])).tolist()  # 2/N X^T X v
    [1.0, 9.0]
    """

    def __init__(
        self,
        model: nn.Module,
        batches: Sequence[object],
        loss_fn: LossFn | None = None,
        *,
        parameters: Sequence[str] | None = None,
        train: bool = False,
        dtype: torch.dtype = torch.float64,
    ) -> None:
        if dtype not in DTYPES:
            raise UserError(f"curvature: dtype: wanted torch.float64 or torch.float32, got {dtype}.")
        check_mean(loss_fn, "curvature")
        inner = unwrapped(model)
        self._replica = Replica(inner, train=train, dtype=dtype)
        self._batches = [self._read(each, inner, with_loss=loss_fn is not None) for each in batches]
        if not self._batches:
            raise UserError("curvature: batches: wanted one or more, got none.")
        self._loss_fn = own_loss_fn(loss_fn, self._replica.device, dtype)
        self._parameters = self._replica.selected(parameters)
        self.names = tuple(self._parameters)
        self.size = sum(each.numel() for each in self._parameters.values())
        self.num_examples = sum(each.num_examples for each in self._batches)
        self.num_products = 0
        self._draws = False
        self._kept: _Graph | None = None

    @property
    def draws(self) -> bool:
        """The model or the loss drew random numbers in a pass, dropout aside: the Hessian is that of these draws."""
        return self._draws

    def loss(self) -> float:
        """L."""
        total = 0.0
        for at, weight in enumerate(self._weights()):
            with self._replica.running(at):
                total += weight * self._graph(at).loss
        return total

    def gradient(self) -> NDArray[np.float64]:
        """dL/dtheta, [P]."""
        total = np.zeros(self.size)
        for at, weight in enumerate(self._weights()):
            with self._replica.running(at):
                total += weight * self._flat(self._graph(at).gradient)
        return total

    def matvec(self, v: NDArray[np.float64]) -> NDArray[np.float64]:
        """H v, [P]; v is [P]. All nan where the loss is not finite.

        Raises:
            UserError: another shape; the model fails, or an operation in it has no second derivative.
        """
        if v.shape != (self.size,):
            raise UserError(f"curvature: wanted a vector of {self.size} entries, got shape {list(v.shape)}.")
        self.num_products += 1
        flat, parts = torch.tensor(v, dtype=self._replica.dtype, device=self._replica.device), []
        for each in self._parameters.values():
            parts.append(flat[: each.numel()].view_as(each))
            flat = flat[each.numel() :]
        total = np.zeros(self.size)
        for at, weight in enumerate(self._weights()):
            with self._replica.running(at):
                graph = self._graph(at)
                # A squared error has a finite second derivative even where it is infinite itself.
                total += weight * (self._flat(self._product(graph, parts)) if math.isfinite(graph.loss) else math.nan)
        return total

    def check_symmetric(self) -> None:
        """See by two products with random vectors that the second derivative is one: that H is symmetric.

        Raises:
            UserError: it is not; or see `matvec`.
        """
        u, v = (stream(0, "probe", "curvature", "symmetric", at).standard_normal(self.size) for at in range(2))
        of_u, of_v = self.matvec(u), self.matvec(v)
        one, other = float(v @ of_u), float(u @ of_v)
        allowed = DTYPES[self._replica.dtype] * float(np.linalg.norm(of_u) + np.linalg.norm(of_v))
        if abs(one - other) > allowed:  # not where they are nan
            raise UserError(
                f"curvature: the Hessian comes out unsymmetric: u^T H v is {other:.6g} and v^T H u {one:.6g} of two "
                "random vectors, so that the second derivative of some operation is wrong: a fused kernel, or an "
                "autograd.Function whose backward is no derivative. Replace it by plain operations."
            )

    def linear_operator(self) -> LinearOperator:
        """The same for SciPy and whatever takes its operators."""
        return LinearOperator(
            (self.size, self.size),
            matvec=lambda v: self.matvec(np.asarray(v, dtype=np.float64).ravel()),
            rmatvec=lambda v: self.matvec(np.asarray(v, dtype=np.float64).ravel()),
            dtype=np.float64,
        )

    def _weights(self) -> list[float]:
        return [each.num_examples / self.num_examples for each in self._batches]

    def _read(self, batch: object, inner: nn.Module, *, with_loss: bool) -> Batch:
        try:
            read = read_batch(batch, inner, with_loss=with_loss)
        except UserError as error:
            raise UserError(str(error).replace("probe:", "curvature:", 1)) from error
        # The inputs need no gradient.
        return replace(read.converted(self._replica.lay_out), closed=True)

    def _graph(self, at: int) -> _Graph:
        """The first derivative of a batch's loss, ready to be differentiated.

        Of a single batch it is kept: each product holds it in memory in any case, and half of its time is saved.
        """
        if self._kept is not None:
            return self._kept
        batch = self._batches[at]
        before = self._replica.generator_states()
        args, kwargs, _ = batch.fresh()
        try:
            output = self._replica.model(*args, **kwargs)
        except UserError:
            raise
        except Exception as error:
            raise UserError(self._failed("the model", error, batch.described())) from error
        loss = self._mean_loss(output, batch.fresh_targets())
        self._draws |= self._replica.generator_states() != before
        gradient = self._differentiated((loss,), None, create_graph=True, keep=True)
        found = _Graph(loss.item(), gradient)
        if len(self._batches) == 1:
            self._kept = found
        return found

    def _mean_loss(self, output: Any, targets: Any) -> Tensor:
        if self._loss_fn is None:
            loss = output.get("loss") if hasattr(output, "get") else getattr(output, "loss", None)
            if not isinstance(loss, Tensor):
                raise UserError("curvature: the model gives no loss of its own: give loss_fn(output, targets).")
        else:
            try:
                loss = self._loss_fn(output, targets)
            except UserError:
                raise
            except Exception as error:
                given = f"the output {described(output)} and the targets {described(targets)}"
                raise UserError(self._failed("loss_fn", error, given)) from error
        if not isinstance(loss, Tensor) or loss.numel() != 1:
            what = f"shape {list(loss.shape)}" if isinstance(loss, Tensor) else type(loss).__name__
            raise UserError(f"curvature: the loss: wanted a tensor of one number, the mean over the batch; got {what}.")
        if not loss.requires_grad:
            raise UserError(
                "curvature: the loss does not depend on the model's parameters, so that it has no curvature. Was it "
                "detached, or computed under no_grad?"
            )
        return loss.reshape(())

    def _product(self, graph: _Graph, v: Sequence[Tensor]) -> tuple[Tensor | None, ...]:
        # What is affine in a parameter has a gradient that depends on nothing.
        bent = [
            (each, part)
            for each, part in zip(graph.gradient, v, strict=True)
            if each is not None and each.requires_grad
        ]
        if not bent:
            return (None,) * len(self._parameters)
        outputs, parts = zip(*bent, strict=True)
        return self._differentiated(outputs, parts, create_graph=False, keep=graph is self._kept)

    def _differentiated(
        self, outputs: Sequence[Any], v: Sequence[Tensor] | None, *, create_graph: bool, keep: bool
    ) -> tuple[Tensor | None, ...]:
        try:
            return torch.autograd.grad(
                outputs,
                tuple(self._parameters.values()),
                v,
                create_graph=create_graph,
                retain_graph=keep,
                allow_unused=True,
            )
        except (RuntimeError, NotImplementedError) as error:
            if isinstance(error, torch.cuda.OutOfMemoryError):
                raise
            raise UserError(
                f"curvature: the loss cannot be differentiated twice: {words_of(error)}. A fused kernel of the "
                "model's own, or a reentrant activation checkpoint, must be replaced by plain operations for that."
            ) from error

    def _flat(self, parts: Sequence[Tensor | None]) -> NDArray[np.float64]:
        pieces = [
            np.zeros(parameter.numel()) if part is None else part.detach().reshape(-1).double().cpu().numpy()
            for part, parameter in zip(parts, self._parameters.values(), strict=True)
        ]
        return np.concatenate(pieces)

    def _failed(self, what: str, error: BaseException, given: str) -> str:
        dtype = str(self._replica.dtype).removeprefix("torch.")
        return (
            f"curvature: {what} raised {type(error).__name__}: {words_of(error)}; it was given {given}. It runs in "
            f"{dtype}: a dtype that it names itself may be at fault."
        )


def check_mean(loss_fn: object, verb: str) -> None:
    """See that a loss says of itself no other reduction than a mean. What a function does cannot be seen.

    Raises:
        UserError: a module whose reduction is another.
    """
    reduction = getattr(loss_fn, "reduction", "mean")
    if isinstance(loss_fn, nn.Module) and reduction not in ("mean", "batchmean"):
        raise UserError(
            f"{verb}: loss_fn: wanted a mean over the batch, got {type(loss_fn).__name__} of reduction {reduction!r}. "
            "Give it reduction='mean'."
        )
