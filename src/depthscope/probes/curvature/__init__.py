"""Curvature of the loss: exact products with the Hessian, and what is found by them.

| what | call | products |
| --- | --- | --- |
| largest and smallest eigenvalue, with residuals | `extremes` | tens to hundreds |
| trace, with its standard error | `trace` | `samples` |
| spectral density | `density` | `vectors` times `steps` |

Of `EXACT` parameters or fewer the matrix is written out, by as many products. A product takes about five
forward passes over the examples, more on a CPU, where convolutions in float64 are slow.
"""

from depthscope.probes.curvature.density import Density as Density
from depthscope.probes.curvature.density import density as density
from depthscope.probes.curvature.extremes import Extremes as Extremes
from depthscope.probes.curvature.extremes import extremes as extremes
from depthscope.probes.curvature.operator import Hessian as Hessian
from depthscope.probes.curvature.operator import check_mean as check_mean
from depthscope.probes.curvature.symmetric import EXACT as EXACT
from depthscope.probes.curvature.symmetric import Symmetric as Symmetric
from depthscope.probes.curvature.symmetric import dense as dense
from depthscope.probes.curvature.trace import Trace as Trace
from depthscope.probes.curvature.trace import trace as trace
