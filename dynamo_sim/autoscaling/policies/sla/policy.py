"""The built-in ``sla`` policy (`spec 10, 6.7`)."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from statistics import median
from typing import Any

from dynamo_sim.autoscaling.decision import Decision
from dynamo_sim.autoscaling.fleet_facts import FleetFacts
from dynamo_sim.autoscaling.fleet_view import FleetView, View, WorkerPhase
from dynamo_sim.autoscaling.metrics.query import MetricQuery
from dynamo_sim.autoscaling.policies.forecast import exponential_smoothing, forecast
from dynamo_sim.autoscaling.policies.sla.capacity import EngineLimits, Traffic, requests_per_second
from dynamo_sim.autoscaling.policies.sla.pass_model import PassModel
from dynamo_sim.autoscaling.policies.sla.predictors import ConstantPredictor, KalmanPredictor, Predictor
from dynamo_sim.autoscaling.policies.sla.worker_load import Estimator, WorkerLoad
from dynamo_sim.autoscaling.policy import Policy
from dynamo_sim.records.readings import Reading, Threshold
from dynamo_sim.scenario.autoscaler.sla import SlaScaling

_IN_FRONT = MetricQuery("router_queue")


class SlaPolicy(Policy):
    """Scales an aggregated fleet by what its passes say.

    Args:
        spec: its keys, both targets among them.
        limits: of one worker.

    Raises:
        ValueError: a target is missing.
    """

    direct = True
    needs_passes = True

    def __init__(self, spec: SlaScaling, limits: EngineLimits | None = None) -> None:
        if spec.ttft_ms is None or spec.itl_ms is None:
            raise ValueError("ttft_ms and itl_ms are needed, here or in the section sla")
        self.spec = spec
        self.ttft_ms, self.itl_ms = spec.ttft_ms, spec.itl_ms
        self.limits = limits or EngineLimits()
        self.period_s = spec.interval_s
        self._started = MetricQuery("requests_started", "increase", "sum", spec.interval_s)
        self.reads = (self._started, _IN_FRONT)
        self._arrivals = _Arrivals()
        self.model = PassModel()
        self.floor: int | None = None
        self._last_pass: dict[int, tuple[float, Mapping[str, Any]]] = {}
        self._traffic = Traffic(0.0, 0.0)
        make = _predictor(spec.predictor)
        self._requests, self._isl, self._osl = make(), make(), make()
        self._since_s = 0.0
        self._window = _Window()

    def readings(self) -> list[Reading]:
        return [
            Reading("estimated_ttft_ms", "ms", (Threshold(self.ttft_ms),)),
            Reading("estimated_itl_ms", "ms", (Threshold(self.itl_ms),)),
            Reading("demand_rps", "requests/s"),
            Reading("capacity_rps", "requests/s"),
            Reading("predicted_isl", "tokens"),
            Reading("predicted_osl", "tokens"),
        ]

    def caveats(self, facts: FleetFacts) -> Iterator[str]:
        endless = "" if facts.max_workers is not None else "; without max_workers it will ask for ever more"
        targets = {"ttft_ms": self.ttft_ms, "itl_ms": self.itl_ms}
        for (name, target), fastest in zip(targets.items(), facts.fastest_ms(), strict=True):
            if target < fastest:
                yield (
                    f"{name} {target:g} is less than the {fastest:.4g} ms that a single token takes on an idle worker: "
                    f"no fleet keeps it{endless}"
                )

    def decide(self, now_s: float, view: View, fleet: FleetView) -> Decision:
        self._arrivals.add(view.value(self._started) or 0.0, view.value(_IN_FRONT) or 0.0)
        self._observe(view.bridge(), now_s)
        values: dict[str, float | None] = {}
        planned: Decision | None = None
        if self.spec.mode != "load" and now_s >= self._since_s + self.spec.throughput_interval_s:
            planned = self._plan(now_s, values)
        if self.spec.mode == "throughput":
            return planned or Decision(None, "between intervals", values=values)
        return self._react(now_s, fleet, values)

    # ------------------------------------------------------------ what was seen

    def _observe(self, tick: Mapping[str, Any], now_s: float) -> None:
        snapshots = tick["decode_fpm_snapshots"]
        self.model.observe(snapshots)
        for row in snapshots:
            self._last_pass[row["worker_id"]] = (now_s, row)
        traffic = tick["traffic"]
        self._window.add(traffic)
        if traffic["num_req"]:
            self._traffic = Traffic(
                traffic["avg_isl"],
                traffic["avg_osl"],
                traffic["avg_kv_hit_rate"],
                max(1.0, traffic["avg_accept_length"] or 1.0),
            )

    def _loads(self, now_s: float, fleet: FleetView) -> list[WorkerLoad] | None:
        active = [worker.id for worker in fleet.workers if worker.phase is WorkerPhase.READY]
        self._last_pass = {worker: seen for worker, seen in self._last_pass.items() if worker in set(active)}
        loads = []
        for worker in active:
            at_s, row = self._last_pass.get(worker, (-math.inf, None))
            if row is None and self.spec.strict:
                return None
            stale = row is None or (not self.spec.strict and now_s - at_s > self.spec.stale_s)
            loads.append(WorkerLoad() if stale or row is None else WorkerLoad.of_pass(row))
        return loads

    # ------------------------------------------------------------ throughput

    def _plan(self, now_s: float, values: dict[str, float | None]) -> Decision:
        window, seconds = self._window, now_s - self._since_s
        self._window, self._since_s = _Window(), now_s
        for predictor, value in (
            (self._requests, self._arrivals.take()),
            (self._isl, window.isl if window.requests else self._traffic.isl),
            (self._osl, window.osl if window.requests else self._traffic.osl),
        ):
            predictor.add(value)
        isl, osl = max(0.0, self._isl.predict()), max(0.0, self._osl.predict())
        demand = max(0.0, self._requests.predict()) / seconds
        values |= {"demand_rps": demand, "predicted_isl": isl, "predicted_osl": osl}
        if not self.model.is_ready or isl <= 0 or osl <= 0:
            return Decision(None, "model not ready", values=values)
        ahead = Traffic(isl, osl, self._traffic.hit_rate, self._traffic.accept_length)
        rate = requests_per_second(self.model, self.limits, ahead, self.ttft_ms, self.itl_ms)
        values["capacity_rps"] = rate
        self.floor = max(math.ceil(demand / rate), self.spec.min_workers)
        return Decision(self.floor, "throughput", self.floor, values=values)

    # ------------------------------------------------------------ load

    def _react(self, now_s: float, fleet: FleetView, values: dict[str, float | None]) -> Decision:
        spec, effective = self.spec, fleet.effective
        floor = max(self.floor or 0, spec.min_workers)
        if spec.strict and fleet.starting:
            return Decision(None, "scaling_in_progress", values=values)
        loads = self._loads(now_s, fleet)
        if loads is None:
            return Decision(
                None, "worker_count_mismatch" if self._last_pass else "no_fpm_data", values=values
            )
        if not loads or not self.model.is_ready:
            reason = "insufficient_data" if loads else "no active worker"
            return Decision(floor if floor > effective else None, reason, values=values)
        estimator = Estimator(self.model, self._traffic, self.limits.max_num_batched_tokens)
        ttfts = [estimator.ttft_ms(load) for load in loads]
        itls = [estimator.itl_ms(load) for load in loads]
        values |= {"estimated_ttft_ms": max(ttfts), "estimated_itl_ms": max(itls), "floor": float(floor)}
        desired, reason = self._desired(estimator, loads, min(ttfts), min(itls), fleet)
        if desired >= floor:
            return Decision(desired, reason, desired, values=values)
        if floor > effective:
            reason = "throughput" if floor == self.floor else "at the smallest fleet"
        elif reason == "scale_down":
            reason = "scale_down_capped_by_throughput" if floor == self.floor else "at the smallest fleet"
        return Decision(floor, reason, desired, values=values)

    def _desired(
        self,
        estimator: Estimator,
        loads: list[WorkerLoad],
        least_ttft_ms: float,
        least_itl_ms: float,
        fleet: FleetView,
    ) -> tuple[int, str]:
        """Workers that the present loads ask for, and why; the plan by traffic aside.

        Args:
            estimator: of the present traffic.
            loads: one an active worker.
            least_ttft_ms, least_itl_ms: the best estimates among the workers.
            fleet: the workers.
        """
        active, effective = fleet.active, fleet.effective
        if least_ttft_ms > self.ttft_ms or least_itl_ms > self.itl_ms:
            enough = active + 1 if self.spec.strict else self._enough(estimator, loads)
            return (enough, "scale_up") if enough > effective else (effective, "starting workers suffice")
        survivors = active if fleet.starting else active - 1
        if survivors >= 1 and all(self._fits(estimator, load, active / survivors) for load in loads):
            return effective - 1, "scale_down"
        return effective, "no_change"

    def _enough(self, estimator: Estimator, loads: list[WorkerLoad]) -> int:
        """The smallest fleet for which the median worker would meet both targets."""
        spec, active = self.spec, len(loads)
        most = spec.max_step or max(active, 8)
        for more in range(1, most + 1):
            scale = active / (active + more)
            ttft = median(estimator.ttft_ms(load, scale, scale) for load in loads)
            itl = median(estimator.itl_ms(load, scale) for load in loads)
            if ttft <= self.ttft_ms and itl <= self.itl_ms:
                return active + more
        return active + most

    def _fits(self, estimator: Estimator, load: WorkerLoad, scale: float) -> bool:
        """Whether a worker would keep its targets, with margin, when the others' load is added to it."""
        spec = self.spec
        own = estimator.ttft_ms(load, 0.0, scale, all_decodes=True)
        queued = estimator.ttft_ms(load, scale, scale, all_decodes=True) - own
        if queued >= (self.ttft_ms - own) * spec.sensitivity:
            return False
        if estimator.itl_ms(load, scale, prompts_too=True) >= self.itl_ms * spec.sensitivity:
            return False
        limit = self.limits.max_kv_tokens
        return limit is None or load.kv_tokens * scale < limit


class _Arrivals:
    """Requests that arrived since the last plan: those given to a worker, and the growth of the router queue.

    An overloaded fleet finishes what it can, so what has finished says nothing about demand.
    """

    def __init__(self) -> None:
        self._count = 0.0
        self._queued = 0.0

    def add(self, started: float, queued: float) -> None:
        """Requests given to workers since the last evaluation, and those that wait in front of the fleet now."""
        self._count += started + queued - self._queued
        self._queued = queued

    def take(self) -> float:
        """How many there were, to begin anew."""
        count, self._count = max(0.0, self._count), 0.0
        return count


class _Window:
    """Lengths of the requests that finished in a throughput interval."""

    def __init__(self) -> None:
        self.requests = 0
        self._input = 0.0
        self._output = 0.0

    def add(self, traffic: Mapping[str, Any]) -> None:
        self.requests += traffic["num_req"]
        self._input += traffic["avg_isl"] * traffic["num_req"]
        self._output += traffic["avg_osl"] * traffic["num_req"]

    @property
    def isl(self) -> float:
        return self._input / self.requests if self.requests else 0.0

    @property
    def osl(self) -> float:
        return self._output / self.requests if self.requests else 0.0


class _HoltWinters:
    """One-step forecasts by Holt's method."""

    def __init__(self) -> None:
        exponential_smoothing()
        self._history: list[float] = []

    def add(self, value: float) -> None:
        if self._history or value:
            self._history.append(value)

    def predict(self) -> float:
        return forecast("holt_winters", self._history, 1)[0] if self._history else 0.0


def _predictor(name: str) -> Callable[[], Predictor]:
    makers: dict[str, Callable[[], Predictor]] = {
        "constant": ConstantPredictor,
        "kalman": KalmanPredictor,
        "holt_winters": _HoltWinters,
    }
    return makers[name]
