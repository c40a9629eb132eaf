"""An evaluation acts at its own time, whatever else falls on the same instant."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest

import dynamo_sim as ds


class Seesaw:
    """Asks for one worker and for two in turn, and reads a scraped metric."""

    reads = ("waiting",)

    def __init__(self, period_s: float) -> None:
        self.period_s = period_s
        self.target = 2

    def decide(self, now_s: float, view: Any, fleet: Any) -> int:
        view.value("waiting")
        self.target = 3 - self.target
        return self.target


def scenario(**more: Any) -> ds.Scenario:
    workload = {
        "kind": "synthetic",
        "input_tokens": 100,
        "output_tokens": 30,
        "request_count": 12,
        "arrival_interval_ms": 1400,
    }
    return ds.Scenario.from_dict({"name": "times", "workload": workload, "fleet": {"workers": 2}, **more})


@pytest.mark.parametrize("period_s", [0.5, 1.5, 3.0])
@pytest.mark.parametrize("aligned", [True, False])
@pytest.mark.parametrize("grace_s", [None, 1.5, 3.0, 3.1])
def test_every_evaluation_acts_at_its_time(period_s: float, aligned: bool, grace_s: float | None) -> None:
    made = scenario(
        fleet={"workers": 2, "engine": {"startup_time": 0.25}, "drain_grace_s": grace_s},
        autoscaler={
            "policy": {"kind": "fixed", "count": 1},
            "metrics": {"scrape_interval_s": 1.5, "scrape_aligned": aligned},
            "period_s": period_s,
        },
    )
    result = ds.run(made, policy=Seesaw(period_s))
    decisions = result.decisions
    assert len(decisions) >= int(result.summary.duration_ms / 1000 / period_s) - 1
    assert all(b - a == pytest.approx(period_s) for a, b in pairwise(decisions["at_s"]))
    acted = decisions[decisions["target"] != decisions["current"]]
    fleet = result.fleet
    changes = fleet[fleet["cause"].isin(["added", "marked", "cancelled"])]
    assert set(changes["at_ms"]) == set(acted["at_s"] * 1000.0)


def test_a_scaling_step_at_the_end_of_a_grace_period_is_taken_at_its_time() -> None:
    made = scenario(
        workload={
            "kind": "synthetic",
            "input_tokens": 100,
            "output_tokens": 150,
            "request_count": 5,
            "arrival_interval_ms": 1400,
        },
        fleet={"workers": 2, "engine": {"startup_time": 0}, "drain_grace_s": 3},
        scaling=[{"at_ms": 1500, "workers": 1}, {"at_ms": 4500, "workers": 3}],
    )
    fleet = ds.run(made).fleet
    assert list(fleet[fleet["cause"] == "added"]["at_ms"]) == [4500.0]


def test_a_gap_of_a_million_evaluations_is_refused_early() -> None:
    records = [
        {"timestamp": at_ms, "input_length": 60, "output_length": 5, "hash_ids": [index]}
        for index, at_ms in enumerate((0, 10**15))
    ]
    made = scenario(
        workload={"kind": "trace", "trace_block_size": 64, "records": records},
        autoscaler={
            "policy": {"kind": "hpa", "max_replicas": 3, "metrics": [{"metric": "in_flight", "target": 2}]}
        },
    )
    with pytest.raises(
        ds.SimulationError, match=r"11,574,074 days later.* is a timestamp in the wrong unit\?"
    ):
        ds.run(made)


def test_a_fleet_at_zero_is_woken_where_scrapes_fall_on_evaluations() -> None:
    made = scenario(
        workload={
            "kind": "synthetic",
            "input_tokens": 100,
            "output_tokens": 5,
            "request_count": 10,
            "arrival_interval_ms": 46000,
        },
        fleet={"workers": 1, "engine": {"startup_time": 1}},
        autoscaler={
            "policy": {"kind": "queue_proportional", "per_worker": 1},
            "metrics": {"scrape_aligned": True},
        },
    )
    result = ds.run(made)
    assert (result.requests["outcome"] == "completed").all()
    assert (result.decisions["at_s"].diff().dropna() == 15.0).all()
