"""A gloss for each term of art that a study's page uses, and for no other."""

from __future__ import annotations

from depthscope.analysis.table import Results
from depthscope.analysis.units import squared
from depthscope.analysis.verdicts import CHANGES
from depthscope.report.words import Words


def glossary(results: Results, words: Words) -> list[tuple[str, str]]:
    """(term, what it means), in the order in which a reader meets them."""
    study = results.study
    specs = [row.spec for row in results.rows]
    measured = {name for spec in specs for name in spec.measures}
    layers = "layers" in measured
    used = {
        "confirmatory": bool(study.claims),
        "interval": True,
        "twofold": any(claim.kind == "difference_in_differences" for claim in study.claims),
        "effect": any(claim.kind in CHANGES for claim in study.claims),
        "margin": any(claim.kind == "no_degradation" for claim in study.claims),
        "nats": any(row.spec.steps != 0 and not squared([row]) for row in results.rows),
        "seed": True,
        "options": any(spec.shortcut in ("A", "B") for spec in specs),
        "gradient": layers,
        "factor": layers,
        "theory": layers and any(spec.family == "mlp" and spec.norm == "none" for spec in specs),
        "complex": "gradcheck" in measured,
        "smoothness": "smoothness" in measured,
        "sharpness": "sharpness" in measured,
    }
    return [(words(f"gloss.{key}"), words(f"gloss.{key}.text")) for key, here in used.items() if here]
