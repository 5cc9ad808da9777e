"""Figures: finished numbers in, an Altair chart out. They compute nothing and fail loudly."""

from depthscope.report.figures.base import FONT as FONT
from depthscope.report.figures.base import Look as Look
from depthscope.report.figures.base import configure as configure
from depthscope.report.figures.claims import claim_interval as claim_interval
from depthscope.report.figures.curves import Curve as Curve
from depthscope.report.figures.curves import training_curves as training_curves
from depthscope.report.figures.depth import Dot as Dot
from depthscope.report.figures.depth import Mark as Mark
from depthscope.report.figures.depth import against_depth as against_depth
from depthscope.report.figures.gradcheck import CheckPoint as CheckPoint
from depthscope.report.figures.gradcheck import gradient_check as gradient_check
from depthscope.report.figures.profile import LayerValue as LayerValue
from depthscope.report.figures.profile import TheoryPoint as TheoryPoint
from depthscope.report.figures.profile import layer_profile as layer_profile
