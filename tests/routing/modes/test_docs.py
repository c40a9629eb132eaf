"""What the documents and scenarios say about routing is so."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from dynamo_sim.routing.build import _MAKERS
from dynamo_sim.scenario import load_scenario
from dynamo_sim.simulation import run

ROOT = Path(__file__).resolve().parents[3]
TEXT = (ROOT / "docs" / "routing.md").read_text(encoding="utf-8")


def test_every_mode_is_in_the_table() -> None:
    table = TEXT.split("## ")[0]
    assert {mode for mode in _MAKERS if f"`{mode}`" not in table} == set()


def test_the_router_of_the_document_runs() -> None:
    (source,) = re.findall(r"```python\n(class Sticky.*?)```", TEXT, re.DOTALL)
    names: dict[str, Any] = {}
    exec(source, names)
    scenario = load_scenario(ROOT / "scenarios" / "routing_chat.yaml")
    sticky = run(scenario, router=names["Sticky"]())
    by_turns = run(scenario.with_(routing={"mode": "round_robin"}))
    assert sticky.summary.mean_ttft_ms < 0.7 * by_turns.summary.mean_ttft_ms


@pytest.mark.parametrize(
    ("file", "changes", "better"),
    [
        ("routing_scale_up", {"routing": {"mode": "round_robin"}}, 0.15),
        ("routing_hot_prefix", {"routing": {"mode": "prefix_hash", "load_factor": 1000.0}}, 0.0),
        ("routing_queue_policies", {"routing.router_queue_policy": "fcfs"}, 0.03),
    ],
)
def test_a_scenario_shows_what_its_question_is_about(
    file: str, changes: dict[str, Any], better: float
) -> None:
    """The share of requests within the SLA, beside the other choice."""
    scenario = load_scenario(ROOT / "scenarios" / f"{file}.yaml")
    own, other = (run(each).summary.within_sla for each in (scenario, scenario.with_(**changes)))
    assert own - other >= better


def test_load_terms_spread_a_hot_prefix() -> None:
    scenario = load_scenario(ROOT / "scenarios" / "routing_hot_prefix.yaml")
    with_load = scenario.with_(**{"routing.weights.queue": 2.0, "routing.weights.kv_cache_utilization": 2.0})
    assert run(scenario).summary.within_sla < 0.3 < 0.99 < run(with_load).summary.within_sla
