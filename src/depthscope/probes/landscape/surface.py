"""A model's loss at points of a plane through its weights.

Source: Li et al. 2018, arXiv 1712.09913.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from types import TracebackType
from typing import Any, Literal, Self

import torch
from torch import Tensor, nn

from depthscope.core.errors import UserError, shown
from depthscope.probes.copies import cast, copy_of, recast, restarted
from depthscope.probes.guard import as_found, undisturbed, unwrapped
from depthscope.probes.landscape.directions import Directions
from depthscope.probes.landscape.outputs import MeanOf, widened
from depthscope.probes.landscape.quick import Plain, quick
from depthscope.probes.landscape.renorm import reestimated
from depthscope.probes.landscape.still import Marks, may_compile, stays
from depthscope.probes.landscape.weights import Weights
from depthscope.probes.lesion import Judge
from depthscope.probes.measure.batch import read_batch
from depthscope.probes.measure.passes import told

Norm = Literal["eval", "batch"]
Precision = Literal["float32", "bfloat16", "float64"]


class Surface:
    """Figures of a model at points of the line or plane through its weights, over the same batches at every point.

    The point (a, b) has the weights w + a d_a + b d_b, summed in float64 and rounded once, so that (0, 0) is the model
    itself. A point's figures depend on its coordinates alone, whatever was asked before: buffers, attributes and
    generators begin each point as they began the first, and batches are cloned for a model that writes into them. The
    model runs in evaluation mode, without dropout, on a copy: the caller's is only read, when the surface is made.

    Batch norm, by `norm`:

    - `eval`: with the running statistics as found, at every point.
    - `batch`: with statistics of the point. One pass over all batches in evaluation mode but with the normalisers in
      train mode, so that each normalises by the batch's own statistics; the running mean and variance become the
      averages of the batches' means and (unbiased) variances, weighted by their numbers of entries a channel. A second
      pass, in evaluation mode with these, gives the figures. With one batch they are those of train mode, but for the
      variance's bias. Nothing of one point's statistics reaches another.

    Precision: `float32` and `float64` convert the copy; `bfloat16` keeps float32 weights and runs the model, but not
    the judge, under autocast; what it gives in 16 bits the judge gets in float32.

    Where `fast`, what is moved is a twin of the model with batch norms folded into the layers before them (under norm
    `eval`), channels last, and ReLUs in place, as far as it computes the same in float64 (`quick.quick`); in float32 it
    differs by rounding.

    Args:
        model: any module on whose copy `copy.deepcopy` succeeds.
        batches: what `probe` takes, on the model's device; (inputs, targets) as a rule. A batch weighs by its number of
            examples.
        judge: figures of an output and its targets, as means over the batch, or of another number of targets
            (`outputs.MeanOf`); `loss` among them as a rule.
        directions: see `directions.directions` and `trajectory_plane`.
        norm: see above.
        precision: see above.
        device: where to compute; where the model is if None.
        fast: see above.

    Raises:
        UserError: a batch does not fit the model, a direction's name or shape is not the model's, MPS was asked for
            float64, a precision or norm is unknown, or the model cannot be copied.
    """

    def __init__(
        self,
        model: nn.Module,
        batches: Sequence[Any],
        judge: Judge,
        directions: Directions,
        *,
        norm: Norm = "eval",
        precision: Precision = "float32",
        device: torch.device | str | None = None,
        fast: bool = True,
    ) -> None:
        if precision not in ("float32", "bfloat16", "float64") or norm not in ("eval", "batch"):
            raise UserError(
                "landscape: wanted precision float32, bfloat16 or float64, and norm eval or batch; "
                f"got {precision} and {norm}."
            )
        if not batches:
            raise UserError("landscape: batches: wanted one or more, got none.")
        model = unwrapped(model)
        self._dtype = torch.float64 if precision == "float64" else torch.float32
        self._norm, self._precision, self._judge = norm, precision, judge
        self.directions = directions
        self.device = torch.device(device) if device is not None else _home(model)
        if self.device.type == "mps" and precision == "float64":
            raise UserError("landscape: MPS has no float64. Wanted precision float32, or device cpu.")
        read = [replace(read_batch(each, model, with_loss=True), closed=True) for each in batches]
        with undisturbed(self.device):
            self._plain = recast(copy_of(model).to(self.device), self._dtype).eval()
            self._batches = [each.converted(self._converted) for each in read]
            weights = Weights(self._plain, directions)
            self._moved = Plain(copy_of(self._plain), weights)
            if fast:
                self._moved = quick(self._plain, weights, self._batches, fold=norm == "eval")
            self._batches = [each.converted(self._moved.lay_out) for each in self._batches]
            # What a pass leaves as it is need not be put back; under norm `batch` statistics are written.
            self._stays = norm == "eval" and self._has_no_state()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        return None

    def at(self, *coordinates: float) -> dict[str, float]:
        """Figures of the model at a point, means over all examples in float64; what is inf or nan stays so.

        Args:
            coordinates: one an axis.

        Raises:
            UserError: another number of coordinates than of axes; the model raised.
        """
        point = self._checked(coordinates)
        with undisturbed(self.device), torch.no_grad():
            self._moved.move(point)
            if self._stays and not may_compile():
                found = self._unguarded()
                if found is not None:
                    return found
                self._moved.move(point)
            with as_found(self._moved.model):
                return self._figures()

    def _unguarded(self) -> dict[str, float] | None:
        """Figures where the model stands; None, and it is put back, where it has changed itself after all."""
        marks, figures = Marks(self._moved.model), None
        try:
            figures = self._figures()
        finally:
            if figures is None or not marks.stand():  # some change themselves at some points alone
                figures, self._stays = None, False
                self._moved = self._moved.anew(self._plain)
        return figures

    def _figures(self) -> dict[str, float]:
        model, totals, nums = self._moved.model, dict[str, float](), dict[str, int]()
        restarted(self.device)
        if self._norm == "batch":
            with self._cast():
                reestimated(model, self._batches)
        for batch in self._batches:
            args, kwargs, _ = batch.fresh()
            with told(model, batch), self._cast():
                output = model(*args, **kwargs)
            for name, value in self._judge(widened(output), batch.fresh_targets()).items():
                num = value.num if isinstance(value, MeanOf) else batch.num_examples
                nums[name] = nums.get(name, 0) + num
                totals[name] = totals.get(name, 0.0) + (float(value) * num if num else 0.0)
        return {name: total / nums[name] if nums[name] else math.nan for name, total in totals.items()}

    @contextmanager
    def model_at(self, *coordinates: float, dtype: torch.dtype = torch.float64) -> Iterator[nn.Module]:
        """A copy of the model with the weights (and under norm `batch` the statistics) of a point.

        It is the caller's own to differentiate: in evaluation mode, its parameters require gradients as the model's do.

        Args:
            coordinates: one an axis.
            dtype: of the copy.
        """
        point = self._checked(coordinates)
        with undisturbed(self.device), torch.no_grad():
            copy = recast(copy_of(self._plain), dtype)
            Plain(copy, self._moved.weights).move(point)
            if self._norm == "batch":
                restarted(self.device)
                reestimated(copy, [each.converted(lambda tensor: cast(tensor, dtype)) for each in self._batches])
        yield copy

    def _has_no_state(self) -> bool:
        copy = copy_of(self._moved.model)
        args, kwargs, _ = self._batches[0].fresh()
        restarted(self.device)
        with torch.no_grad(), told(copy, self._batches[0]), self._cast():
            return stays(copy, lambda: copy(*args, **kwargs))

    def _checked(self, coordinates: Sequence[float]) -> tuple[float, ...]:
        if len(coordinates) != len(self.directions.axes):
            raise UserError(f"landscape: wanted {len(self.directions.axes)} coordinates, got {shown(coordinates)}.")
        return tuple(float(each) for each in coordinates)

    def _cast(self) -> Any:
        wanted = self._precision == "bfloat16"
        return torch.autocast(self.device.type, torch.bfloat16) if wanted else nullcontext()

    def _converted(self, tensor: Tensor) -> Tensor:
        return cast(tensor.detach().to(self.device), self._dtype)


def _home(model: nn.Module) -> torch.device:
    tensors = [*model.parameters(), *model.buffers()]
    return tensors[0].device if tensors else torch.device("cpu")
