"""What is wrong, or doubtful, with the formula of scaling modifiers, said before a run (`spec 10, 3.5`)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import islice, product

from dynamo_sim.autoscaling.kubernetes.keda.formula import Formula
from dynamo_sim.autoscaling.kubernetes.keda.scalers import OUTSIDE_CRON
from dynamo_sim.autoscaling.kubernetes.keda.spec import (
    CronTrigger,
    Modifiers,
    ResourceTrigger,
    ScaledObjectSpec,
    Trigger,
)
from dynamo_sim.autoscaling.metrics.query import MetricQuery

UNBOUNDED = (0.0, 1.0, 1000.0)
"""Values tried for a metric without a largest one."""

MAX_TRIALS = 5000

Ceiling = Callable[[MetricQuery, int], float | None]


def misread_names(formula: Formula, triggers: Sequence[Trigger]) -> list[str]:
    """Names in a formula that have no value, and why."""
    found = []
    resources = {trigger.name for trigger in triggers if isinstance(trigger, ResourceTrigger)}
    names = {trigger.name for trigger in triggers if trigger.name}
    for name in formula.names:
        if name in resources:
            found.append(f"{name!r} is a trigger on a resource, which has no value for a formula")
        elif name not in names:
            there = f"; there are {', '.join(sorted(names - resources))}" if names - resources else ""
            found.append(f"there is no trigger named {name!r}{there}")
    return found


def shared_names(triggers: Sequence[Trigger]) -> list[str]:
    """Names that more than one trigger has."""
    names = [trigger.name for trigger in triggers if trigger.name]
    return [name for name in dict.fromkeys(names) if names.count(name) > 1]


def doubtful_formula(spec: ScaledObjectSpec, ceiling: Ceiling) -> list[str]:
    """One line each for a formula that reads no trigger, can fail, or can be negative.

    Args:
        spec: of a ScaledObject; without modifiers there is nothing to say.
        ceiling: the largest answer to a query, where there is one; of a sum over so many workers.
    """
    return [] if spec.modifiers is None else list(_lines(spec.modifiers, spec, ceiling))


def _lines(modifiers: Modifiers, spec: ScaledObjectSpec, ceiling: Ceiling) -> Iterator[str]:
    formula = modifiers.formula
    called = f"the formula {formula.text!r}"
    if not formula.names:
        yield f"{called} reads no trigger: its value is the same for ever"
    others = [t for t in spec.triggers if not isinstance(t, ResourceTrigger) and t.name not in formula.names]
    if formula.names and others:
        names = ", ".join(trigger.name or "a trigger without a name" for trigger in others)
        yield f"{called} does not read {names}: beside a formula that has no effect"
    values = {trigger.name: _trials(trigger, spec.keys.max_replicas, ceiling) for trigger in spec.triggers}
    tried = product(*(values[name] for name in formula.names))
    failed = negative = ""
    for numbers in islice(tried, MAX_TRIALS):
        given = dict(zip(formula.names, numbers, strict=True))
        at = " and ".join(f"{name} = {value:g}" for name, value in given.items())
        try:
            result = formula(given)
        except ValueError as error:
            reason = str(error).removeprefix(f"formula {formula.text!r}: ")
            failed = (
                failed or f"{called} can fail ({reason}{' with ' if at else ''}{at}): then there is no metric"
            )
            continue
        if result is not None and result < 0:
            negative = negative or (
                f"{called} can be negative ({result:g}{' with ' if at else ''}{at}): that counts as 0"
            )
    yield from (line for line in (failed, negative) if line)


def _trials(trigger: Trigger, max_replicas: int, ceiling: Ceiling) -> tuple[float, ...]:
    if isinstance(trigger, CronTrigger):
        return OUTSIDE_CRON, float(trigger.desired)
    if isinstance(trigger, ResourceTrigger):
        return ()
    top = ceiling(trigger.query, max_replicas)
    return UNBOUNDED if top is None else (0.0, top / 2, top)
