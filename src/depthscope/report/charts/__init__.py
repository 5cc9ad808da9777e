"""Figures: finished numbers in, an Altair chart out. They compute nothing and fail loudly."""

from depthscope.report.charts.axis import Dot as Dot
from depthscope.report.charts.axis import Mark as Mark
from depthscope.report.charts.axis import against_axis as against_axis
from depthscope.report.charts.base import FONT as FONT
from depthscope.report.charts.base import Look as Look
from depthscope.report.charts.base import Reference as Reference
from depthscope.report.charts.base import configure as configure
from depthscope.report.charts.base import rename_tables as rename_tables
from depthscope.report.charts.claims import claim_interval as claim_interval
from depthscope.report.charts.claims import extent as extent
from depthscope.report.charts.curves import Curve as Curve
from depthscope.report.charts.curves import training_curves as training_curves
from depthscope.report.charts.depth import DepthValue as DepthValue
from depthscope.report.charts.depth import by_depth as by_depth
from depthscope.report.charts.gradcheck import CheckPoint as CheckPoint
from depthscope.report.charts.gradcheck import gradient_check as gradient_check
from depthscope.report.charts.heat import Cell as Cell
from depthscope.report.charts.heat import over_steps as over_steps
from depthscope.report.charts.lines import Line as Line
from depthscope.report.charts.lines import lines_by_series as lines_by_series
from depthscope.report.charts.profile import LayerValue as LayerValue
from depthscope.report.charts.profile import TheoryPoint as TheoryPoint
from depthscope.report.charts.profile import layer_profile as layer_profile
from depthscope.report.charts.ranking import RankPoint as RankPoint
from depthscope.report.charts.ranking import RankRow as RankRow
from depthscope.report.charts.ranking import ranked_arms as ranked_arms
