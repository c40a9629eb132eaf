"""The metrics that the policies of a run read: which columns of its decisions they are, their units and thresholds."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from dynamo_sim.metric_catalogue import METRICS
from dynamo_sim.records.readings import Reading
from dynamo_sim.records.records import FLEET

if TYPE_CHECKING:
    import pandas as pd

    from dynamo_sim.report.tables import RunTables

PREFIX = "value:"
THRESHOLD_WORDS = ("target", "threshold")
"""A value of this name is the threshold of the metric; ``NAME target`` is the threshold of ``NAME``."""

NO_METRICS = ("excess_burst_capacity", "floor", "reactive")
"""Values that are worth a column and are no metric with a threshold."""


@dataclass(frozen=True, eq=False)
class Series:
    """A metric as a policy read it.

    Attributes:
        name: of the value.
        unit: of its values, and whether they are per worker or in total; empty where it is not known.
        at_s: times of the evaluations.
        values: NaN where there was no data.
        limits: label and value at each evaluation, for each threshold.
    """

    name: str
    unit: str
    at_s: NDArray[np.float64]
    values: NDArray[np.float64]
    limits: tuple[tuple[str, NDArray[np.float64]], ...]


def metric_groups(result: RunTables, fleet: str = FLEET) -> list[list[Series]]:
    """The metrics that were read to scale a fleet, those of one unit and the same thresholds together.

    Those with thresholds come first.
    """
    frame = result.decisions_of(fleet)
    known = {reading.name: reading for reading in result.records.readings if reading.fleet in ("", fleet)}
    names = [column.removeprefix(PREFIX) for column in frame.columns if column.startswith(PREFIX)]
    names = [
        name
        for name in names
        if frame[PREFIX + name].dtype.kind == "f"
        and ("fleet" not in frame or frame[PREFIX + name].notna().any())
    ]
    declared = {
        name: [f"{name} {word}" for word in THRESHOLD_WORDS if f"{name} {word}" in names] for name in names
    }
    plain = [name for name in names if name in THRESHOLD_WORDS and name not in known]
    beside = {*THRESHOLD_WORDS, *NO_METRICS, *(limit for limits in declared.values() for limit in limits)}
    groups: dict[Any, list[Series]] = {}
    for name in names:
        if name in beside and name not in known:
            continue
        about = known.get(name) or Reading(name, _unit_of_name(name))
        rows = frame[_asked(frame, name)]
        limits = list(_limits(about, rows))
        if not about.thresholds:
            limits += [(_column_label(rows, limit), _column(rows, limit)) for limit in declared[name]]
            if not groups and not limits:  # the only threshold belongs to the first metric
                limits += [(_column_label(rows, limit), _column(rows, limit)) for limit in plain]
        series = Series(name, about.unit, _numbers(rows["at_s"]), _column(rows, name), tuple(limits))
        key = (about.unit, about.thresholds) if about.unit and not (limits and not about.thresholds) else name
        groups.setdefault(key, []).append(series)
    return sorted(groups.values(), key=lambda group: not group[0].limits)


def _asked(frame: pd.DataFrame, name: str) -> NDArray[np.bool_]:
    """The evaluations of the loops that read a metric at all."""
    loops = frame.loc[frame[PREFIX + name].notna(), "loop"].unique()
    return np.asarray(frame["loop"].isin(loops), dtype=bool)


def _numbers(column: Any) -> NDArray[np.float64]:
    return np.asarray(column, dtype=np.float64)


def _column(rows: pd.DataFrame, name: str) -> NDArray[np.float64]:
    return _numbers(rows[PREFIX + name])


def _column_label(rows: pd.DataFrame, name: str) -> str:
    values = rows[PREFIX + name].dropna().unique()
    word = name.rsplit(" ", 1)[-1]
    return f"{word} {values[0]:g}" if len(values) == 1 else word


def _limits(about: Reading, rows: pd.DataFrame) -> Iterator[tuple[str, NDArray[np.float64]]]:
    current = _numbers(rows["current"])
    for limit in about.thresholds:
        if limit.per_worker:
            # The threshold of an empty fleet is that of its first worker, not 0.
            yield (
                f"{limit.name}: {limit.value:g} a worker × current workers",
                limit.value * np.maximum(current, 1.0),
            )
        else:
            yield f"{limit.name} {limit.value:g}", np.full(len(rows), limit.value)


def _unit_of_name(name: str) -> str:
    """The unit a value's name suggests: that of the metric it is named after."""
    for word in re.findall(r"\w+", name):
        if word in METRICS:
            return METRICS[word].unit + ("/s" if "rate(" in name else "")
    return "ms" if name.endswith("_ms") else ""
