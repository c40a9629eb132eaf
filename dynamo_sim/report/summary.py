"""The summary of a run: one dictionary of numbers (`spec 09, 2-4`)."""

from __future__ import annotations

from difflib import get_close_matches
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from dynamo_sim.engine.gaps import merged_gaps
from dynamo_sim.records.columns import RequestColumns
from dynamo_sim.records.percentiles import statistics
from dynamo_sim.records.records import DECODE, FLEET, PREFILL, RunRecords
from dynamo_sim.records.routing import LoadSpread, mean_hit_rate
from dynamo_sim.report.fleet_use import fleet_use
from dynamo_sim.report.tier_figures import tier_figures
from dynamo_sim.workload.request import Outcome

Number = int | float

DISTRIBUTIONS = (
    "ttft_ms",
    "ttst_ms",
    "tpot_ms",
    "itl_ms",
    "e2e_latency_ms",
    "output_token_throughput_per_user",
)
"""Names of the distributions, in the order of the report; ``mean_ttft_ms`` is a statistic of the first."""

HOST_FIELDS = ("wall_time_ms", "processed_tokens_per_s", "processed_output_tokens_per_s")
"""Fields that tell how fast the simulator ran; the only ones that differ between two runs of a scenario."""


LENGTHS = ("input_tokens", "output_tokens")
"""Distributions of lengths over the requests that count; the output is the requested one."""

STATISTICS = ("mean", "min", "max", "median", "p75", "p90", "p95", "p99", "std")

EXTRA_FIELDS = (
    *(f"{statistic}_{name}" for name in LENGTHS for statistic in STATISTICS),
    "rejected_requests",
    "failed_requests",
    "unfinished_requests",
    "preemptions",
    "scale_changes",
    "within_sla_requests",
    "within_sla",
)
"""Fields that the reference's report does not have; they stand behind its fields."""

ROUTING_FIELDS = ("routing_hit_rate", "load_imbalance")
"""The last fields, where decisions of the router were recorded."""


class Sla(Protocol):
    """Bounds that a good request keeps, each in ms or None (`spec 09, 4`)."""

    @property
    def ttft_ms(self) -> float | None: ...
    @property
    def itl_ms(self) -> float | None: ...
    @property
    def e2e_ms(self) -> float | None: ...


class Summary(dict[str, Number]):
    """The fields of the report in its order, as items and as attributes: ``summary.p99_ttft_ms``.

    ``name in summary`` says whether a field is there: ``goodput_*`` and ``within_sla*`` only with an SLA,
    `HOST_FIELDS` only after `with_wall_time`.
    """

    def __getattr__(self, name: str) -> Number:
        try:
            return self[name]
        except KeyError:
            near = get_close_matches(name, self, 1)
            hint = f"; did you mean {near[0]!r}?" if near else ""
            raise AttributeError(f"the summary has no field {name!r}{hint}", name=name, obj=self) from None

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *self]

    def with_wall_time(self, wall_time_ms: float) -> Summary:
        """A copy that also tells how fast the simulator was, given the time it took.

        Args:
            wall_time_ms: time on the wall clock, > 0.
        """
        result = Summary()
        for name, value in self.without_wall_time().items():
            result[name] = value
            if name == "duration_ms":
                result["wall_time_ms"] = wall_time_ms
            elif name == "processed_tokens":
                result["processed_tokens_per_s"] = value / wall_time_ms * 1000.0
                result["processed_output_tokens_per_s"] = self["total_output_tokens"] / wall_time_ms * 1000.0
        return result

    def as_reference(self) -> Summary:
        """A copy with the fields of the reference's report only."""
        return Summary(
            {name: value for name, value in self.items() if name not in EXTRA_FIELDS + ROUTING_FIELDS}
        )

    def without_wall_time(self) -> Summary:
        """A copy with the fields that only depend on the scenario."""
        return Summary({name: value for name, value in self.items() if name not in HOST_FIELDS})


def summarise(records: RunRecords, sla: Sla | None = None, wall_time_ms: float | None = None) -> Summary:
    """Sum up a run.

    Args:
        records: what was observed.
        sla: bounds for the goodput; without any bound the ``goodput_*`` fields are left out.
        wall_time_ms: how long the simulation took on the wall clock, when that is to be reported.

    Returns:
        Whole numbers as int, all others as finite floats. Nothing depends on how gaps were grouped when they
        were noted, so a run with stretches and one without have the same summary to the bit.
    """
    everything = RequestColumns.of(records.requests)
    outcomes = np.array([request.outcome for request in records.requests], dtype=object)
    failed = outcomes == Outcome.FAILED
    served = everything.where(everything.counting & ~failed)
    duration_ms = float(served.last_token_ms.max()) if len(served) else 0.0
    seconds = max(duration_ms / 1000.0, 1e-9)
    inputs, outputs = int(served.input_tokens.sum()), int(served.output_tokens.sum())

    summary = Summary()
    summary["num_requests"] = len(everything)
    summary["completed_requests"] = len(served)
    summary["total_input_tokens"] = inputs
    summary["total_output_tokens"] = outputs
    summary["duration_ms"] = duration_ms
    summary["request_throughput_rps"] = len(served) / seconds
    summary["input_throughput_tok_s"] = inputs / seconds
    summary["output_throughput_tok_s"] = outputs / seconds
    summary["total_throughput_tok_s"] = (inputs + outputs) / seconds
    prefill, decode = records.fleet(PREFILL), records.fleet(DECODE if records.is_disaggregated else FLEET)
    summary["prefill_worker_seconds"] = float(prefill.worker_seconds)
    summary["decode_worker_seconds"] = float(decode.worker_seconds)
    summary["prefill_gpus_per_worker"] = prefill.gpus_per_worker if records.is_disaggregated else 0
    summary["decode_gpus_per_worker"] = decode.gpus_per_worker
    gpu_seconds = (
        prefill.worker_seconds * prefill.gpus_per_worker + decode.worker_seconds * decode.gpus_per_worker
    )
    summary["gpu_hours"] = gpu_seconds / 3600.0
    if sla is not None:
        summary.update(_goodput(served, sla, seconds))
    summary["processed_tokens"] = inputs + outputs
    reused, first_reused = int(served.reused_tokens.sum()), int(served.first_reused_tokens.sum())
    summary["prefix_cache_reused_ratio"] = reused / inputs if inputs else 0.0
    summary["first_admission_prefix_cache_reused_ratio"] = first_reused / inputs if inputs else 0.0
    summary.update(_distributions(served, records))
    for name, lengths in zip(LENGTHS, (served.input_tokens, served.output_tokens), strict=True):
        spread = statistics(lengths.astype(np.float64))
        summary.update({f"{statistic}_{name}": value for statistic, value in spread.items()})
    summary["rejected_requests"] = int((outcomes == Outcome.REJECTED).sum())
    summary["failed_requests"] = int(failed.sum())
    summary["unfinished_requests"] = int((outcomes == None).sum())  # noqa: E711  (element by element)
    summary["preemptions"] = int(everything.preemptions.sum())
    end_ms = max(records.end_ms, duration_ms)
    summary["scale_changes"] = sum(fleet_use(fleet.changes, end_ms).changes for fleet in records.fleets)
    if sla is not None and has_bounds(sla):
        good = int(within_sla(everything.where(outcomes == Outcome.COMPLETED), sla).sum())
        summary["within_sla_requests"] = good
        summary["within_sla"] = good / max(len(everything), 1)
    summary.update(_routing(records, end_ms))
    if records.tier_use is not None:
        summary.update(tier_figures(records.requests, records.tier_use))
    return summary if wall_time_ms is None else summary.with_wall_time(wall_time_ms)


def _routing(records: RunRecords, end_ms: float) -> dict[str, Number]:
    """What was recorded of the router: how much it found cached, and how evenly it loaded the workers."""
    if not records.routing:
        return {}
    hit_rate = mean_hit_rate(records.routing)
    found: dict[str, Number] = {} if hit_rate is None else {"routing_hit_rate": hit_rate}
    return {**found, "load_imbalance": load_spread(records, end_ms).imbalance}


def load_spread(records: RunRecords, end_ms: float) -> LoadSpread:
    """Requests in flight on the workers that answer: those of the only fleet, or of decode."""
    fleet = records.fleets[-1]
    decisions = [decision for decision in records.routing if decision.fleet == fleet.name]
    workers = [(change.at_ms, change.active + change.draining) for change in fleet.changes]
    return LoadSpread.of(decisions, workers, end_ms)


def has_bounds(sla: Sla) -> bool:
    """Whether there is any bound."""
    return not (sla.ttft_ms is None and sla.itl_ms is None and sla.e2e_ms is None)


def within_sla(requests: RequestColumns, sla: Sla) -> NDArray[np.bool_]:
    """Which requests keep every bound; the mean gap is taken over the requested length, whatever was generated."""
    ttft_ms, e2e_ms, length = requests.ttft_ms, requests.e2e_ms, requests.output_tokens
    good = np.ones(len(requests), dtype=bool)
    if sla.ttft_ms is not None:
        good &= ttft_ms <= sla.ttft_ms
    if sla.itl_ms is not None:
        good &= (length <= 1) | ((e2e_ms - ttft_ms) / np.maximum(length - 1, 1) <= sla.itl_ms)
    if sla.e2e_ms is not None:
        good &= e2e_ms <= sla.e2e_ms
    return good


def _goodput(served: RequestColumns, sla: Sla, seconds: float) -> dict[str, Number]:
    """The ``goodput_*`` fields: as in the reference, requests that were cut off with the run can be good, too."""
    if not has_bounds(sla):
        return {}
    good = within_sla(served, sla)
    count = int(good.sum())
    return {
        "goodput_completed_requests": count,
        "goodput_request_throughput_rps": count / seconds,
        "goodput_output_throughput_tok_s": int(served.output_tokens[good].sum()) / seconds,
    }


def _distributions(served: RequestColumns, records: RunRecords) -> dict[str, Number]:
    """All statistics of all distributions, as ``mean_ttft_ms`` and so on."""
    gaps_ms, counts = merged_gaps(records.gaps)
    moving = slice(int(np.searchsorted(gaps_ms, 0.0, side="right")), None)
    ttst_ms, tpot_ms = served.ttst_ms, served.tpot_ms
    spreads = (
        statistics(served.ttft_ms),
        statistics(ttst_ms[~np.isnan(ttst_ms)]),
        statistics(tpot_ms[~np.isnan(tpot_ms)]),
        statistics(gaps_ms, counts),
        statistics(served.e2e_ms),
        statistics(1000.0 / gaps_ms[moving][::-1], counts[moving][::-1]),
    )
    return {
        f"{statistic}_{name}": value
        for name, spread in zip(DISTRIBUTIONS, spreads, strict=True)
        for statistic, value in spread.items()
    }
