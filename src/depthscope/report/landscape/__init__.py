"""Loss landscapes as figures: of one network on a page of its own, and of a study's runs on its page."""

from depthscope.report.landscape.page import landscape_figures as landscape_figures
from depthscope.report.landscape.page import render_landscape as render_landscape
