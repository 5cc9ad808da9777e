"""What is shown: figures, the offline page, citations. Returns bytes and plain data; touches nothing."""

from depthscope.report.citations import bibtex as bibtex
from depthscope.report.citations import citations as citations
from depthscope.report.export import figures as figures
from depthscope.report.export import png as png
from depthscope.report.export import svg as svg
from depthscope.report.page import render as render
