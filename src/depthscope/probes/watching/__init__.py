"""Measure a training while it runs, from outside of its loop, and change no bit of it."""

from depthscope.probes.watching.record import Record as Record
from depthscope.probes.watching.watching import Watching as Watching
