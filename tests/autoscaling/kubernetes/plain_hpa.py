"""The controller of the HorizontalPodAutoscaler, written down plainly from its code (Kubernetes 1.36).

Slow and obvious: one function a function of `replica_calculator.go` and `horizontal.go`, lists in place of windows. It
shares no code with the package; `test_random_timelines.py` holds the package against it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any


@dataclass
class PlainPod:
    name: int
    phase: str
    deleting: bool = False
    ready: bool = False
    ready_since: float = 0.0
    started: float = 0.0


@dataclass
class PlainMetric:
    """A metric of the spec, and what there is of it at a sync."""

    kind: str  # Pods, cpu, memory, External
    target_type: str  # AverageValue, Value, Utilization
    target: int  # thousandths, or percent
    request: int = 1000
    samples: dict[int, tuple[int, float, float]] | None = None
    total: int | None = None


class NoMetric(Exception):
    pass


@dataclass
class PlainHpa:
    minimum: int
    maximum: int
    behavior: dict[str, Any] | None
    up_tolerance: float
    down_tolerance: float
    window: float = 300.0
    cpu_initialization: float = 300.0
    readiness_delay: float = 30.0
    recommendations: list[tuple[int, float]] = field(default_factory=list)
    ups: list[tuple[int, float]] = field(default_factory=list)
    downs: list[tuple[int, float]] = field(default_factory=list)

    def reconcile(self, now: float, current: int, pods: list[PlainPod], metrics: list[PlainMetric]) -> int:
        if not self.recommendations:
            self.recommendations.append((current, now))
        if current == 0 and self.minimum != 0:
            return 0
        if current > self.maximum:
            desired = self.maximum
        elif current < self.minimum:
            desired = self.minimum
        else:
            proposed = self.from_metrics(now, current, pods, metrics)
            if proposed is None:
                return current
            if self.behavior is None:
                desired = self.plain_limits(current, self.plain_stabilised(now, proposed))
            else:
                desired = self.rate_limits(now, current, self.stabilised(now, current, proposed))
        if self.behavior is not None and desired > current:
            self.store(self.ups, desired - current, now, self.behavior["up"])
        if self.behavior is not None and desired < current:
            self.store(self.downs, current - desired, now, self.behavior["down"])
        return desired

    # ---------------------------------------------------------------- metrics

    def from_metrics(
        self, now: float, current: int, pods: list[PlainPod], metrics: list[PlainMetric]
    ) -> int | None:
        largest, invalid = -1, 0
        for metric in metrics:
            try:
                largest = max(largest, self.from_metric(now, current, pods, metric))
            except NoMetric:
                invalid += 1
        if invalid == len(metrics) or (invalid and largest < current):
            return None
        return largest

    def from_metric(self, now: float, current: int, pods: list[PlainPod], metric: PlainMetric) -> int:
        if metric.kind != "External":
            return self.from_samples(now, current, pods, metric)
        if metric.total is None:
            raise NoMetric
        if metric.target_type == "Value":
            ratio = metric.total / metric.target
            if current == 0:
                return math.ceil(ratio)
            if self.within(ratio):
                return current
            if not pods:
                raise NoMetric
            ready = [pod for pod in pods if pod.phase == "Running" and pod.ready]
            return math.ceil(ratio * len(ready))
        ratio = metric.total / (metric.target * current) if current else math.inf
        return current if self.within(ratio) else math.ceil(metric.total / metric.target)

    def from_samples(self, now: float, current: int, pods: list[PlainPod], metric: PlainMetric) -> int:
        samples = dict(metric.samples or {})
        if not pods:
            raise NoMetric
        ready, unready, missing, ignored = 0, set(), set(), set()
        for pod in pods:
            if pod.deleting or pod.phase == "Failed":
                ignored.add(pod.name)
            elif pod.phase == "Pending":
                unready.add(pod.name)
            elif pod.name not in samples:
                missing.add(pod.name)
            elif metric.kind == "cpu" and self.not_yet_ready(now, pod, samples[pod.name]):
                unready.add(pod.name)
            else:
                ready += 1
        values = {name: sample[0] for name, sample in samples.items() if name not in ignored | unready}
        if not values:
            raise NoMetric
        ratio = self.ratio(values, metric)
        up_with_unready = bool(unready) and ratio > 1.0
        if not up_with_unready and not missing:
            return current if self.within(ratio) else math.ceil(ratio * ready)
        for name in missing:
            if ratio < 1.0:
                if metric.target_type == "Utilization":
                    values[name] = metric.request * max(100, metric.target) // 100
                else:
                    values[name] = metric.target
            elif ratio > 1.0:
                values[name] = 0
        if up_with_unready:
            values.update(dict.fromkeys(unready, 0))
        again = self.ratio(values, metric)
        if self.within(again) or ratio < 1.0 < again or again < 1.0 < ratio:
            return current
        replicas = math.ceil(again * len(values))
        if (again < 1.0 and replicas > current) or (again > 1.0 and replicas < current):
            return current
        return replicas

    def ratio(self, values: dict[int, int], metric: PlainMetric) -> float:
        if metric.target_type == "Utilization":
            return (sum(values.values()) * 100 // (metric.request * len(values))) / metric.target
        return (sum(values.values()) // len(values)) / metric.target

    def not_yet_ready(self, now: float, pod: PlainPod, sample: tuple[int, float, float]) -> bool:
        _, taken, over = sample
        if pod.started + self.cpu_initialization > now:
            return not pod.ready or taken < pod.ready_since + over
        return not pod.ready and pod.started + self.readiness_delay > pod.ready_since

    def within(self, ratio: float) -> bool:
        return 1.0 - self.down_tolerance <= ratio <= 1.0 + self.up_tolerance

    # ---------------------------------------------------------------- without behavior

    def plain_stabilised(self, now: float, proposed: int) -> int:
        young = [replicas for replicas, at in self.recommendations if not at < now - self.window]
        self.remember(proposed, now, [at < now - self.window for _, at in self.recommendations])
        return max([proposed, *young])

    def plain_limits(self, current: int, desired: int) -> int:
        if desired < self.minimum:
            return self.minimum
        return min(desired, self.maximum, int(max(2.0 * current, 4.0)))

    # ---------------------------------------------------------------- with behavior

    def stabilised(self, now: float, current: int, proposed: int) -> int:
        assert self.behavior is not None
        up, down = now - self.behavior["up"]["window"], now - self.behavior["down"]["window"]
        lowest = min([proposed, *(replicas for replicas, at in self.recommendations if at > up)])
        highest = max([proposed, *(replicas for replicas, at in self.recommendations if at > down)])
        self.remember(proposed, now, [at < up and at < down for _, at in self.recommendations])
        return min(max(current, lowest), highest)

    def remember(self, proposed: int, now: float, is_old: list[bool]) -> None:
        if any(is_old):
            last = max(index for index, old in enumerate(is_old) if old)
            self.recommendations[last] = (proposed, now)
        else:
            self.recommendations.append((proposed, now))

    def rate_limits(self, now: float, current: int, desired: int) -> int:
        assert self.behavior is not None
        if desired > current:
            rules = self.behavior["up"]
            limits = []
            for kind, value, period in rules["policies"]:
                start = self.at_the_start(now, current, period)
                limits.append(start + value if kind == "Pods" else math.ceil(start * (1 + value / 100)))
            limit = {"Max": max, "Min": min, "Disabled": lambda _: current}[rules["select"]](limits)
            return min(desired, self.maximum, max(limit, current))
        if desired < current:
            rules = self.behavior["down"]
            limits = []
            for kind, value, period in rules["policies"]:
                start = self.at_the_start(now, current, period)
                limits.append(start - value if kind == "Pods" else int(start * (1 - value / 100)))
            limit = {"Max": min, "Min": max, "Disabled": lambda _: current}[rules["select"]](limits)
            return max(desired, self.minimum, min(limit, current))
        return desired

    def at_the_start(self, now: float, current: int, period: float) -> int:
        added = sum(change for change, at in self.ups if at > now - period)
        deleted = sum(change for change, at in self.downs if at > now - period)
        return current - added + deleted

    def store(self, events: list[tuple[int, float]], change: int, now: float, rules: dict[str, Any]) -> None:
        longest = max(period for _, _, period in rules["policies"])
        old = [index for index, (_, at) in enumerate(events) if at < now - longest]
        if old:
            events[old[-1]] = (change, now)
        else:
            events.append((change, now))
