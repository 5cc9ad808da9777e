"""What a network that reads sequences cannot have, of fields that are each valid."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from depthscope.study.catalog import CATALOG


def sequence_faults(values: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """(field to mend, what is wrong).

    Args:
        values: the valid fields of a run; a rule over one that is absent is passed over.
    """
    entry = CATALOG["family"].get(str(values.get("family")))
    if entry is None or "model_options" not in values:
        return
    options = {**entry.options, **values["model_options"]}
    if "heads" in options and "width" in values:
        yield from _heads_faults(options["heads"], values["width"])
    # Data that the family does not take is a fault of its own.
    if "readout" in options and values.get("data") in entry.accepts["data"]:
        yield from _readout_faults(options["readout"], values["data"])
    yield from _idle_faults(options, entry.options, values)


def _heads_faults(heads: int, width: int) -> Iterator[tuple[str, str]]:
    if width % heads:
        mend = f"Choose a divisor of {width} for heads, or a width that {heads} divides."
        yield "model_options.heads", f"{heads} heads do not divide a width of {width}. {mend}"


def _readout_faults(readout: str, data: str) -> Iterator[tuple[str, str]]:
    by_position = CATALOG["data"][data].by_position
    wanted = "each" if by_position else "last"
    if readout != wanted:
        asks = "an answer at each step" if by_position else "one answer, at the end"
        yield "model_options.readout", f"data {data!r} asks for {asks}; wanted {wanted!r}, got {readout!r}."


def _idle_faults(
    options: Mapping[str, Any], defaults: Mapping[str, Any], values: Mapping[str, Any]
) -> Iterator[tuple[str, str]]:
    """Of options that would change nothing."""
    forgets = options.get("cell", "lstm") == "lstm"
    if not forgets and options["forget_bias"] != defaults["forget_bias"]:
        yield "model_options.forget_bias", f"is of cell 'lstm' alone, not of {options['cell']!r}; leave it away."
    if values.get("norm") == "none":
        for name in ("placement", "norm_embedding", "norm_end"):
            if name in options and options[name] != defaults[name]:
                yield f"model_options.{name}", "there is no normaliser to place with norm 'none'; leave it away."
    elif options.get("placement") == "post" and not options["norm_end"]:
        yield "model_options.norm_end", "is of placement 'pre' alone, not of 'post'; leave it away."
