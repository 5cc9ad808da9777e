"""The page of any PyTorch model: of a checkup, and of a comparison of variants."""

from depthscope.report.model.comparison import render_comparison as render_comparison
from depthscope.report.model.page import render_model as render_model
from depthscope.report.model.pictures import Shown as Shown
from depthscope.report.model.verdict import Told as Told
from depthscope.report.model.verdict import tell as tell
