"""Decisions of a router as rows (`report: {routing: true}`)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from dynamo_sim.report.html import page
from dynamo_sim.report.picture_text import picture_text
from dynamo_sim.report.result import RunResult
from dynamo_sim.scenario import Scenario
from dynamo_sim.simulation import run
from tests.routing.modes.loads import MODES


def result_of(routing: dict[str, Any], **changes: Any) -> RunResult:
    scenario = Scenario.from_dict(
        {
            "name": "x",
            "workload": {
                "kind": "synthetic",
                "input_tokens": 512,
                "output_tokens": 20,
                "request_count": 40,
                "arrival_interval_ms": 4.0,
                "shared_prefix_ratio": 0.5,
                "num_prefix_groups": 2,
            },
            "fleet": {"workers": 3},
            "routing": routing,
            "report": {"routing": True, "plots": False},
        }
    )
    return run(scenario.with_(**changes))


QUEUEING = {"mode": "kv_router", "router_queue_threshold": 0.05, "tie_break": "lowest_id"}


@pytest.mark.parametrize("routing", [{"mode": "round_robin"}, QUEUEING, *MODES])
def test_recording_changes_no_figure(routing: dict[str, Any]) -> None:
    recorded, plain = result_of(routing), result_of(routing, **{"report.routing": False})
    assert [r.worker_id for r in recorded.records.requests] == [r.worker_id for r in plain.records.requests]
    assert not len(plain.routing) and len(recorded.routing) == 40
    assert {name: recorded.summary[name] for name in plain.summary} == plain.summary


def test_a_row_says_what_was_weighed_and_the_worker_with_the_smallest_cost_is_chosen() -> None:
    routing = result_of(QUEUEING).routing
    for row in routing.itertuples():
        assert row.worker_id == row.worker_ids[row.cost.index(min(row.cost))]
        assert len(row.cost) == len(row.booked_tokens) == len(row.cached_blocks) == 3
        assert row.hit_rate == row.cached_blocks[row.worker_ids.index(row.worker_id)] / 8


def test_a_row_of_other_modes_says_what_the_router_compared() -> None:
    for by in ("in_flight", "waiting_tokens", "kv_usage"):
        for row in result_of({"mode": "least_loaded", "by": by}).routing.itertuples():
            loads = getattr(row, by)
            assert loads[row.worker_ids.index(row.worker_id)] == min(loads)
    for row in result_of({"mode": "power_of_two_choices"}).routing.itertuples():
        assert len(row.worker_ids) == 2 and row.in_flight[row.worker_ids.index(row.worker_id)] == min(
            row.in_flight
        )
    for row in result_of({"mode": "endpoint_picker"}).routing.itertuples():
        chosen = row.worker_ids.index(row.worker_id)
        assert row.score[chosen] == max(row.score)
        assert row.hit_rate == row.prefix_score[chosen]  # of 512 tokens all blocks are whole


def test_a_row_says_how_long_the_request_waited_at_the_router() -> None:
    result = result_of(QUEUEING)
    joined = result.routing.merge(result.requests[["index", "arrival_ms"]], on="index")
    assert (joined["router_ms"] == joined["at_ms"] - joined["arrival_ms"]).all()
    assert joined["router_ms"].max() > 0.0


def test_hit_rate_and_load_imbalance_are_in_the_summary() -> None:
    result = result_of(QUEUEING)
    assert result.summary["routing_hit_rate"] == pytest.approx(result.routing["hit_rate"].mean())
    assert 1.0 <= result.summary["load_imbalance"] <= 3.0
    assert "routing_hit_rate" not in result_of({"mode": "round_robin"}).summary


def test_both_fleets_of_a_disaggregated_run_have_rows() -> None:
    fleets = {"prefill": {"workers": 2}, "decode": {"workers": 2}}
    data = result_of(QUEUEING).scenario.to_dict()
    del data["fleet"]
    routing = run(Scenario.from_dict({**data, **fleets, "autoscaler": None})).routing
    assert routing["fleet"].value_counts().to_dict() == {"prefill": 40, "decode": 40}


def test_rows_and_picture_are_saved(tmp_path: Path) -> None:
    result = result_of(QUEUEING)
    result.save(tmp_path / "parquet")
    assert list(pd.read_parquet(tmp_path / "parquet" / "routing.parquet")["worker_ids"][0]) == [0, 1, 2]
    result.save(tmp_path / "csv", plots=True, requests_format="csv")
    assert pd.read_csv(tmp_path / "csv" / "routing.csv")["worker_ids"][0] == "0 1 2"
    assert (tmp_path / "csv" / "routing.png").stat().st_size > 10_000


@pytest.mark.parametrize(
    ("routing", "found"),
    [
        (QUEUEING, "of the blocks of a prompt cached"),
        ({"mode": "random"}, "40 decisions of the router: the fullest"),
    ],
)
def test_the_page_says_what_the_picture_of_the_router_shows(routing: dict[str, Any], found: str) -> None:
    result = result_of(routing)
    assert "routing" in result.plot.names
    assert found in picture_text(result, "routing")
    assert 'alt="40 decisions of the router: ' in page(result)
