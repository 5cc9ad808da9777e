"""What the driver asks of a worker, and what it answers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from depthscope.record.holder import LEASE_S
from depthscope.record.schema import Outcome
from depthscope.study.expand import Task
from depthscope.train.build import Context


@dataclass(frozen=True, kw_only=True)
class Settings:
    """How the tasks of a study are done; nothing here changes a number.

    Attributes:
        claims_digest: of the claims that the study declares now; kept in the records.
        study: name and size of the study that its folder must hold where a worker sees it; None: not looked at.
        lease_s: see `record.lease`.
        min_gap_s: seconds at least from one checkpoint of a task to its next, at the end of an epoch. More where
            writing takes long, so that it costs a twentieth of the time at most.
        checkpoint_s: seconds after which a checkpoint is written within an epoch, too.
        logs: see `record.sinks`.
    """

    claims_digest: str | None = None
    study: tuple[str, str] | None = None
    lease_s: float = LEASE_S
    min_gap_s: float = 2.0
    checkpoint_s: float = 300.0
    logs: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Order:
    """A portion to do.

    Attributes:
        task: its runs.
        folder: the study's.
        context: device, data and threads; device `auto` is chosen where the worker is.
        settings: those of the study.
        token: of the leases; unlike that of any other order.
        dead: stamps and tokens of leases that may be taken over.
        failed: run_id -> checksum of the failed record that is to be done again. Another one stands: a driver
            that works beside this one has tried again already.
    """

    task: Task
    folder: Path
    context: Context
    settings: Settings = Settings()
    token: str
    dead: frozenset[str] = frozenset()
    failed: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Done:
    """What became of a run that was ordered.

    Attributes:
        run_id: the run.
        outcome: that of its record; None where another driver holds the run.
        elsewhere: whether another driver recorded it.
        fault: why the run's own folder cannot be used; there is no record then.
    """

    run_id: str
    outcome: Outcome | None = None
    elsewhere: bool = False
    fault: str | None = None
