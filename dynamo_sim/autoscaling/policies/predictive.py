"""Scale for what the metric will be when a new worker is ready (`spec 10, 5`)."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import replace

from dynamo_sim.autoscaling.decision import Decision
from dynamo_sim.autoscaling.fleet_facts import FleetFacts
from dynamo_sim.autoscaling.fleet_view import FleetView, View
from dynamo_sim.autoscaling.metrics.query import MetricQuery
from dynamo_sim.autoscaling.policies.forecast import exponential_smoothing, forecast
from dynamo_sim.autoscaling.policy import Policy, adapted, loops_of
from dynamo_sim.records.readings import Reading, Threshold
from dynamo_sim.scenario.autoscaler.predictive import PredictiveScaling


class BinnedHistory:
    """Means of what was seen in equal bins of time; a bin without an evaluation repeats the one before it."""

    def __init__(self, bin_s: float) -> None:
        self.bin_s = bin_s
        self.complete: list[float] = []
        self._bin: int | None = None
        self._seen: list[float] = []

    def add(self, now_s: float, value: float | None) -> None:
        """Note a value, and close the bins that are over."""
        number = math.floor(now_s / self.bin_s)
        if self._bin is not None and number > self._bin:
            if self._seen:
                self.complete.append(sum(self._seen) / len(self._seen))
            elif self.complete:
                self.complete.append(self.complete[-1])
            if self.complete:
                self.complete.extend([self.complete[-1]] * (number - self._bin - 1))
            self._seen = []
        self._bin = number
        if value is not None:
            self._seen.append(value)

    @property
    def end_s(self) -> float:
        """When the last complete bin ended."""
        return 0.0 if self._bin is None else self._bin * self.bin_s


class PredictivePolicy(Policy):
    """The largest forecast of the horizon, divided by what one worker can do; never below a reactive policy.

    Args:
        spec: its keys; its ``floor_policy`` is left to whoever builds ``floor``.
        floor: the reactive policy; it is evaluated whenever this one is.

    Raises:
        ValueError: ``floor`` is made of several loops.
        ImportError: the method needs a package that is not installed.
    """

    def __init__(self, spec: PredictiveScaling, floor: Policy) -> None:
        if spec.method == "holt_winters":
            exponential_smoothing()
        if len(loops_of(floor, "floor")) != 1:
            raise ValueError("floor_policy must be a policy of one loop")
        self.spec = spec
        self.floor = adapted(floor)
        self.query = MetricQuery.of_fleet(spec)
        self.history = BinnedHistory(spec.bin_s)
        below = self.floor.queries
        self.reads = None if below is None else (self.query, *below)
        self.needs_passes = self.floor.needs_passes
        self.period_s = self.floor.period_s
        self._peak: tuple[int, int, float] | None = None

    def readings(self) -> list[Reading] | None:
        below = self.floor.readings()
        if below is None:
            return None
        own = self.query.reading(Threshold(self.spec.per_worker, per_worker=True))
        return [own, replace(own, name="forecast"), *below]

    def caveats(self, facts: FleetFacts) -> Iterable[str]:
        return self.floor.caveats(facts)

    def decide(self, now_s: float, view: View, fleet: FleetView) -> Decision:
        below = self.floor.decide(now_s, view, fleet)
        reactive = below if isinstance(below, Decision) else Decision(below)
        value = view.value(self.query)
        self.history.add(now_s, value)
        values = {**reactive.values, str(self.query): value, "forecast": None, "reactive": reactive.target}
        if not self.history.complete:
            return Decision(reactive.target, reactive.reason or "no history", values=values)
        peak = values["forecast"] = self._forecast(now_s, fleet)
        ahead = math.ceil(peak / self.spec.per_worker)
        least = fleet.effective if reactive.target is None else reactive.target
        if ahead > least:
            return Decision(ahead, "forecast", ahead, values=values, next_at_s=reactive.next_at_s)
        return Decision(reactive.target, reactive.reason, ahead, values=values, next_at_s=reactive.next_at_s)

    def _forecast(self, now_s: float, fleet: FleetView) -> float:
        history = self.history
        horizon = self.spec.horizon_s
        if horizon is None:
            horizon = max(1, math.ceil(fleet.startup_s / history.bin_s)) * history.bin_s
        steps = max(1, math.ceil((now_s + horizon - history.end_s) / history.bin_s - 1e-9))
        known = (len(history.complete), steps)
        if self._peak is None or self._peak[:2] != known:  # a fit a bin is enough
            found = forecast(self.spec.method, history.complete, steps, self.spec.season_bins)
            self._peak = (*known, max(found))
        return self._peak[2]
