"""Runs that begin with a solution: a shallower network is trained first, then made deeper by identities.

The argument at the heart of the degradation problem (He et al. 2015, arXiv 1512.03385, section 1): a deeper network
has a solution that is no worse than the shallower one's, namely its layers and identities beside them. Here it is made.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

from torch import nn

from depthscope.models.embed import embed
from depthscope.record.events import Ended, Event, Progress, SafePoint, State
from depthscope.record.schema import Outcome
from depthscope.study.run import RunSpec
from depthscope.train import torch_loop
from depthscope.train.build import Context
from depthscope.train.exact import exact
from depthscope.train.feed import Feed
from depthscope.train.objective import Objective
from depthscope.train.passes import clean_pass, training_pass
from depthscope.train.shallow import shallow_spec
from depthscope.train.state import Standing

MAX_EXAMPLES = 5000
"""Training examples whose statistics the identities are made of: they pass the network at once."""


@dataclass(frozen=True, kw_only=True)
class Shallow:
    """A shallower network that was trained.

    Attributes:
        model: it, in evaluation mode.
        figures: the summary of its run.
    """

    model: nn.Module
    figures: Mapping[str, float]


_KEPT: OrderedDict[tuple[object, ...], Shallow] = OrderedDict()
MAX_KEPT = 8
"""Shallower networks that a process remembers: arms that begin from the same ones do not each train them."""


def run(
    specs: Sequence[RunSpec], context: Context, states: Mapping[str, State], standing: Standing
) -> Iterator[Event | SafePoint]:
    """The events of constructed runs, one after the other.

    The shallower run is nested: it tells its progress, has no record and no checkpoint. A run with a state goes on
    from it, and needs no shallower one. Where the shallower one does not complete, its outcome is the run's.
    """
    for spec in specs:
        if spec.run_id in states:
            yield from torch_loop.run([spec], context, states, standing)
            continue
        made = yield from _trained(spec, context)
        if isinstance(made, Outcome):
            yield Ended(run_id=spec.run_id, outcome=made)
        else:
            yield from torch_loop.run([spec], context, {}, standing, prepare=partial(_construct, spec, made))


def _trained(spec: RunSpec, context: Context) -> Generator[Event, None, Shallow | Outcome]:
    asked = shallow_spec(spec)
    with exact(context.threads):
        nested = torch_loop.Run(asked, context, None, Standing())
        # What it is made of too: a network of other data, or of code that was changed since, is another.
        key = (asked.run_id, nested.made_of, replace(context, data_root=None))
        if key not in _KEPT:
            for event in nested.events():
                if isinstance(event, Progress):
                    yield _told(event, spec, asked)
                elif isinstance(event, Ended) and event.outcome.status != "completed":
                    return _outcome(event.outcome, asked)
                elif isinstance(event, Ended):
                    _KEPT[key] = Shallow(model=nested.model.eval(), figures=event.summary)
        _KEPT.move_to_end(key)
        while len(_KEPT) > MAX_KEPT:
            _KEPT.popitem(last=False)
        return _KEPT[key]


def _told(event: Progress, spec: RunSpec, asked: RunSpec) -> Progress:
    text = event.text or f"step {event.step}"
    return Progress(
        run_id=spec.run_id, step=0, num_steps=event.num_steps, text=f"first the network of {asked.depth} layers: {text}"
    )


def _outcome(outcome: Outcome, asked: RunSpec) -> Outcome:
    """Of a run whose shallower network did not complete: its own, of which it is said whose it is."""
    reason = f"the shallower network of {asked.depth} layers did not train; {outcome.reason}"
    return outcome.model_copy(update={"step": 0, "reason": reason})


def _construct(spec: RunSpec, shallow: Shallow, model: nn.Module, feed: Feed, objective: Objective) -> dict[str, float]:
    """Put the shallower network into the deep one, and judge that before it is trained.

    Returns:
        Figures for the run's summary.

    Raises:
        UserError: the one does not go into the other (`models.embed`).
    """
    x, y = feed.train
    embed(shallow.model, model, x[:MAX_EXAMPLES])
    start = clean_pass(model, x, y, spec, objective)
    batch = training_pass(model.train(), x, y, feed.batch_size, objective)
    figures = {f"train_{name}_start": value for name, value in start.items()}
    figures |= {f"train_{name}_start_batch": value for name, value in batch.items()}
    return figures | {
        f"construction_{name}_change": value - shallow.figures[f"train_{name}"] for name, value in start.items()
    }
