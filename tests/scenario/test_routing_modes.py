"""The section `routing` of modes beyond those of the reference, and what is said about it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from dynamo_sim.errors import ScenarioError
from dynamo_sim.scenario.effects import notes
from dynamo_sim.scenario.specs import Scenario

PLAIN = {"kind": "synthetic", "input_tokens": 64, "output_tokens": 4, "request_count": 8}
CHAT = {**PLAIN, "turns_per_session": 3, "shared_prefix_ratio": 0.5, "num_prefix_groups": 1}


def scenario(routing: dict[str, Any], workload: dict[str, Any] = PLAIN, **more: Any) -> Scenario:
    return Scenario.from_dict({"name": "it", "workload": workload, "routing": routing, **more})


@pytest.mark.parametrize(
    ("routing", "said"),
    [
        (
            {"mode": "least_loaded", "by": "queue"},
            "routing.by: found 'queue'; must be one of 'in_flight', 'waiting'",
        ),
        ({"mode": "least_loaded", "metrics": {"interval_ms": 0}}, "routing.metrics.interval_ms: found 0"),
        ({"mode": "prefix_hash", "load_factor": 0.9}, "routing.load_factor: found 0.9"),
        ({"mode": "prefix_hash", "points_per_worker": 100}, "routing.points_per_worker: found 100"),
        (
            {
                "mode": "endpoint_picker",
                "weights": {"queue": 0, "kv_cache_utilization": 0, "prefix_cache": 0},
            },
            "routing.weights: all weights are 0; one must be above 0",
        ),
        (
            {"mode": "endpoint_picker", "weights": {"queue": 1e308}},
            "queue: found 1e+308; must be at most 1000000",
        ),
        ({"mode": "session_affinity", "points_per_worker": 12}, "found 12; must be a multiple of 8"),
        ({"mode": "custom"}, "routing.class: missing"),
        (
            {"mode": "custom", "class": "Sticky"},
            "must be module:Class, like my_router:Sticky for the class Sticky",
        ),
    ],
)
def test_a_wrong_key_is_named(routing: dict[str, Any], said: str) -> None:
    with pytest.raises(ScenarioError) as caught:
        scenario(routing)
    assert said in str(caught.value)


def test_modes_that_look_at_workers_are_refused_with_two_fleets() -> None:
    data = {"name": "it", "workload": PLAIN, "prefill": {}, "decode": {}, "routing": {"mode": "least_loaded"}}
    with pytest.raises(
        ScenarioError, match="'least_loaded'; must be one of 'round_robin', 'kv_router', 'random'"
    ):
        Scenario.from_dict(data)


@pytest.mark.parametrize(
    ("routing", "workload", "note"),
    [
        ({"mode": "prefix_hash"}, PLAIN, "routing.mode: no two prompts of this load begin alike, so"),
        ({"mode": "prefix_hash", "load_factor": 2.0}, PLAIN, "routing.load_factor: no two prompts"),
        ({"mode": "session_affinity"}, PLAIN, "routing.mode: no session of this load has a second turn, so"),
        (
            {"mode": "session_affinity", "by": "first_turn", "points_per_worker": 64},
            CHAT,
            "routing.points_per_worker: only for by: hash",
        ),
        (
            {"mode": "least_loaded", "metrics": {"interval_ms": 50}},
            PLAIN,
            "routing.metrics: the router counts",
        ),
        (
            {"mode": "endpoint_picker", "weights": {"prefix_cache": 1.0}},
            PLAIN,
            "routing.weights.prefix_cache: no two prompts of this load begin alike",
        ),
        (
            {"mode": "endpoint_picker", "prefix_index": "kv_events", "lru_capacity_blocks": 100},
            CHAT,
            "routing.lru_capacity_blocks: only for prefix_index: routed",
        ),
        (
            {"mode": "custom", "class": "my_router:Sticky"},
            PLAIN,
            "routing.class: runs code that is not part of",
        ),
    ],
)
def test_what_has_no_effect_is_said(routing: dict[str, Any], workload: dict[str, Any], note: str) -> None:
    assert [line for line in notes(scenario(routing, workload)) if line.startswith(note)] != []


@pytest.mark.parametrize(
    "routing", [{"mode": "prefix_hash"}, {"mode": "session_affinity"}, {"mode": "endpoint_picker"}]
)
def test_where_all_has_its_effect_nothing_is_said(routing: dict[str, Any]) -> None:
    assert notes(scenario(routing, CHAT)) == []


@pytest.mark.parametrize("mode", ["random", "power_of_two_choices", "endpoint_picker", "kv_router"])
def test_the_seed_matters_where_workers_are_drawn(mode: str) -> None:
    assert not [note for note in notes(scenario({"mode": mode}, CHAT, seed=5)) if note.startswith("seed")]
    assert [
        note for note in notes(scenario({"mode": "least_loaded"}, CHAT, seed=5)) if note.startswith("seed")
    ]


def test_a_class_is_written_as_it_was_read(tmp_path: Path) -> None:
    routing = {"mode": "custom", "class": "my_router:Sticky", "options": {"most_ahead": 2}}
    data = scenario(routing).to_dict()
    assert data["routing"] == {**routing, "metrics": None}
    assert Scenario.from_dict(data) == scenario(routing)
