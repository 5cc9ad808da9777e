"""See that code and data of a study's runs are at hand and fit together, before anything is written."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Iterator
from pathlib import Path
from typing import Any, Protocol

from depthscope.core.errors import UserError, unknown_name
from depthscope.data import text
from depthscope.data.dataset import Dataset
from depthscope.data.text_files import TEXTS
from depthscope.study.catalog import CATALOG, is_user_code
from depthscope.study.metrics import PROBE
from depthscope.study.run import OPTION_FIELDS, RunSpec
from depthscope.train.build import Context, load_data, resolve, target_of
from depthscope.train.own import check_repairs
from depthscope.train.probing import NUMPY_ARGUMENTS, TORCH_ARGUMENTS, own_probes
from depthscope.train.samples import check_text
from depthscope.train.trial import try_known
from depthscope.train.trial_own import try_numpy, try_torch
from depthscope.train.usercode import as_user_error, check_signature, kept_cwd, takes, user_targets


class Claims(Protocol):
    """What is asked of a claim here."""

    @property
    def name(self) -> str:
        """What the study calls it."""

    @property
    def metric(self) -> str:
        """The figure that it judges."""


def _nothing(done: int, total: int | None) -> None:
    del done, total


@kept_cwd()
def check_runs(
    specs: Iterable[RunSpec],
    root: Path | None = None,
    progress: Callable[[int, int | None], None] = _nothing,
    *,
    among: Iterable[RunSpec] = (),
    claims: Iterable[Claims] = (),
    fetch: bool = True,
) -> None:
    """See that these runs can be done.

    Every name is resolved, data that is files is verified (and downloaded where it is missing), every other data set
    is made once, every network of the catalogue is built (see `trial`). Where code of the user's takes part, each
    network is built, fed two examples, and measured by each probe of the user's.

    Args:
        specs: the runs, one of those that differ in their seed alone.
        root: folder of the real data.
        progress: hears of a download.
        among: all runs of the study; a field that its family does not take must not vary among them.
        claims: of the study; those about a probe must name what it measures.
        fetch: whether to look at data that is files too; without it, networks that are fed with it are not tried.

    Raises:
        UserError: a name that leads nowhere; options out of range; files that are missing, cut short or altered;
            user code that raises, gives something else than it should, or would be handed what it does not take.
    """
    runs = list(specs)
    for spec in runs:
        resolve(target_of("family", spec.family, spec.backend))
        for target in user_targets(spec):
            resolve(target)
    named = {measure for spec in among for measure in spec.measures}
    for spec in runs:
        _check_signatures(spec, named)
    _check_taken([*runs, *among])
    if fetch:
        _check_files([spec for spec in runs if spec.data in _FILES], root, progress)
    # Data that is as long as the network is deep is made at its shortest.
    deep = sorted(runs, key=lambda spec: -spec.depth)
    others = {(spec.data, json.dumps(spec.data_options)): spec for spec in deep if spec.data not in _FILES}
    for spec in others.values():
        with as_user_error(spec.data):
            load_data(spec, Context(data_root=root))
    try_known(runs)
    measured: set[str] = set()
    for spec in _distinct(spec for spec in runs if fetch or spec.data not in _FILES):
        measured |= _try(spec, load_data(spec, Context(data_root=root)))
    _check_claims(claims, measured, among)


def _check_signatures(spec: RunSpec, named: Collection[str]) -> None:
    if is_user_code(spec.family):
        from depthscope.train.network import FAMILY_FIELDS, SHAPES, takes_length

        offered = (*FAMILY_FIELDS, *SHAPES, *(("length",) if takes_length(spec) else ()))
        check_signature(spec.family, offered, spec.model_options, "model_options")
    if is_user_code(spec.data):
        check_signature(spec.data, ("seed", "root"), spec.data_options, "data_options")
    if is_user_code(spec.init):
        from depthscope.train.network import INIT_ARGUMENTS

        check_signature(spec.init, INIT_ARGUMENTS)
        if spec.gain != 1 and not takes(spec.init, "gain"):
            raise UserError(f"{spec.init}: takes no argument 'gain', so gain = {spec.gain:g} would change nothing.")
    check_repairs(spec)
    functions: dict[str, str] = {}
    for target in own_probes(spec):
        check_signature(target, TORCH_ARGUMENTS if spec.backend == "torch" else NUMPY_ARGUMENTS)
        function = target.partition(":")[2]
        if function in functions:
            earlier = [each for each in (functions[function], target) if named and each not in named]
            remedy = (
                f"{earlier[0]} is what this folder's earlier runs were measured by. Rename one of them, or use another "
                "folder."
                if earlier
                else "Rename one of them."
            )
            raise UserError(f"measures: {functions[function]} and {target} would both be called {function!r}. {remedy}")
        functions[function] = target


def _check_taken(specs: list[RunSpec]) -> None:
    """A field that a family does not take changes nothing: no arm or axis may vary it, or set it for show.

    Raises:
        UserError: one does.
    """
    for family in dict.fromkeys(spec.family for spec in specs if is_user_code(spec.family)):
        from depthscope.train.network import FAMILY_FIELDS

        for field in FAMILY_FIELDS:
            if takes(family, field):
                continue
            values = [_given(spec, field) for spec in specs if spec.family == family]
            values = [value for at, value in enumerate(values) if value not in values[:at]]
            values.sort(key=str if isinstance(values[0], dict) else None)
            if len(values) > 1:
                shown = " and ".join(map(repr, values[:3]))
                raise UserError(
                    f"{field}: {family} takes no argument {field!r}, so {field} = {shown} would be the same network. "
                    f"Take it, or vary an option of its own (model_options)."
                )
            known = RunSpec.model_fields[field]
            if not known.is_required() and values[0] != known.get_default(call_default_factory=True):
                raise UserError(
                    f"{field}: {family} takes no argument {field!r}, so {field} = {values[0]!r} would change nothing. "
                    "Leave it away."
                )


def _given(spec: RunSpec, field: str) -> Any:
    """The value of a field; of options, those alone that are not what their name has by default."""
    value = getattr(spec, field)
    entry = CATALOG[OPTION_FIELDS[field]].get(getattr(spec, OPTION_FIELDS[field])) if field in OPTION_FIELDS else None
    return {name: each for name, each in value.items() if each != entry.options[name]} if entry else value


_FILES = ("cifar10", *TEXTS)
"""Data sets that are files, which are not made but read, and may have to be downloaded."""


def _check_files(specs: list[RunSpec], root: Path | None, progress: Callable[[int, int | None], None]) -> None:
    for spec in specs:
        if spec.data in TEXTS:
            text.check_options(spec.data, **spec.data_options)
    for name in TEXTS:
        if any(spec.data == name for spec in specs):
            text.prepare(name, root, progress=progress)
    _check_cifar10([spec for spec in specs if spec.data == "cifar10"], root, progress)


def _check_cifar10(specs: list[RunSpec], root: Path | None, progress: Callable[[int, int | None], None]) -> None:
    if not specs:
        return
    from depthscope.data import cifar10

    check: Callable[..., None] = cifar10.check_options
    for spec in specs:
        check(**spec.data_options)
    counts: dict[str, Any] = {
        name: max(int(str(spec.data_options[name])) for spec in specs) for name in ("num_train", "num_test")
    }
    cifar10.prepare(root, progress=progress, **counts)


_NETWORK = (
    *("backend", "family", "depth", "width", "shortcut", "shortcut_options", "norm", "norm_options", "activation"),
    *("model_options", "init", "init_options", "gain", "stem_gain", "zero_last_gamma", "clip", "clip_options"),
    *("data", "data_options", "augment", "measures"),
)
"""Fields that decide what a run is built from: runs that share them need be tried once."""


def _distinct(specs: Iterable[RunSpec]) -> Iterator[RunSpec]:
    """Runs with code of the user's in them, one of each network and data set."""
    seen: set[str] = set()
    for spec in specs:
        key = json.dumps(spec.model_dump(mode="json", include=set(_NETWORK)), sort_keys=True)
        if user_targets(spec) and key not in seen:
            seen.add(key)
            yield spec


def _try(spec: RunSpec, data: Dataset) -> set[str]:
    """Build a run's network, feed it, measure it. Returns the quantities that its probes gave."""
    shape = data.train.x.shape[1:]
    wanted, fits = _wanted(spec, data)
    if not fits:
        what = "is tokens" if data.num_tokens else f"has shape {list(shape)}"
        raise UserError(f"{spec.data}: one example {what}; {spec.family!r} wants {wanted}.")
    if spec.family == "gpt" and (data.task == "regression" or data.train.y.ndim != 2):
        y = list(data.train.y.shape)
        raise UserError(f"{spec.data}: labels of shape {y}; 'gpt' answers at each position, [N, length].")
    check_text(spec, data)
    if spec.backend == "numpy" and data.task == "regression":
        raise UserError(f"{spec.data}: it asks for numbers; the NumPy laboratory knows classes alone. Use torch.")
    if spec.augment == "crop_flip" and len(shape) != 3:
        raise UserError(f"{spec.data}: one example has shape {list(shape)}; augment 'crop_flip' wants images.")
    return try_torch(spec, data) if spec.backend == "torch" else try_numpy(spec, data)


def _wanted(spec: RunSpec, data: Dataset) -> tuple[str, bool]:
    """(the inputs that a run's family takes, whether the data set has such ones); code of the user's may take any."""
    ndim, is_tokens = data.train.x.ndim, data.num_tokens > 0
    if is_user_code(spec.family):
        return "any", True
    if reads := CATALOG["family"][spec.family].reads:
        shapes = {"tokens": "tokens [N, length]", "vectors": "sequences [N, length, features]"}
        came = "tokens" if is_tokens else "vectors" if ndim == 3 else ""
        return " or ".join(shapes[each] for each in reads), came in reads
    if spec.family == "mlp":
        return "vectors [N, features]", ndim == 2 and not is_tokens
    return "images [N, channels, height, width]", ndim == 4


def _check_claims(claims: Iterable[Claims], measured: set[str], among: Iterable[RunSpec]) -> None:
    functions = {target.partition(":")[2] for spec in among for target in own_probes(spec)}
    known = {quantity.partition(".")[0] for quantity in measured}
    for claim in claims:
        quantity = claim.metric.removeprefix(PROBE)
        function = quantity.partition(".")[0]
        if not claim.metric.startswith(PROBE) or quantity in measured:
            continue
        if function not in functions:
            raise UserError(
                f"claim {claim.name!r}: no run is measured by a probe called {function!r}. Put "
                f"'package.module:{function}' into `measures`."
            )
        if function in known:  # of a probe whose runs are all done, nothing is known here
            raise UserError(f"claim {claim.name!r}: {unknown_name('quantity', quantity, measured)}")
