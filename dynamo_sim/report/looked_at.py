"""What the policies of a run looked at: which columns of its decisions are metrics, their units and thresholds."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    import pandas as pd

    from dynamo_sim.autoscaling.metrics.query import MetricQuery
    from dynamo_sim.report.result import RunResult

PREFIX = "value:"
THRESHOLD_WORDS = ("target", "threshold")
"""A value of this name is the threshold of the metric; ``NAME target`` is the threshold of ``NAME``."""

NO_METRICS = ("excess_burst_capacity", "floor", "reactive")
"""Values that are worth a column and are no metric with a threshold."""

REBUILT = ("target_tracking", "step_scaling", "queue_proportional", "predictive", "hpa", "keda", "kpa", "sla")
PER_WORKER, IN_TOTAL = " per worker", " in total"
"""Behind a unit, where it is known."""

UNITS = {"demand_rps": "requests/s", "capacity_rps": "requests/s"}
UNITS |= {
    "estimated_ttft_ms": "ms",
    "estimated_itl_ms": "ms",
    "predicted_isl": "tokens",
    "predicted_osl": "tokens",
}


@dataclass(frozen=True)
class Threshold:
    """Where a policy acts.

    Attributes:
        value: in the unit of the metric.
        name: for legends.
        a_worker: whether it counts once for each of the current workers.
    """

    value: float
    name: str = "target"
    a_worker: bool = False


@dataclass(frozen=True)
class Known:
    """What is known of a metric besides its values: its unit and its thresholds."""

    unit: str = ""
    thresholds: tuple[Threshold, ...] = ()


@dataclass(frozen=True, eq=False)
class Series:
    """A metric as a policy saw it.

    Attributes:
        name: of the value.
        unit: of its values, and whether they are per worker or in total; empty where it is not known.
        at_s: when somebody looked.
        values: NaN where there was no data.
        limits: label and value at each look, for each threshold.
    """

    name: str
    unit: str
    at_s: NDArray[np.float64]
    values: NDArray[np.float64]
    limits: tuple[tuple[str, NDArray[np.float64]], ...]


def metric_groups(result: RunResult) -> list[list[Series]]:
    """The metrics that were looked at, those of one unit and the same thresholds together, thresholds first."""
    frame = result.decisions
    known = _known(result)
    names = [column.removeprefix(PREFIX) for column in frame.columns if column.startswith(PREFIX)]
    names = [name for name in names if frame[PREFIX + name].dtype.kind == "f"]
    told = {
        name: [f"{name} {word}" for word in THRESHOLD_WORDS if f"{name} {word}" in names] for name in names
    }
    plain = [name for name in names if name in THRESHOLD_WORDS and name not in known]
    aside = {*THRESHOLD_WORDS, *NO_METRICS, *(limit for limits in told.values() for limit in limits)}
    groups: dict[Any, list[Series]] = {}
    for name in names:
        if name in aside and name not in known:
            continue
        about = known.get(name) or Known(_unit_of_name(name))
        looks = frame[_asked(frame, name)]
        limits = list(_limits(about, looks))
        if not about.thresholds:
            limits += [(_column_label(looks, limit), _column(looks, limit)) for limit in told[name]]
            if not groups and not limits:  # the only threshold belongs to the first metric
                limits += [(_column_label(looks, limit), _column(looks, limit)) for limit in plain]
        series = Series(name, about.unit, _numbers(looks["at_s"]), _column(looks, name), tuple(limits))
        key = (about.unit, about.thresholds) if about.unit and not (limits and not about.thresholds) else name
        groups.setdefault(key, []).append(series)
    return sorted(groups.values(), key=lambda group: not group[0].limits)


def _asked(frame: pd.DataFrame, name: str) -> NDArray[np.bool_]:
    """The looks of the loops that look at a metric at all."""
    loops = frame.loc[frame[PREFIX + name].notna(), "loop"].unique()
    return np.asarray(frame["loop"].isin(loops), dtype=bool)


def _numbers(column: Any) -> NDArray[np.float64]:
    return np.asarray(column, dtype=np.float64)


def _column(looks: pd.DataFrame, name: str) -> NDArray[np.float64]:
    return _numbers(looks[PREFIX + name])


def _column_label(looks: pd.DataFrame, name: str) -> str:
    values = looks[PREFIX + name].dropna().unique()
    word = name.rsplit(" ", 1)[-1]
    return f"{word} {values[0]:g}" if len(values) == 1 else word


def _limits(about: Known, looks: pd.DataFrame) -> Iterator[tuple[str, NDArray[np.float64]]]:
    current = _numbers(looks["current"])
    for limit in about.thresholds:
        if limit.a_worker:
            # What a fleet of no worker can be asked to do is not nothing: one worker starts it.
            yield (
                f"{limit.name}: {limit.value:g} a worker × current workers",
                limit.value * np.maximum(current, 1.0),
            )
        else:
            yield f"{limit.name} {limit.value:g}", np.full(len(looks), limit.value)


# ------------------------------------------------------------ what the policies of a scenario compare


def _known(result: RunResult) -> dict[str, Known]:
    """Units and thresholds by name of value; of a policy handed to `run` there is only what its decisions say."""
    from dynamo_sim.autoscaling.build import build_autoscaler
    from dynamo_sim.errors import DynamoSimError

    spec = getattr(result.scenario, "autoscaler", None)
    if spec is None or not _kinds(spec.chosen) <= {*REBUILT, "manifest", "fixed", "schedule"}:
        return {}
    try:
        loops = build_autoscaler(spec, result.scenario)._loops
    except (DynamoSimError, OSError):  # a manifest that is not there any more, say
        return {}
    if not set(result.decisions["loop"].unique()) <= {loop.name for loop in loops}:
        return {}
    found: dict[str, Known] = {}
    for loop in loops:
        for name, known in _of_policy(loop.policy):
            before = found.get(name, Known())
            limits = dict.fromkeys((*before.thresholds, *known.thresholds))
            found[name] = Known(before.unit or known.unit, tuple(limits))
    return found


def _kinds(spec: Any) -> set[str]:
    below = getattr(spec, "floor_policy", None)
    return {spec.kind} | (set() if below is None else _kinds(below))


def _of_policy(policy: Any) -> Iterator[tuple[str, Known]]:
    from dynamo_sim.autoscaling.kubernetes.hpa import HpaPolicy
    from dynamo_sim.autoscaling.kubernetes.kpa.policy import KpaTick
    from dynamo_sim.autoscaling.policies.predictive import PredictivePolicy
    from dynamo_sim.autoscaling.policies.queue_proportional import QueueProportionalPolicy
    from dynamo_sim.autoscaling.policies.sla import SlaPolicy
    from dynamo_sim.autoscaling.policies.step_scaling import StepScalingPolicy
    from dynamo_sim.autoscaling.policies.target_tracking import TargetTrackingPolicy

    if isinstance(policy, TargetTrackingPolicy):
        yield _about(policy.query, Threshold(policy.target, a_worker=policy.kind == "total"))
    elif isinstance(policy, StepScalingPolicy):
        for alarm in policy.alarms:
            name = "alarm up from" if alarm.direction == "up" else "alarm down to"
            yield _about(alarm.query, Threshold(alarm.threshold, name))
    elif isinstance(policy, QueueProportionalPolicy):
        limit = Threshold(policy.per_worker, "all of it", a_worker=True)
        for name in ("router_queue", "waiting", "running")[: len(policy.reads)]:
            yield name, Known(f"requests{IN_TOTAL}", (limit,))
    elif isinstance(policy, PredictivePolicy):
        name, known = _about(policy.query, Threshold(policy.per_worker, a_worker=True))
        yield from ((name, known), ("forecast", known))
        yield from _of_policy(policy.floor_policy)
    elif isinstance(policy, HpaPolicy):
        sources = getattr(policy, "sources", ())
        for index, metric in enumerate(policy.spec.metrics):
            own = getattr(sources[index], "query", None) if index < len(sources) else metric.query
            yield metric.name or str(metric.query), replace(_about_hpa(metric), unit=_unit_hpa(metric, own))
    elif isinstance(policy, KpaTick):
        unit = "requests" if policy.settings.metric == "concurrency" else "requests/s"
        limit = Threshold(policy.settings.target_value, a_worker=True)
        yield from ((name, Known(unit + IN_TOTAL, (limit,))) for name in ("stable", "panic"))
    elif isinstance(policy, SlaPolicy):
        for name in ("ttft_ms", "itl_ms"):
            yield f"estimated_{name}", Known("ms", (Threshold(getattr(policy.settings, name)),))


def _about(query: MetricQuery, *thresholds: Threshold) -> tuple[str, Known]:
    return str(query), Known(_unit(query) + _spread(query), thresholds)


def _about_hpa(metric: Any) -> Known:
    if metric.target_type == "Utilization":
        return Known("", (Threshold(metric.target / 100 * metric.request_milli / 1000),))
    total = metric.source in ("Object", "External") and metric.target_type == "AverageValue"
    return Known("", (Threshold(metric.target / 1000, a_worker=total),))


def _unit_hpa(metric: Any, query: MetricQuery | None) -> str:
    """With the words that tell the two kinds of HPA metrics apart; a formula's result has no unit."""
    if query is None:
        return ""
    return _unit(query) + (_spread(query) if metric.source in ("Object", "External") else PER_WORKER)


def _spread(query: MetricQuery) -> str:
    """Whether a number is one of the whole fleet or of its workers; what is pooled is neither."""
    if query.reduce == "merge":
        return ""
    if query.reduce == "sum" or not query.spec.per_worker:
        return IN_TOTAL
    return PER_WORKER if query.reduce == "avg" else f"{PER_WORKER} ({query.reduce})"


def _unit(query: MetricQuery | None) -> str:
    if query is None:
        return ""
    counts_events = query.spec.kind.value == "histogram" and query.over == "rate"
    unit = "observations" if counts_events else query.spec.unit
    if query.over == "rate" and query.spec.kind.value != "ratio":
        unit += "/s"
    if query.scale == 1.0:
        return unit
    return "s" if (unit, query.scale) == ("ms", 0.001) else f"{query.scale:g} × {unit}"


def _unit_of_name(name: str) -> str:
    """The unit a value's name suggests: that of the metric it is named after."""
    from dynamo_sim.autoscaling.metrics.catalogue import METRICS

    if name in UNITS:
        return UNITS[name]
    for word in re.findall(r"\w+", name):
        if word in METRICS:
            return METRICS[word].unit + ("/s" if "rate(" in name else "")
    return "ms" if name.endswith("_ms") else ""
