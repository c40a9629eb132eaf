"""Windows too short for the scrapes are reported before the run; a metric that never had data is reported after it.

Rules: `spec 10, 8.1`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pytest

from dynamo_sim.autoscaling import MetricQuery, MetricsPipeline, MetricsSection
from dynamo_sim.autoscaling.build import build_autoscaler
from dynamo_sim.autoscaling.metrics.sampler import Observations
from dynamo_sim.autoscaling.visibility import hidden_metrics
from dynamo_sim.scenario import Scenario
from dynamo_sim.simulation import run

RATE = MetricQuery("generated_tokens", window_s=20)


class AlwaysBusy:
    """A worker whose every metric has data at any time."""

    def sample(self, worker_id: int, now_s: float, names: Sequence[str]) -> Mapping[str, float]:
        return dict.fromkeys(names, now_s)

    def sample_fleet(self, now_s: float, names: Sequence[str]) -> Mapping[str, float]:
        return dict.fromkeys(names, now_s)

    def observations(self, worker_id: int, metric: str, since_s: float, until_s: float) -> Observations:
        times = np.arange(np.floor(since_s * 10) + 1, np.floor(until_s * 10) + 1) / 10
        return Observations(times, times)

    def bridge(self, now_s: float) -> Mapping[str, Any]:
        return {}


def share_with_data(query: MetricQuery, settings: MetricsSection) -> float:
    """Of evaluations that come at all phases of the scrapes."""
    pipeline = MetricsPipeline(AlwaysBusy(), [query], settings, lambda target: 0.4)
    pipeline.worker_ready(0, 0.0)
    times = np.arange(200.0, 400.0, 1.37)
    return float(np.mean([pipeline.view(float(at_s)).value(query) is not None for at_s in times]))


@pytest.mark.parametrize(
    "query",
    [
        *(MetricQuery("generated_tokens", window_s=w) for w in (9.9, 21, 30.1, 45)),
        *(MetricQuery("busy", window_s=w) for w in (9.9, 21, 30.1, 45)),
        *(MetricQuery("ttft", "p95", window_s=w) for w in (3, 10, 15.2, 40)),
        *(MetricQuery("waiting", "avg", window_s=w) for w in (3, 10, 15.2, 40)),
    ],
    ids=str,
)
@pytest.mark.parametrize("delay_s", [0.0, 5.0])
def test_what_is_said_of_a_window_is_what_a_controller_meets(query: MetricQuery, delay_s: float) -> None:
    settings = MetricsSection(scrape_interval_s=15.0, scrape_delay_s=delay_s)
    share, said = share_with_data(query, settings), " ".join(hidden_metrics([query], settings))
    assert ("nothing is ever seen" in said) == (share == 0.0)
    assert ("some evaluations see nothing" in said) == (0.0 < share < 1.0)


@pytest.mark.parametrize(
    ("lookback_s", "said"), [(4.0, "ever seen"), (12.0, "some evaluations"), (21.0, None)]
)
def test_a_gauge_depends_on_the_lookback(lookback_s: float, said: str | None) -> None:
    settings = MetricsSection(scrape_interval_s=15.0, scrape_delay_s=5.0, lookback_s=lookback_s)
    found = hidden_metrics([MetricQuery("waiting")], settings)
    assert (share_with_data(MetricQuery("waiting"), settings) < 1.0) == bool(found)
    if said is not None:
        assert found[0].startswith("avg waiting: lookback_s is") and said in found[0]


def test_the_line_names_the_window_and_a_sufficient_one() -> None:
    assert hidden_metrics([RATE, RATE], MetricsSection()) == [
        "avg rate(generated_tokens)[20s]: window_s is 20, and with a scrape every 15 s that does not always hold the "
        "two samples it needs: some evaluations see nothing; from 30 on it always does"
    ]
    assert hidden_metrics([RATE], MetricsSection(perfect=True)) == []


def scenario(metric: dict[str, Any], **metrics: Any) -> Scenario:
    return Scenario.from_dict(
        {
            "name": "hidden",
            "workload": {
                "kind": "generated",
                "arrivals": {"shape": "constant", "rate_rps": 2},
                "input_tokens": 64,
                "output_tokens": 8,
                "duration_s": 90,
            },
            "fleet": {"workers": 2},
            "autoscaler": {
                "policy": {"kind": "target_tracking", "target": 100, **metric},
                "metrics": metrics,
                "min_workers": 1,
            },
        }
    )


def test_a_run_names_a_metric_that_never_had_data() -> None:
    hidden = run(scenario({"metric": "generated_tokens", "window_s": 10}, scrape_aligned=True))
    assert any("nothing is ever seen" in line for line in hidden.warnings)
    assert (
        "avg rate(generated_tokens)[10s] never had data in the whole run, at none of the evaluations"
        in hidden.warnings
    )
    assert run(scenario({"metric": "generated_tokens", "window_s": 60})).warnings == []


def test_a_metric_that_had_data_once_is_not_named() -> None:
    assert run(scenario({"metric": "ttft", "over": "p95"})).warnings == []


# ---------------------------------------------------------------- a fleet without workers


QUEUED = "sum(dynamo_frontend_queued_requests)"
IN_FRONT = "sum(dynamo_frontend_router_queue_pending_requests)"
CRON = {
    "type": "cron",
    "metadata": {"timezone": "UTC", "start": "0 8 * * *", "end": "0 9 * * *", "desiredReplicas": "4"},
}


def keda(query: str, *more: dict[str, Any], **spec: Any) -> dict[str, Any]:
    trigger = {"type": "prometheus", "metadata": {"query": query, "threshold": "5"}}
    return {"manifest": {"kind": "ScaledObject", "spec": {"triggers": [trigger, *more], **spec}}}


def hpa_of(metric: str, least: int) -> dict[str, Any]:
    metrics = [{"metric": metric, "source": "External", "target": 5}]
    policy = {
        "kind": "hpa",
        "min_replicas": least,
        "max_replicas": 4,
        "scale_to_zero": True,
        "metrics": metrics,
    }
    return {"policy": policy}


@pytest.mark.parametrize(
    ("section", "blind"),
    [
        (keda(QUEUED), True),
        (keda(QUEUED, minReplicaCount=1, idleReplicaCount=0), True),
        (keda(QUEUED, minReplicaCount=1), False),
        (keda(IN_FRONT), False),
        (keda(QUEUED, CRON), False),
        ({**keda(QUEUED), "min_workers": 1}, False),
        (hpa_of("waiting", 0), True),
        (hpa_of("waiting", 1), False),
        (hpa_of("router_queue", 0), False),
        ({"policy": {"kind": "target_tracking", "metric": "waiting", "target": 3}}, True),
        ({"policy": {"kind": "kpa"}}, False),
        ({"policy": {"kind": "queue_proportional", "per_worker": 3}}, False),
        ({"policy": {"kind": "fixed", "count": 3}}, False),
    ],
)
def test_a_policy_that_is_blind_without_workers_is_named(section: dict[str, Any], blind: bool) -> None:
    workload = {"kind": "synthetic", "input_tokens": 8, "output_tokens": 2, "request_count": 1}
    scenario = Scenario.from_dict({"name": "zero", "workload": workload, "autoscaler": section})
    assert scenario.autoscaler is not None
    warnings = build_autoscaler(scenario.autoscaler, scenario).warnings
    assert any("let the policy read router_queue" in line for line in warnings) == blind
