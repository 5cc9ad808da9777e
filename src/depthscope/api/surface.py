"""A loss landscape as an object that shows itself."""

from __future__ import annotations

import html
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from depthscope.api.document import Document, pandas_for, strict, written
from depthscope.api.reports import check_lang
from depthscope.core.errors import UserError, unknown_name
from depthscope.record.landscape import MapRecord

if TYPE_CHECKING:
    import pandas

LANDSCAPE_SCHEMA = 1
"""Of `Landscape.document`: counted up when a field changes its meaning or goes."""


@dataclass(frozen=True, kw_only=True, repr=False)
class Landscape(Document):
    """A map of a model's loss around its weights.

    `print` tells it in words.

    Attributes:
        record: all that is kept of it.
        command: what makes it again.
    """

    json_indent: ClassVar[int | None] = None  # thousands of numbers, one below the other

    record: MapRecord
    command: str = "depthscope.landscape(model, data, loss_fn)"

    @property
    def loss(self) -> NDArray[np.float64]:
        """[b, a], or [a] of one axis: inf and NaN as they were found, NaN where a point is missing."""
        return self.record.loss

    @property
    def accuracy(self) -> NDArray[np.float64] | None:
        """Likewise, where targets are classes."""
        return self.record.accuracy

    @property
    def coordinates(self) -> tuple[float, ...]:
        """Of the points along each axis; the middle one is 0."""
        return self.record.grid.coordinates

    def __str__(self) -> str:
        from depthscope.report.landscape.page import told
        from depthscope.report.words import Words

        record = self.record
        missing = len(record.missing) + (len(record.hessian.missing) if record.hessian else 0)
        partial = [f"{missing:,} points are missing; the same call goes on."] if missing else []
        return "\n".join([self._first(), self._conditions(), *told(record, Words("en")), *self._figures(), *partial])

    def _first(self) -> str:
        spec, source = self.record.spec, self.record.head.source
        around = " x ".join([str(spec.points)] * spec.axes)
        examples = "1 example" if spec.examples == 1 else f"{spec.examples:,} examples"
        of = "" if source.kind == "object" else f" of {source.data}"  # the class of an object names no data
        return f"{source.model}: {around} points, {examples}{of}, loss {source.loss}"

    def _conditions(self) -> str:
        from depthscope.report.landscape.conditions import norm, way
        from depthscope.report.words import Words

        spec, facts, words = self.record.spec, self.record.head.facts, Words("en")
        cosine = f" (cosine {facts['cosine']:.2g})" if "cosine" in facts else ""
        told = [f"{way(self.record, words)}{cosine}", f"from -{spec.extent:g} to {spec.extent:g}"]
        told += [norm(self.record, words)] if facts.get("batch_norms") else []
        return f"{told[0][:1].upper()}{', '.join(told)[1:]}."

    def _figures(self) -> list[str]:
        from depthscope.analysis.landscape import map_figures

        found = map_figures(self.record)
        told = [
            words.format(found[name])
            for name, words in (
                ("landscape_roughness", "roughness {:.3g}"),
                ("landscape_rise", "rise {:.3g} orders of magnitude"),
            )
            if name in found
        ]
        return [f"{', '.join(told).capitalize()}."] if told else []

    def _repr_html_(self) -> str:
        try:
            picture = self.svg().decode()
        except UserError:  # no loss is finite, so that there is nothing to draw
            picture = ""
        return f"<div>{picture}<pre>{html.escape(str(self))}</pre></div>"

    def to_pandas(self) -> pandas.DataFrame:
        """A row a point: a, b (of two axes), loss, accuracy; and of the Hessian's points its eigenvalues.

        Raises:
            UserError: pandas is not installed.
        """
        made: Any = pandas_for("The same numbers: landscape.loss.")
        table: pandas.DataFrame = made.DataFrame(self._rows())
        return table

    def _rows(self) -> list[dict[str, float]]:
        record = self.record
        grids: list[tuple[Any, dict[str, NDArray[np.float64]]]] = [
            (record.grid, {"loss": record.loss, **({"accuracy": self.accuracy} if self.accuracy is not None else {})})
        ]
        if record.hessian is not None:
            of = record.hessian
            grids.append((of.grid, {"lambda_max": of.lambda_max, "lambda_min": of.lambda_min}))
        return [
            {**dict(zip("ab", grid.at(at), strict=False)), **{name: float(of.flat[at]) for name, of in arrays.items()}}
            for grid, arrays in grids
            for at in range(grid.size)
        ]

    def document(self) -> dict[str, Any]:
        """All of it as plain data that strict JSON holds. Numbers that are not finite are `nan`, `inf` and `-inf`."""
        record = self.record
        found: dict[str, Any] = {
            "schema": LANDSCAPE_SCHEMA,
            "depthscope": version("depthscope"),
            "command": self.command,
            "map": record.head.model_dump(mode="json"),
            "coordinates": self.coordinates,
            "loss": record.loss.tolist(),
            "accuracy": record.accuracy.tolist() if record.accuracy is not None else None,
            "missing": record.missing,
            "hessian": None,
        }
        if record.hessian is not None:
            of = record.hessian
            arrays = {name: getattr(of, name).tolist() for name in ("lambda_max", "lambda_min")}
            residuals = {name: getattr(of, name).tolist() for name in ("residual_max", "residual_min")}
            found["hessian"] = {"coordinates": of.grid.coordinates, **arrays, **residuals, "missing": of.missing}
        plain: dict[str, Any] = strict(found)
        return plain

    def page(self, path: str | Path | None = None, *, lang: str = "en") -> bytes:
        """One offline HTML file with the map, its values under the pointer; written too where a path is given.

        Raises:
            UserError: no such language; the file cannot be written.
        """
        from depthscope.report.landscape import render_landscape

        html = render_landscape(
            self.record,
            title=self.record.head.source.model,
            command=self.command,
            version=version("depthscope"),
            lang=check_lang(lang),
        )
        return written(html, path)

    def svg(self, path: str | Path | None = None, *, figure: str = "landscape", lang: str = "en") -> bytes:
        """The map as a picture; `figure="convexity"` is that of the Hessian's eigenvalues.

        Raises:
            UserError: no such figure or language; the file cannot be written.
        """
        from depthscope.report import svg

        return written(svg(self._figure(figure, lang)), path)

    def png(self, path: str | Path | None = None, *, figure: str = "landscape", lang: str = "en") -> bytes:
        """See `svg`."""
        from depthscope.report import png

        return written(png(self._figure(figure, lang)), path)

    def _figure(self, name: str, lang: str) -> Any:
        from depthscope.report.landscape import landscape_figures

        found = landscape_figures(self.record, title=self.record.head.source.model, lang=check_lang(lang))
        if name not in found:
            raise UserError(unknown_name("figure", name, found))
        return found[name]
