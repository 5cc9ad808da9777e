"""Recurrent networks: along the plus sign of a step the error comes back as it was."""

from __future__ import annotations

import pytest
import torch
from tests.conformance.case import Case
from torch.nn import functional as F

from depthscope.models import recurrent as module
from depthscope.models.recurrent import recurrent
from depthscope.probes.watch import profile


def _the_error_is_carried() -> None:
    """The constant error carousel of Hochreiter & Schmidhuber 1997: dc_t/dc_(t-1) = 1 exactly, but for ways by U."""
    draw = torch.Generator().manual_seed(0)
    x, y = torch.randn(6, 30, 3, generator=draw), torch.randn(6, 2, generator=draw)
    for cell in ("lstm_no_forget", "residual_rnn"):
        model = recurrent(depth=30, width=5, cell=cell, num_inputs=3, num_classes=2)
        with torch.no_grad():
            for parameter in model.parameters():
                parameter.copy_(torch.randn(parameter.shape, generator=draw))
            model.recurrent.weight.zero_()
        found = profile(model, F.mse_loss, x, y, points=model.points()).values("dh_norm", 0)
        assert found[29] > 0
        assert all(found[t] == found[29] for t in range(30)), cell


def _forgets_a_little(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(module.Sum, "forward", lambda self, carried, added: self.skip(0.99 * carried) + self.branch(added))


CASES = [Case(kind="family", name="recurrent", check=_the_error_is_carried, alter=_forgets_a_little)]
