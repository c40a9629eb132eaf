"""What the values beside a decision mean: their units, and the thresholds at which a policy acts."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Threshold:
    """Where a policy acts.

    Attributes:
        value: in the unit of the reading.
        name: for legends.
        per_worker: whether it counts once for each of the current workers.
    """

    value: float
    name: str = "target"
    per_worker: bool = False


@dataclass(frozen=True, slots=True)
class Reading:
    """A metric that a policy reads.

    Attributes:
        name: of its values in the table of decisions.
        unit: of its values, and whether they are per worker or in total; empty where it is not known.
        thresholds: where the policy acts.
        fleet: name of the fleet that the policy scales; empty where there is only one.
    """

    name: str
    unit: str = ""
    thresholds: tuple[Threshold, ...] = ()
    fleet: str = ""
