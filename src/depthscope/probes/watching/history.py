"""All records of a training, in little memory: equal columns are kept once, values as plain doubles."""

from __future__ import annotations

from array import array
from collections.abc import Mapping, Sequence
from typing import Any

from depthscope.core.errors import MissingDependencyError
from depthscope.core.readings import Conditions, ModelProfile, Place, Reading
from depthscope.core.structure import Status, Structure
from depthscope.probes.watching.record import Record

Column = tuple[Place, str, str]


class History:
    """Records in the order of their steps."""

    def __init__(self) -> None:
        self._columns: dict[tuple[Column, ...], tuple[Column, ...]] = {}
        self._statuses: dict[tuple[tuple[str, Status], ...], Mapping[str, Status]] = {}
        self._kept: list[tuple[int, tuple[Column, ...], array[float], Conditions, Mapping[str, Status]]] = []

    def add(self, record: Record) -> None:
        """Keep one."""
        columns: tuple[Column, ...] = tuple((each.place, each.name, each.quantity) for each in record.readings)
        statuses = self._statuses.setdefault(tuple(record.statuses.items()), record.statuses)
        values = array("d", (each.value for each in record.readings))
        self._kept.append(
            (record.step, self._columns.setdefault(columns, columns), values, record.conditions, statuses)
        )

    def records(self) -> tuple[Record, ...]:
        """All of them, as they came."""
        return tuple(
            Record(
                step=step,
                readings=tuple(
                    Reading(step=step, place=place, name=name, quantity=quantity, value=value)
                    for (place, name, quantity), value in zip(columns, values, strict=True)
                ),
                conditions=conditions,
                statuses=statuses,
            )
            for step, columns, values, conditions, statuses in self._kept
        )

    def profile(self, structure: Structure, losses: Mapping[int, float]) -> ModelProfile:
        """All records as one profile, with the losses that the loop told of their steps."""
        records = self.records()
        readings: list[Reading] = []
        for record in records:
            readings += record.readings
            told = losses.get(record.step)
            if told is not None and not any(each.quantity == "loss" for each in record.readings):
                readings.append(Reading(step=record.step, place="model", name="", quantity="loss", value=told))
        return ModelProfile(
            structure=structure,
            readings=tuple(readings),
            conditions={record.step: record.conditions for record in records},
            statuses=records[-1].statuses if records else {},
        )


def to_pandas(readings: Sequence[Reading]) -> Any:
    """A DataFrame with one row a reading: step, place, name, quantity, value.

    Raises:
        MissingDependencyError: pandas is not installed.
    """
    try:
        import pandas
    except ModuleNotFoundError as error:
        raise MissingDependencyError(
            "to_pandas: pandas is not installed: pip install pandas. Without it, the readings of the profile are rows."
        ) from error
    columns = ("step", "place", "name", "quantity", "value")
    return pandas.DataFrame([[getattr(each, name) for name in columns] for each in readings], columns=list(columns))
