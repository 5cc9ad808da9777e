"""Curvature of any PyTorch model's loss, in one object that shows itself."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Collection
from dataclasses import dataclass
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

from depthscope.api.document import Document, pandas_for, strict
from depthscope.core.errors import MissingDependencyError, UserError, shown, unknown_name
from depthscope.train.usercode import TORCH_MISSING

if TYPE_CHECKING:
    import pandas
    from torch import nn

    from depthscope.probes.curvature import Density, Extremes, Trace

CURVATURE_SCHEMA = 1
"""Of `Curvature.document`: counted up when a field changes its meaning or goes."""
IN_PYTHON = "depthscope.curvature(model, data, loss_fn)"
PARTS = ("extremes", "trace", "density")
NORMS = ("eval", "batch")
PRECISIONS = ("float64", "float32")
NEAR = 0.01
"""Eigenvalues of at most this part of the greatest size count as near 0."""


@dataclass(frozen=True, kw_only=True, repr=False)
class Curvature(Document):
    """What the Hessian of a model's mean loss is like where the model stands.

    `print` shows it.

    Attributes:
        name: of the model's class, or its factory.
        loss: mean over the examples.
        gradient_norm: |dL/dtheta|.
        extremes: largest and smallest eigenvalue; None where not asked for, as the following.
        trace: with its standard error.
        density: of the eigenvalues; None also where the loss is not finite.
        num_parameters: entries of all trainable parameters.
        num_examples: that the loss is the mean of.
        num_products: products with the Hessian, of all parts together.
        norm: `eval` or `batch`.
        precision: float64 or float32.
        notes: what to know about the figures.
        command: what repeats it.
    """

    name: str
    loss: float
    gradient_norm: float
    extremes: Extremes | None
    trace: Trace | None
    density: Density | None
    num_parameters: int
    num_examples: int
    num_products: int
    norm: str
    precision: str
    notes: tuple[str, ...] = ()
    command: str = IN_PYTHON

    @property
    def largest(self) -> float:
        """Largest eigenvalue; nan where not asked for."""
        return self.extremes.largest if self.extremes else math.nan

    @property
    def smallest(self) -> float:
        """Smallest eigenvalue, the most negative one where one is negative; nan where not asked for."""
        return self.extremes.smallest if self.extremes else math.nan

    def rows(self) -> list[tuple[str, float, float, str]]:
        """Quantity, value, and how far off it may be: nan, or a number of the kind that is named behind it."""
        found = [("loss", self.loss, math.nan, ""), ("gradient_norm", self.gradient_norm, math.nan, "")]
        if self.extremes:
            ends = self.extremes
            found += [
                ("largest", ends.largest, ends.residual_largest, "residual"),
                ("smallest", ends.smallest, ends.residual_smallest, "residual"),
            ]
        if self.trace:
            found.append(("trace", self.trace.value, self.trace.standard_error, "standard error"))
        if self.density:
            near = NEAR * max(abs(float(self.density.values[0])), abs(float(self.density.values[-1])))
            below = self.density.share(high=-near) if near else 0.0
            found += [
                ("share_below", below, math.nan, ""),
                ("share_near_zero", self.density.share(-near, near), math.nan, ""),
            ]
        return found

    def __str__(self) -> str:
        lines = [f"{self.name}: curvature of the loss, {self.num_parameters:,} parameters, {_examples(self)}"]
        for quantity, value, off, kind in self.rows():
            exact = kind == "standard error" and self.trace is not None and self.trace.exact
            behind = "  exact" if exact else f"  ± {off:.2g}  {_KINDS[kind]}" if kind else ""
            lines.append(f"  {_WORDS[quantity]:<32}{worth(value, off):>12}{behind}")
        lines.append(f"{self.num_products:,} products with the Hessian, in {self.precision}.")
        return "\n".join([*lines, *self.notes])

    def to_pandas(self) -> pandas.DataFrame:
        """A row a quantity: quantity, value, uncertainty, kind (`residual` or `standard error`).

        Raises:
            UserError: pandas is not installed.
        """
        made: Any = pandas_for("The same rows: curvature.rows().")
        table: pandas.DataFrame = made.DataFrame(self.rows(), columns=["quantity", "value", "uncertainty", "kind"])
        return table

    def document(self) -> dict[str, Any]:
        """All of it, but for eigenvectors, as plain data that strict JSON holds."""
        parts: dict[str, Any] = dict.fromkeys(PARTS)
        if self.extremes:
            ends = dataclasses.asdict(self.extremes)
            parts["extremes"] = {name: each for name, each in ends.items() if not name.endswith("_vector")}
        if self.trace:
            parts["trace"] = dataclasses.asdict(self.trace)
        if self.density:
            held = dataclasses.asdict(self.density)
            parts["density"] = {**held, "values": held["values"].tolist(), "weights": held["weights"].tolist()}
        own = {
            each.name: getattr(self, each.name)
            for each in dataclasses.fields(self)
            if each.name not in (*PARTS, "name")
        }
        head = {"schema": CURVATURE_SCHEMA, "depthscope": version("depthscope"), "model": self.name}
        found: dict[str, Any] = strict({**head, **own, **parts})
        return found


def curvature(
    model: nn.Module | str,
    data: Any = None,
    loss_fn: Any = None,
    *,
    what: Collection[str] = ("extremes", "trace"),
    examples: int = 512,
    batch_size: int = 128,
    norm: str = "eval",
    precision: str = "float64",
    tol: float = 1e-4,
    samples: int = 60,
    seed: int = 0,
    device: str | None = None,
    progress: Callable[[str, int], None] | None = None,
    command: str = "",
) -> Curvature:
    """Both ends of the Hessian's spectrum by value, its trace and its density; the model stays bitwise as found.

    Args:
        model: a module; or `package.module:factory`, which gives one, or (model, data).
        data: examples, see `train.examples.first_examples`; of a factory `package.module:function`, or None where the
            factory gives them.
        loss_fn: `(output, targets) -> loss`, a mean over the batch; `cross_entropy`, `mse` or
            `package.module:function`. None: the model's own `output.loss`.
        what: any of `extremes`, `trace`, `density`.
        examples: the first so many of the data, or all where there are fewer.
        batch_size: examples whose graph is held in memory at a time. All at once takes half of the time.
        norm: batch norm: `eval`, by the statistics that it holds; `batch`, by each batch's own, as in training.
        precision: `float64`, or `float32`: about four times as fast, with residuals of 1e-6 of the greatest eigenvalue.
        tol: of the eigenvalues, relative to the spread of the spectrum.
        samples: products that the trace may take.
        seed: of random vectors.
        device: of a factory: auto, cpu, cuda or mps; None: where it puts the model.
        progress: hears the part and how many products it has had.
        command: what repeats it.

    Raises:
        UserError: bad input, in one line.

    >>> import depthscope, torch
    >>> net = torch.nn.Linear(2, 1, bias=False)
    >>> x, y = torch.tensor([[1.0, 0.0], [0.0, 3.0]]), torch.zeros(2, 1)
    >>> found = depthscope.curvature(net, (x, y), "mse")  # H = 2/N X^T X
    >>> round(found.smallest, 9), round(found.largest, 9), found.trace.value
    (1.0, 9.0, 10.0)
    """
    asked = _checked(what, examples, batch_size, norm, precision)
    try:
        import torch

        from depthscope.api.curved import material, notes_on
        from depthscope.probes.curvature import Hessian, density, extremes, trace
    except ModuleNotFoundError as error:
        if error.name != "torch":
            raise
        raise MissingDependencyError(TORCH_MISSING.replace("this study", "`curvature`")) from error
    name, module, batches, loss = material(model, data, loss_fn, examples, batch_size, device)
    hessian = Hessian(module, batches, loss, train=norm == "batch", dtype=getattr(torch, precision))
    value, gradient = hessian.loss(), hessian.gradient()
    hessian.check_symmetric()
    heard = _Heard(hessian, progress)
    parts: dict[str, Any] = dict.fromkeys(PARTS)
    if "extremes" in asked:
        parts["extremes"] = extremes(heard.of("extremes"), tol=tol, seed=seed)
    if "trace" in asked:
        parts["trace"] = trace(heard.of("trace"), samples=samples, seed=seed)
    if "density" in asked and math.isfinite(value):
        parts["density"] = density(heard.of("density"), seed=seed)
    return Curvature(
        name=name,
        loss=value,
        gradient_norm=float((gradient**2).sum() ** 0.5),
        extremes=parts["extremes"],
        trace=parts["trace"],
        density=parts["density"],
        num_parameters=hessian.size,
        num_examples=hessian.num_examples,
        num_products=hessian.num_products,
        norm=norm,
        precision=precision,
        notes=notes_on(module, value, norm=norm, draws=hessian.draws),
        command=command or IN_PYTHON,
    )


def _checked(what: Collection[str], examples: int, batch_size: int, norm: str, precision: str) -> set[str]:
    asked = {what} if isinstance(what, str) else set(what)
    for each in asked:
        if each not in PARTS:
            raise UserError(f"curvature: what: {unknown_name('part', each, PARTS)}")
    if not asked:
        raise UserError(f"curvature: what: wanted one or more of {', '.join(PARTS)}; got none.")
    for option, number in (("examples", examples), ("batch_size", batch_size)):
        if number < 1:
            raise UserError(f"curvature: {option}: wanted 1 or more, got {shown(number)}.")
    for option, name, known in (("norm", norm, NORMS), ("precision", precision, PRECISIONS)):
        if name not in known:
            raise UserError(f"curvature: {option}: {unknown_name(option, name, known)}")
    return asked


class _Heard:
    """A Hessian whose products are told."""

    def __init__(self, hessian: Any, progress: Callable[[str, int], None] | None) -> None:
        self._hessian, self._progress = hessian, progress
        self.size: int = hessian.size
        self._part, self._num = "", 0

    def of(self, part: str) -> _Heard:
        self._part, self._num = part, 0
        return self

    def matvec(self, v: Any) -> Any:
        found = self._hessian.matvec(v)
        self._num += 1
        if self._progress is not None:
            self._progress(self._part, self._num)
        return found


_WORDS = {
    "loss": "loss",
    "gradient_norm": "|gradient|",
    "largest": "largest eigenvalue",
    "smallest": "smallest eigenvalue",
    "trace": "trace",
    "share_below": "share below -1% of the largest",
    "share_near_zero": "share within 1% of 0",
}
_KINDS = {"residual": "residual |Hv - lambda v|", "standard error": "standard error"}


def _examples(found: Curvature) -> str:
    return "1 example" if found.num_examples == 1 else f"{found.num_examples:,} examples"


def worth(value: float, off: float) -> str:
    """A value with the digits that its uncertainty leaves, six at most.

    >>> worth(-0.000891, 1.3e-5), worth(0.355483, 2.9e-6), worth(1.06412, 0.096), worth(3e-7, 1e-5), worth(12345.6, 30)
    ('-0.00089', '0.355483', '1.06', '3e-07', '12350')
    """
    if not math.isfinite(value) or not math.isfinite(off) or off <= 0 or value == 0:
        return f"{value:.6g}"
    first = math.floor(math.log10(abs(value)))
    digits = min(max(first - math.floor(math.log10(off)) + 1, 1), 6)
    if not 1e-4 <= abs(value) < 1e6:
        return f"{value:.{digits - 1}e}"
    decimals = digits - 1 - first
    return f"{round(value, decimals):.{max(decimals, 0)}f}"
