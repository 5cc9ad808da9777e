"""The catalogue's table: every name of a study, by kind, with the code behind it and its sources.

It is read through `study.catalog`, which checks names and options against it.
"""

from __future__ import annotations

from collections.abc import Mapping

from depthscope.study.entries.data import AUGMENT, DATA
from depthscope.study.entries.entry import Backend as Backend
from depthscope.study.entries.entry import Entry as Entry
from depthscope.study.entries.entry import Kind as Kind
from depthscope.study.entries.families import FAMILY
from depthscope.study.entries.inits import INIT
from depthscope.study.entries.layers import ACTIVATION, NORM
from depthscope.study.entries.shortcuts import SHORTCUT
from depthscope.study.entries.training import CLIP, MEASURE, OPTIMIZER, SCHEDULE

CATALOG: Mapping[Kind, Mapping[str, Entry]] = {
    "family": FAMILY,
    "shortcut": SHORTCUT,
    "norm": NORM,
    "activation": ACTIVATION,
    "init": INIT,
    "data": DATA,
    "augment": AUGMENT,
    "optimizer": OPTIMIZER,
    "clip": CLIP,
    "schedule": SCHEDULE,
    "measure": MEASURE,
}
