"""The NumPy laboratory: networks by hand, trained and measured many seeds at a time.

    stack = Stack(depth=8, width=16, num_inputs=2, num_classes=3, shortcut="identity")
    params = init_params(stack, seeds, gain=0.72, dtype=np.float32)
    for report in fit(stack, params, x, y, optimizer=Adam(), lr=lambda step: 2e-3, num_steps=1000):
        ...

Read `layers` first: each layer's derivation stands there. NumPy and the standard library, nothing else.
"""

from depthscope.lab.fit import Departure as Departure
from depthscope.lab.fit import Memory as Memory
from depthscope.lab.fit import Report as Report
from depthscope.lab.fit import StopRule as StopRule
from depthscope.lab.fit import fit as fit
from depthscope.lab.forms import Form as Form
from depthscope.lab.forms import init_params as init_params
from depthscope.lab.forms import layer_table as layer_table
from depthscope.lab.forms import parameter_shapes as parameter_shapes
from depthscope.lab.gradcheck import SINGLE_STEP as SINGLE_STEP
from depthscope.lab.gradcheck import STEP_SIZES as STEP_SIZES
from depthscope.lab.gradcheck import GradcheckRow as GradcheckRow
from depthscope.lab.gradcheck import gradient_check as gradient_check
from depthscope.lab.judge import evaluate as evaluate
from depthscope.lab.measure import flow_factor as flow_factor
from depthscope.lab.measure import gradients as gradients
from depthscope.lab.measure import profile as profile
from depthscope.lab.optimizers import Adam as Adam
from depthscope.lab.optimizers import Momentum as Momentum
from depthscope.lab.optimizers import Optimizer as Optimizer
from depthscope.lab.stacks import Stack as Stack
from depthscope.lab.stacks import units as units
from depthscope.lab.transformer.model import Gpt as Gpt
