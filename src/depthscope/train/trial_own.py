"""Networks with code of the user's in them, tried on a few examples before anything is written.

Each function gives the quantities that probes of the user's measured.
"""

from __future__ import annotations

from typing import Any

from depthscope.core.errors import UserError
from depthscope.data.dataset import Dataset
from depthscope.study.catalog import is_user_code
from depthscope.study.run import RunSpec
from depthscope.train.measure import PROBE_BATCH
from depthscope.train.memory import DataShape
from depthscope.train.probing import own_probes, probe_model, probe_stack
from depthscope.train.usercode import ProbeError, as_user_error, told_of_network


def try_torch(spec: RunSpec, data: Dataset) -> set[str]:
    """Build a run's network, feed it two examples forward and back, and measure it in all ways that the run names.

    Raises:
        UserError: something does not fit; it names the user's function.
    """
    import torch

    from depthscope.models.construct import seeded
    from depthscope.train.clip import try_clip
    from depthscope.train.feed import taken
    from depthscope.train.layout import lay_out
    from depthscope.train.network import check_output, check_trainable, derived_of, make_network
    from depthscope.train.own_modules import check_declared, watched

    x, y = taken(spec, data, data.train, PROBE_BATCH if own_probes(spec) else 2)
    # Points of the laboratory are float64, whatever a run in torch takes them as; so are targets.
    x, y = (each.float() if each.is_floating_point() else each for each in (x, y))
    known = not is_user_code(spec.family)
    with told_of_network(spec):
        model, _ = make_network(spec, data)
        check_declared(model)
        derived_of(spec, model)
    with told_of_network(spec), seeded(0), torch.enable_grad():
        if known and x.ndim == 4:
            model = lay_out(model, "cpu")  # as for the training: code of the user's may not bear it
        # In training mode a batch norm in a network of the user's would refuse what it need not be fed.
        model.train(known)
        with watched(spec, model):
            output = model(x[:2])
        check_output(spec.family, output, (len(x[:2]), *DataShape.of(data).output_shape), data.task)
        parameters = dict(model.named_parameters())
        check_trainable(spec.family, output, parameters)
        trained = [each for each in parameters.values() if each.requires_grad]
        torch.autograd.grad(output.square().mean(), trained, allow_unused=True)
        _try_measures(spec, data, model, x[:2], y[:2])
        try_clip(spec, model, x[:2])
    rows = []
    for target in own_probes(spec):
        try:
            with as_user_error(target):
                rows += probe_model((target,), model, x, y, spec=spec, step=0)
        except ProbeError as error:
            raise UserError(str(error)) from error
    return {quantity for _, _, quantity, _ in rows}


def _try_measures(spec: RunSpec, data: Dataset, model: Any, x: Any, y: Any) -> None:
    from functools import partial

    from depthscope.probes.lesion import lesions
    from depthscope.probes.watch import profile
    from depthscope.train.curvature import SHARPNESS, SMOOTHNESS, hessian_of, smoothness_rows
    from depthscope.train.lesions import LESION
    from depthscope.train.network import additions_of, points_of
    from depthscope.train.objective import judged, objective_of

    objective = objective_of(data)
    if SMOOTHNESS in spec.measures:
        smoothness_rows(model, (x, y), objective, spec.lr, 0)
    if SHARPNESS in spec.measures:
        hessian_of(model, (x, y), objective, check=True)
    if not {"layers", LESION} & set(spec.measures):
        return
    points, additions = points_of(model, x), additions_of(model)
    if "layers" in spec.measures:
        profile(model, objective.loss, x, y, points=points, additions=additions)
    if LESION in spec.measures:
        lesions(model, x, y, partial(judged, objective), points=points, additions=additions)


def try_numpy(spec: RunSpec, data: Dataset) -> set[str]:
    """Measure a run of the laboratory by the probes of the user's that it names.

    Raises:
        UserError: see `probing.rows_of`; or a probe raises.
    """
    from depthscope.train.laboratory import form_of, params_of

    if not own_probes(spec):
        return set()
    form = form_of(spec, DataShape.of(data))
    one = {name: value[0] for name, value in params_of([spec], form).items()}
    rows = []
    for target in own_probes(spec):
        try:
            with as_user_error(target):
                rows += probe_stack((target,), form, one, data.train.x, data.train.y, 0)
        except ProbeError as error:
            raise UserError(str(error)) from error
    return {quantity for _, _, quantity, _ in rows}
