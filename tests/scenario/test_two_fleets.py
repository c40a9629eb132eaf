"""Scenarios with a prefill and a decode fleet: what they take, and what they refuse."""

from __future__ import annotations

from typing import Any

import pytest

from dynamo_sim.errors import ScenarioError
from dynamo_sim.scenario.effects import notes
from dynamo_sim.scenario.specs import Scenario

SENDS = {"kv_bytes_per_token": 131_072, "kv_transfer_bandwidth": 50.0}


def two_fleets(**sections: Any) -> Scenario:
    data = {
        "name": "pd",
        "workload": {"kind": "synthetic", "input_tokens": 100, "output_tokens": 10, "request_count": 4},
        "prefill": {"workers": 1, "engine": dict(SENDS)},
        "decode": {"workers": 2},
    }
    return Scenario.from_dict({**data, **sections})


def problems(**sections: Any) -> str:
    with pytest.raises(ScenarioError) as error:
        two_fleets(**sections)
    return "\n".join(error.value.problems)


def test_each_fleet_has_its_own_engine_and_the_part_of_its_section() -> None:
    scenario = two_fleets(decode={"workers": 3, "engine": {"num_gpu_blocks": 99, "aic_tp_size": 2}})
    assert list(scenario.fleets) == ["prefill", "decode"]
    assert [fleet.engine.worker_type for fleet in scenario.fleets.values()] == ["prefill", "decode"]
    assert [fleet.engine.num_gpu_blocks for fleet in scenario.fleets.values()] == [16384, 99]
    assert [fleet.engine.gpus_per_worker for fleet in scenario.fleets.values()] == [1, 2]


def test_two_fleets_read_themselves_back() -> None:
    scenario = two_fleets(transfer={"links": 2}, scaling=[{"at_ms": 5.0, "decode": 4}])
    assert "fleet" not in scenario.to_dict()
    assert Scenario.from_dict(scenario.to_dict()) == scenario
    assert scenario.with_(**{"decode.workers": 5}).fleets["decode"].workers == 5


def test_autoscalers_of_two_fleets_read_themselves_back() -> None:
    fixed = {"policy": {"kind": "fixed", "count": 2}}
    scenario = two_fleets(autoscaler={"prefill": fixed, "decode": {**fixed, "max_workers": 9}})
    assert Scenario.from_dict(scenario.to_dict()) == scenario
    assert list(two_fleets(autoscaler={"decode": fixed}).autoscalers) == ["decode"]


@pytest.mark.parametrize(
    ("sections", "problem"),
    [
        ({"fleet": {"workers": 2}}, "fleet: cannot be given together with prefill and decode"),
        ({"decode": None}, "decode: missing; prefill and decode workers need each other"),
        ({"decode": {"engine": {"engine_type": "sglang"}}}, "decode.engine.engine_type: found 'sglang'"),
        ({"decode": {"engine": {"block_size": 16}}}, "decode.engine.block_size: found 16"),
        ({"decode": {"engine": {"worker_type": "prefill"}}}, "decode.engine.worker_type: found 'prefill'"),
        ({"prefill": {"engine": {"dp_size": 2}}}, "prefill.engine.dp_size: found 2"),
        ({"prefill": {"engine": {"kv_transfer_bandwidth": 0.0}}}, "kv_transfer_bandwidth: found 0"),
        ({"transfer": {"links": 0}}, "transfer.links: found 0; must be at least 1"),
        ({"scaling": [{"at_ms": 1.0, "workers": 3}]}, "scaling.0.workers: which fleet?"),
        ({"autoscaler": {"policy": {"kind": "fixed", "count": 2}}}, "autoscaler: which fleet?"),
    ],
)
def test_what_does_not_fit_two_fleets_is_refused(sections: dict[str, Any], problem: str) -> None:
    assert problem in problems(**sections)


def test_trtllm_has_no_separate_fleets() -> None:
    found = problems(
        prefill={"engine": {"engine_type": "trtllm"}}, decode={"engine": {"engine_type": "trtllm"}}
    )
    assert "prefill.engine.engine_type: found 'trtllm'; must be 'vllm' or 'sglang'" in found


@pytest.mark.parametrize("section", [{"transfer": {"links": 1}}, {"scaling": [{"at_ms": 1.0, "decode": 2}]}])
def test_one_fleet_takes_nothing_that_is_for_two(section: dict[str, Any]) -> None:
    assert "is possible only with prefill and decode fleets" in problems(prefill=None, decode=None, **section)


def test_free_transfers_are_named_once_and_links_have_no_effect_on_them() -> None:
    assert notes(two_fleets()) == []
    found = notes(two_fleets(prefill={"workers": 1}, transfer={"links": 1}))
    assert found == [
        "transfer.links: KV transfers take no time",
        "prefill.engine.kv_bytes_per_token: is not given, so KV transfers to the decode workers take no time",
    ]


def test_transfers_of_decode_workers_change_nothing() -> None:
    (note,) = notes(two_fleets(decode={"workers": 2, "engine": {"kv_bytes_per_token": 5}}))
    assert note.startswith("decode.engine.kv_bytes_per_token: only for the workers of a prefill fleet")


def test_tiers_that_a_fleet_has_and_the_other_has_not_are_written_as_in_yaml() -> None:
    engine = {"num_g2_blocks": 8, **SENDS}
    found = problems(
        prefill={"offload": True, "engine": {**engine, "num_g3_blocks": 9}},
        decode={"offload": True, "engine": engine},
    )
    assert "decode.engine.num_g3_blocks: found null; must be that of the prefill workers, 9" in found


def test_lower_tiers_without_a_prefix_cache_are_said_to_be_of_no_use() -> None:
    engine = {"num_g2_blocks": 8, **SENDS, "enable_prefix_caching": False}
    scenario = two_fleets(prefill={"offload": True, "engine": engine})
    assert any(note.startswith("prefill.offload: without enable_prefix_caching") for note in notes(scenario))
