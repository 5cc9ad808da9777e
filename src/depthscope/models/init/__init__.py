"""Initial weights: every tensor from its own named stream, drawn by NumPy in float64, then cast.

Networks that share a tensor's name and shape so start from the same tensor, whatever else they hold,
on every device and in every version of torch. (`init = "torch"` alone draws by torch's own generator, one
state a module: equal between arms and devices, and as stable between versions as torch is.)
"""

from depthscope.models.init.building import build as build
from depthscope.models.init.filling import Draw as Draw
from depthscope.models.init.filling import fill as fill
from depthscope.models.init.named import INITIALISERS as INITIALISERS
from depthscope.models.init.named import TORCH as TORCH
from depthscope.models.init.rules import fans as fans
