"""Scale for what the metric will be when a new worker is ready (`spec 10, 5`)."""

from __future__ import annotations

import math

from dynamo_sim.autoscaling.decision import Decision, Policy
from dynamo_sim.autoscaling.fleet_view import FleetView, View
from dynamo_sim.autoscaling.loop import loops_of, reads_of
from dynamo_sim.autoscaling.metrics.query import MetricQuery
from dynamo_sim.autoscaling.policies.forecast import METHODS, exponential_smoothing, forecast


class BinnedHistory:
    """Means of what was seen in equal bins of time; a bin without a look repeats the one before it."""

    def __init__(self, bin_s: float) -> None:
        self.bin_s = bin_s
        self.complete: list[float] = []
        self._bin: int | None = None
        self._seen: list[float] = []

    def add(self, now_s: float, value: float | None) -> None:
        """Note a look, and close the bins that are over."""
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


class PredictivePolicy:
    """The largest forecast of the horizon, divided by what one worker can do; never less than a reactive policy wants.

    Args:
        query: the metric, as a total of the fleet (such as a rate of requests).
        per_worker: how much of it one worker can do.
        bin_s: length of a bin of its history.
        floor_policy: the reactive policy; it looks whenever this one does.
        horizon_s: how far ahead; None for the fleet's startup time, rounded up to bins, at least one.
        method: ``holt_winters`` (needs the extra ``predictive``), ``seasonal_naive`` or ``linear``.
        season_bins: length of a season, or None.

    Raises:
        ValueError: an unknown method, or a number that makes no sense.
        ImportError: the method needs a package that is not installed.
    """

    def __init__(
        self,
        query: MetricQuery,
        per_worker: float,
        bin_s: float,
        floor_policy: Policy,
        horizon_s: float | None = None,
        method: str = "holt_winters",
        season_bins: int | None = None,
    ) -> None:
        if method not in METHODS:
            raise ValueError(f"method is one of {', '.join(METHODS)}, got {method!r}")
        if method == "seasonal_naive" and season_bins is None:
            raise ValueError("seasonal_naive needs season_bins")
        if not (per_worker > 0 and bin_s > 0) or (horizon_s is not None and not horizon_s > 0):
            raise ValueError("per_worker, bin_s and horizon_s are above 0")
        if method == "holt_winters":
            exponential_smoothing()
        floor_loops = loops_of(floor_policy, "floor")
        if len(floor_loops) != 1:
            raise ValueError("floor_policy must be a policy of one loop")
        self.query = query
        self.per_worker = per_worker
        self.floor_policy = floor_policy
        self.horizon_s = horizon_s
        self.method = method
        self.season_bins = season_bins
        self.history = BinnedHistory(bin_s)
        below = reads_of(floor_policy)
        self.reads = None if below is None else (query, *below)
        self.needs_passes = bool(getattr(floor_policy, "needs_passes", False))
        self._peak: tuple[int, int, float] | None = None

    def decide(self, now_s: float, view: View, fleet: FleetView) -> Decision:
        floor = self.floor_policy.decide(now_s, view, fleet)
        reactive = floor if isinstance(floor, Decision) else Decision(floor)
        value = view.value(self.query)
        self.history.add(now_s, value)
        values = {**reactive.values, str(self.query): value, "forecast": None, "reactive": reactive.target}
        if not self.history.complete:
            return Decision(reactive.target, reactive.reason or "no history", values=values)
        peak = values["forecast"] = self._forecast(now_s, fleet)
        ahead = math.ceil(peak / self.per_worker)
        least = fleet.effective if reactive.target is None else reactive.target
        if ahead > least:
            return Decision(ahead, "forecast", ahead, values=values, next_at_s=reactive.next_at_s)
        return Decision(reactive.target, reactive.reason, ahead, values=values, next_at_s=reactive.next_at_s)

    def _forecast(self, now_s: float, fleet: FleetView) -> float:
        history = self.history
        horizon = self.horizon_s
        if horizon is None:
            horizon = max(1, math.ceil(fleet.startup_s / history.bin_s)) * history.bin_s
        steps = max(1, math.ceil((now_s + horizon - history.end_s) / history.bin_s - 1e-9))
        known = (len(history.complete), steps)
        if self._peak is None or self._peak[:2] != known:  # a fit a bin is enough
            found = forecast(self.method, history.complete, steps, self.season_bins)
            self._peak = (*known, max(found))
        return self._peak[2]
