"""Scenarios as values: changed copies, plain data, derived properties."""

from __future__ import annotations

import json
import math
import os
import pickle
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from dynamo_sim.errors import ScenarioError
from dynamo_sim.scenario import EngineArgs, Scenario, SyntheticWorkload, TraceWorkload, load_scenario
from dynamo_sim.scenario.effects import notes
from dynamo_sim.scenario.files import existing_path
from dynamo_sim.scenario.yaml_source import plain_scalar, read_yaml

SYNTHETIC: dict[str, Any] = {"kind": "synthetic", "input_tokens": 8, "output_tokens": 2, "request_count": 3}


def scenario(**sections: Any) -> Scenario:
    return Scenario.from_dict({"name": "demo", "workload": SYNTHETIC, **sections})


def test_defaults_are_one_vllm_worker_round_robin_open_loop() -> None:
    made = scenario()
    assert made.seed == 0
    assert made.fleet.workers == 1 and made.fleet.engine == EngineArgs()
    assert made.routing.mode == "round_robin"
    assert made.scaling == ()
    assert made.limits.concurrency is None and made.limits.max_sim_time_ms is None
    assert made.limits.max_stretch_passes == 1_000_000
    assert not made.sla.is_given
    assert made.report.passes and made.report.plots and made.report.requests_format == "parquet"


def test_with_changes_a_copy() -> None:
    made = scenario(scaling=[{"at_ms": 5, "workers": 2}])
    changed = made.with_(**{"fleet.engine.startup_time": 120, "scaling.0.workers": 4, "sla.ttft_ms": 10})
    assert changed.fleet.engine.startup_time == 120
    assert changed.scaling[0].workers == 4 and changed.scaling[0].at_ms == 5
    assert changed.sla.is_given
    assert made.fleet.engine.startup_time is None and made.scaling[0].workers == 2


def test_with_derives_defaults_again() -> None:
    for made in (scenario(), scenario(fleet={"engine": {"block_size": 0}})):
        assert made.with_(**{"fleet.engine.engine_type": "trtllm"}).fleet.engine.block_size == 32
    kept = scenario(fleet={"engine": {"block_size": 64}})
    assert kept.with_(**{"fleet.engine.engine_type": "trtllm"}).fleet.engine.block_size == 64


def test_with_takes_whole_sections() -> None:
    engine = EngineArgs(engine_type="sglang", block_size=3)
    changed = scenario().with_(**{"fleet.engine": engine, "workload": {**SYNTHETIC, "request_count": 9}})
    assert changed.fleet.engine == engine
    assert isinstance(changed.workload, SyntheticWorkload) and changed.workload.request_count == 9


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"fleet.engin.x": 1}, "fleet.engin: unknown key; did you mean 'engine'?"),
        ({"fleet.workers": 0}, "fleet.workers: found 0; must be at least 1"),
        ({"scaling.0.workers": 1}, "scaling.0: scaling has 0 items, counted from 0"),
        (
            {"routing.mode": "kv_routr"},
            "routing.mode: found 'kv_routr'; must be one of 'round_robin', 'kv_router'",
        ),
    ],
)
def test_with_refuses_bad_changes(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ScenarioError) as caught:
        scenario(scaling=[]).with_(**changes)
    assert str(caught.value).startswith(message)


def test_with_leaves_the_given_data_alone() -> None:
    mine = dict(SYNTHETIC)
    scenario().with_(**{"workload": mine, "workload.request_count": 7})
    assert mine == SYNTHETIC


def test_dict_is_plain_complete_and_readable_again() -> None:
    made = scenario(
        fleet={"engine": {"engine_type": "sglang", "block_size": 3, "speedup_ratio": math.inf}},
        scaling=[{"at_ms": 5, "workers": 2}],
    )
    data = made.to_dict()
    assert json.loads(json.dumps(data, allow_nan=False)) == data
    assert yaml.safe_load(yaml.safe_dump(data)) == data
    assert data["fleet"]["engine"]["speedup_ratio"] == "inf"
    assert data["fleet"]["engine"]["max_num_seqs"] == 256
    assert Scenario.from_dict(data).to_dict() == data


def test_scenarios_travel_between_processes() -> None:
    made = scenario()
    assert pickle.loads(pickle.dumps(made)) == made


def test_paths_start_from_the_folder_of_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "trace.jsonl").touch()
    file = tmp_path / "x.yaml"
    file.write_text("name: demo\nworkload: {kind: trace, path: data/trace.jsonl}\n", encoding="utf-8")
    loaded = load_scenario(file)
    assert isinstance(loaded.workload, TraceWorkload)
    assert loaded.workload.paths == (tmp_path / "data" / "trace.jsonl",)
    assert loaded.with_(seed=1).to_dict()["workload"]["path"] == str(tmp_path / "data" / "trace.jsonl")

    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "mine.jsonl").touch()
    monkeypatch.chdir(elsewhere)
    overridden = load_scenario(file, ["workload.path=mine.jsonl"])
    assert overridden.to_dict()["workload"]["path"] == str(elsewhere / "mine.jsonl")


def test_overrides_make_sections_that_are_absent(tmp_path: Path) -> None:
    file = tmp_path / "x.yaml"
    file.write_text(yaml.safe_dump({"name": "demo", "workload": SYNTHETIC}), encoding="utf-8")
    loaded = load_scenario(
        file, ["sla.ttft_ms=1e3", "scaling=[{at_ms: 5, workers: 2}]", "scaling.0.workers=6"]
    )
    assert loaded.sla.ttft_ms == 1000.0 and loaded.scaling[0].workers == 6


def test_trace_formats_have_second_names() -> None:
    records = [{"hash_ids": [1]}]
    for name, canonical in (("mooncake_delta", "mooncake-delta"), ("agentic-mooncake", "agentic_mooncake")):
        workload = TraceWorkload.model_validate({"kind": "trace", "records": records, "format": name})
        assert workload.format == canonical


def test_recorded_traces_bring_their_block_size() -> None:
    records = [{"event": {}}]
    by_default = TraceWorkload.model_validate({"kind": "trace", "records": records, "format": "dynamo"})
    assert by_default.trace_block_size is None
    stated = TraceWorkload.model_validate(
        {"kind": "trace", "records": records, "format": "dynamo", "trace_block_size": 16}
    )
    assert stated.trace_block_size == 16
    other = TraceWorkload.model_validate({"kind": "trace", "records": records})
    assert other.trace_block_size == 512


def test_plain_synthetic_load_has_no_turns_prefixes_or_pauses() -> None:
    assert SyntheticWorkload.model_validate(SYNTHETIC).is_plain
    for key, value in (("turns_per_session", 2), ("shared_prefix_ratio", 0.5), ("num_prefix_groups", 1)):
        assert not SyntheticWorkload.model_validate({**SYNTHETIC, key: value}).is_plain


def test_settings_without_effect_are_noted() -> None:
    assert notes(scenario()) == []
    noted = notes(
        scenario(
            workload={**SYNTHETIC, "arrival_speedup_ratio": 2.0, "shared_prefix_ratio": 0.5},
            limits={"concurrency": 2},
            fleet={"engine": {"num_g2_blocks": 5, "startup_time": 3}},
        )
    )
    assert [note.split(":")[0] for note in noted] == [
        "workload.arrival_speedup_ratio",
        "workload.shared_prefix_ratio",
        "fleet.engine.num_g2_blocks",
        "fleet.engine.startup_time",
    ]


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("", None),
        ("~", None),
        ("true", True),
        ("yes", "yes"),
        ("010", 10),
        ("1_000", 1000),
        ("-7", -7),
        ("1e3", 1000.0),
        (".5", 0.5),
        ("1.", 1.0),
        ("-.inf", -math.inf),
        ("1:30", "1:30"),
        ("2024-01-01", "2024-01-01"),
        ("0x10", "0x10"),
        (".", "."),
        ("1_", "1_"),
    ],
)
def test_words_mean_what_yaml_1_2_says(text: str, value: Any) -> None:
    read = plain_scalar(text)
    assert read == value and type(read) is type(value)


def test_quotes_and_tags_make_texts() -> None:
    assert read_yaml("[\"5\", '5', !!str 5, 5]", "x").data == ["5", "5", "5", 5]


def test_aliases_repeat_values() -> None:
    assert read_yaml("a: &e {b: 1}\nc: *e\n", "x").data == {"a": {"b": 1}, "c": {"b": 1}}


WORDS = st.text(st.characters(categories=("L", "N", "P", "S", "Zs")), min_size=1, max_size=8)
PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | WORDS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(WORDS, inner, max_size=4),
    max_leaves=12,
)


@given(PLAIN)
def test_json_is_read_as_itself(data: Any) -> None:
    assert read_yaml(json.dumps(data, ensure_ascii=False), "x").data == data


@given(PLAIN, st.sampled_from(["fleet", "workload", "scaling", "sla", "limits", "seed", "report", "routing"]))
def test_no_plain_data_escapes_the_checks(data: Any, section: str) -> None:
    """Whatever stands in a section: a scenario, or a `ScenarioError`."""
    try:
        made = scenario(**{section: data})
    except ScenarioError as error:
        assert error.problems and all(problem.startswith(section) for problem in error.problems)
    else:
        assert made.to_dict()["name"] == "demo"


def test_a_pipe_keeps_its_name(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "link").symlink_to("pipe")
    assert existing_path("link", {"base_dir": tmp_path}) == str(tmp_path / "link")


@pytest.mark.parametrize("text", ["", " ", "a\0b", "\ud800"])
def test_some_texts_are_no_paths(text: str) -> None:
    with pytest.raises(ValueError, match="must be a path"):
        existing_path(text, None)
