"""What docs/zoo.md tells of a member: nothing that a clock or a processor's rounding decides but the verdict."""

from __future__ import annotations

from typing import Any

from tests.zoo.table import ZOO

from depthscope.analysis.model import diagnose
from depthscope.core.readings import ModelProfile
from depthscope.probes.measure.profile import profile_model


def profile_of(name: str) -> ModelProfile:
    """A member's profile, in train mode as it is made."""
    model, batch = ZOO[name].make()
    return profile_model(model, batch)


def row_of(name: str, profile: ModelProfile) -> dict[str, Any]:
    """A member's row from its profile."""
    found = profile.structure
    member = ZOO[name]
    return {
        "model": name,
        "family": member.family,
        "parameters": found.num_parameters,
        "blocks": len(found.blocks),
        "found": len(found.additions),
        "known": member.additions,
        "why": member.why,
        "concatenations": found.num_concatenations,
        "gates": found.num_gates,
        "verdict": diagnose(profile).verdict,
    }
