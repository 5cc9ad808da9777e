"""Trace one forward pass of any model, read its structure, and follow later passes."""

from depthscope.probes.trace.follow import Follow as Follow
from depthscope.probes.trace.follow import Listener as Listener
from depthscope.probes.trace.outputs import main_output as main_output
from depthscope.probes.trace.outputs import main_outputs as main_outputs
from depthscope.probes.trace.outputs import tensors_of as tensors_of
from depthscope.probes.trace.structure import Place as Place
from depthscope.probes.trace.structure import Positions as Positions
from depthscope.probes.trace.tracing import Traced as Traced
from depthscope.probes.trace.tracing import trace as trace
