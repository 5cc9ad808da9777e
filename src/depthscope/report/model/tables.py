"""The tables and facts of one model's page."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from typing import Any

from depthscope.analysis.model.expected import Expected
from depthscope.core.readings import Conditions, ModelProfile
from depthscope.report.model.pictures import Shown
from depthscope.report.model.places import contents, figure
from depthscope.report.numbers import number
from depthscope.report.words import Words


def block_table(shown: Shown, words: Words) -> dict[str, Any]:
    """A row a block: what is in it and what was measured at its end; rows that the verdict names first to be seen."""
    profile = shown.profile
    structure = profile.structure
    columns: list[tuple[str, Mapping[str, float], str]] = [
        ("|h|", profile.values("boundary", "norm"), "end"),
        ("|dL/dh|", profile.values("boundary", "grad_norm"), "end"),
        (words("reading.grad_multiplier"), profile.values("block", "grad_multiplier"), "block"),
        (words("model.expected"), _values(shown.expectation.multipliers), "block"),
        ("|F|/|x|", profile.values("addition", "residual_ratio"), "addition"),
        (words("model.expected"), _values(shown.expectation.ratios), "addition"),
        (words("model.cosine"), profile.values("addition", "cosine"), "addition"),
    ]
    columns = [column for column in columns if column[1]]
    flags = _flags(shown, words)
    rows = []
    for block in structure.blocks:
        keys = {
            "end": [structure.boundaries[block.index + 1].name],
            "block": [block.name],
            "addition": [structure.additions[index].name for index in block.additions],
        }
        cells = [_cell([values.get(key) for key in keys[kind]], words) for _, values, kind in columns]
        flagged = flags.get(block.name, [])
        rows.append(
            {
                "name": block.name,
                "role": "" if block.role == "body" else words(f"role.{block.role}"),
                "contents": contents(block),
                "cells": cells,
                "flags": flagged,
                "named": bool({block.name, *keys["addition"]} & set(shown.places)),
            }
        )
    heads = [words("model.block"), *(head for head, _, _ in columns), words("model.flags")]
    return {"heads": heads, "rows": rows, "flagged": any(flags.values())}


def _values(expected: Mapping[str, Expected]) -> dict[str, float]:
    return {name: each.value for name, each in expected.items()}


def _cell(values: list[float | None], words: Words) -> str:
    known = [figure(value) if value is None or not math.isnan(value) else words("model.not_finite") for value in values]
    return ", ".join(known) if any(value is not None for value in values) else "–"


def _flags(shown: Shown, words: Words) -> dict[str, list[str]]:
    """What a reader must look at, by block."""
    profile = shown.profile
    nonfinite = profile.values("boundary", "nonfinite"), profile.values("boundary", "grad_nonfinite")
    dead, saturated = profile.values("boundary", "dead"), profile.values("boundary", "saturated")
    found = {}
    for block in profile.structure.blocks:
        end = profile.structure.boundaries[block.index + 1].name
        additions = {profile.structure.additions[index].name for index in block.additions}
        told = [words("model.flag.named")] if {block.name, end, *additions} & set(shown.places) else []
        broken = sum(values.get(end, 0) for values in nonfinite)
        if broken:
            told.append(words("model.flag.nonfinite", n=f"{broken:,.0f}"))
        for key, values in (("dead", dead), ("saturated", saturated)):
            if values.get(end, 0.0) > 0:
                told.append(words(f"model.flag.{key}", share=number(values[end], "fraction")))
        found[block.name] = told
    return found


def parameter_table(profile: ModelProfile, words: Words) -> dict[str, Any]:
    """Every name with its status, and those that no gradient reached by themselves."""
    shapes = {each.name: each.shape for each in profile.structure.parameters}
    of = {alias: each.name for each in profile.structure.parameters for alias in each.aliases}
    norms = profile.values("parameter", "weight_norm"), profile.values("parameter", "weight_grad_norm")
    rows = [
        {
            "name": name,
            "shape": "×".join(map(str, shapes.get(name, ()))) or (of.get(name) or "1"),
            "status": words(f"status.{status}"),
            "ok": status in ("ok", "shared"),
            "wanting": status in ("no grad", "unused"),
            "cells": [figure(values.get(name)) for values in norms],
        }
        for name, status in profile.statuses.items()
    ]
    own = [status for status in profile.statuses.values() if status != "shared"]
    ok = own.count("ok")
    lead = words("model.all_ok", n=len(own)) if ok == len(own) else words("model.some_ok", k=ok, n=len(own))
    heads = [words("model.parameter"), words("model.shape"), words("model.status"), "|W|", "|dW|"]
    return {"heads": heads, "rows": rows, "others": [row for row in rows if not row["ok"]], "lead": lead}


def conditions(profile: ModelProfile, words: Words) -> list[tuple[str, str]]:
    """(name, value): under which the last step was measured, and what was counted in the structure."""
    structure, found = profile.structure, at_last(profile)
    rows = [
        (words("model.objective"), words(f"objective.{found.objective}")),
        (words("model.data"), words(f"data.{found.data}")),
        (words("model.batch"), f"{found.batch:,}"),
        (words("model.mode"), words("mode.train" if found.training else "mode.eval")),
        (words("model.dtype"), f"{found.dtype}, {found.device}"),
        (
            words("model.structure"),
            words(
                "model.counts",
                blocks=len(structure.blocks),
                body=len(structure.body),
                additions=len(structure.additions),
                concatenations=structure.num_concatenations,
                gates=structure.num_gates,
            ),
        ),
    ]
    loss = profile.value("loss")
    if math.isfinite(loss):
        chance = math.log(found.num_classes) if found.num_classes else None
        text = words("model.loss_chance", loss=figure(loss), chance=figure(chance)) if chance else figure(loss)
        rows.insert(1, (words("model.loss"), text))
    total, trust = profile.value("grad_multiplier"), profile.value("trust")
    if math.isfinite(total):
        rows.append((words("model.total"), words("model.total_text", value=figure(total))))
    if math.isfinite(trust):
        rows.append((words("model.trust"), words("model.trust_text", value=figure(trust))))
    return rows


def at_last(profile: ModelProfile) -> Conditions:
    """The conditions of the last step."""
    return profile.conditions[profile.steps()[-1]]


def facts(profile: ModelProfile, words: Words) -> list[str]:
    """The line above the title."""
    structure = profile.structure
    additions = len(structure.additions)
    return [
        words("model.blocks", n=len(structure.blocks)),
        words("model.addition") if additions == 1 else words("model.additions", n=additions),
        words("model.parameters", n=f"{structure.num_parameters:,}"),
    ]


def banners(profile: ModelProfile, words: Words) -> list[str]:
    """What a reader must know before anything else."""
    found = at_last(profile)
    told = [words("model.noise")] if found.data == "noise" else []
    if found.objective == "cotangent":
        told.append(words("model.cotangent"))
    if found.silent:
        told.append(words("model.silent", why=found.silent))
    return told


def glossary(shown: Shown, words: Words, drawn: Collection[str]) -> list[tuple[str, str]]:
    """A gloss for each term of art on the page."""
    used = {
        "boundary": True,
        "multiplier": "multiplier" in drawn,
        "ratio": "ratio" in drawn,
        "expected": bool(shown.expectation.multipliers or shown.expectation.ratios),
        "ends": any(block.role != "body" for block in shown.profile.structure.blocks),
        "rank": "rank" in drawn,
    }
    terms = {"ratio": "|F|/|x|"}
    return [
        (terms.get(key) or words(f"model.gloss.{key}"), words(f"model.gloss.{key}.text"))
        for key, here in used.items()
        if here
    ]
