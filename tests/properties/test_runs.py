"""What holds in every run, whatever the load (`spec 01, 3 and 7`)."""

from __future__ import annotations

import math
import os
import random
import subprocess
import sys
from itertools import pairwise
from pathlib import Path

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dynamo_sim.clock import Clock
from dynamo_sim.engine.build import scheduler_factory
from dynamo_sim.engine.gaps import merged_gaps
from dynamo_sim.engine.roles import Stage
from dynamo_sim.engine.vllm.scheduler import VllmScheduler
from dynamo_sim.errors import SimulationError
from dynamo_sim.fleet.collector import Collector
from dynamo_sim.fleet.fleet import Fleet
from dynamo_sim.records.lifespans import lifespans
from dynamo_sim.routing.round_robin import RoundRobin
from dynamo_sim.scenario.specs import Scenario
from dynamo_sim.serving.aggregated import AggregatedServing
from dynamo_sim.serving.controller import ScriptedTargets
from dynamo_sim.simulation import run
from dynamo_sim.workload.build import build_source
from tests.parity.cases import to_scenario
from tests.parity.random_cases import build

ROOT = Path(__file__).resolve().parents[2]
SEEDS = st.integers(0, 10**6)
MANY = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])


@MANY
@given(SEEDS)
def test_every_request_ends_once_or_is_reported_unfinished_and_time_runs_forward(seed: int) -> None:
    case = build(seed, 0)
    for key in ("scaling", "poll_ms"):
        case.pop(key, None)
    try:
        records = run(to_scenario(case)).records
    except SimulationError:
        return
    assert len({r.index for r in records.requests}) == len(records.requests)
    gaps, counts = merged_gaps(records.gaps)
    assert (gaps >= 0).all() and counts.sum() == sum(max(r.emitted_tokens - 1, 0) for r in records.requests)
    for r in records.requests:
        if r.outcome is None:
            assert "max_sim_time_ms" in case and r.ended_ms is None
            continue
        assert r.ended_ms is not None and r.arrival_ms <= r.ended_ms
        if r.outcome.value == "rejected":
            assert r.first_admit_ms is None and r.emitted_tokens == 0
            continue
        assert r.emitted_tokens == r.output_tokens or case["engine"]["engine_type"] == "trtllm"
        times = [
            r.arrival_ms,
            r.first_admit_ms,
            r.first_token_ms,
            r.second_token_ms,
            r.last_token_ms,
            r.ended_ms,
        ]
        known = [t for t in times if t is not None]
        assert known == sorted(known)
        assert r.last_token_ms == r.ended_ms
        assert 0 <= r.first_reused_tokens <= r.reused_tokens


@MANY
@given(SEEDS)
def test_blocks_never_leak_and_worker_ids_are_never_used_again(seed: int) -> None:
    case = build(seed, 1)
    if case["engine"]["engine_type"] == "sglang":
        return
    targets = case.pop("scaling", None) or [{"at_ms": 30.0, "decode": 3}, {"at_ms": 90.0, "decode": 1}]
    case.pop("poll_ms", None)
    case.pop("max_sim_time_ms", None)
    scenario = to_scenario(case)
    args = scenario.fleet.engine
    made: list[VllmScheduler] = []
    factory = scheduler_factory(args)

    def remember(worker_id: int) -> VllmScheduler:
        scheduler = factory(worker_id)
        assert isinstance(scheduler, VllmScheduler)
        made.append(scheduler)
        return scheduler

    fleet = Fleet(Stage.AGGREGATED, remember, scenario.fleet.workers, args.startup_time)
    source = build_source(
        scenario.workload,
        engine_block_size=args.block_size,
        concurrency=scenario.limits.concurrency,
        ticks=True,
        single_worker=False,
    )
    collector = Collector()
    controller = ScriptedTargets([(step["at_ms"], step["decode"]) for step in targets])
    try:
        AggregatedServing(Clock(), fleet, source, collector, router=RoundRobin(), controller=controller).run()
    except SimulationError:
        return
    for scheduler in made:
        pool = scheduler.pool
        assert pool.active == 0 and pool.free >= 0 and pool.inactive >= 0
        assert scheduler.request_count == 0
    seen: set[int] = set()
    for change in collector.fleet.changes:
        assert change.active >= 0 and change.starting >= 0 and change.draining >= 0
        if change.cause in ("start", "added"):
            assert seen.isdisjoint(change.worker_ids)
            seen.update(change.worker_ids)
    assert len(made) == len(seen)


@MANY
@given(SEEDS)
def test_lifespans_fleet_counts_and_worker_seconds_agree(seed: int) -> None:
    draw = random.Random(seed)
    scenario = to_scenario(build(seed, 2)).with_(
        **{
            "fleet.workers": draw.randint(1, 3),
            "fleet.engine.startup_time": draw.choice([None, 0.02, 0.3]),
            "fleet.drain_grace_s": draw.choice([None, 0.001, 0.05]),
            "limits.concurrency": None,
            "limits.max_sim_time_ms": None,
            "scaling": [
                {"at_ms": at_ms, "workers": draw.randint(1, 6)}
                for at_ms in draw.sample([0.0, 20.0, 40.0, 60.0, 90.0, 200.0, 500.0], draw.randint(2, 7))
            ],
        }
    )
    try:
        records = run(scenario).records
    except SimulationError:
        return
    spans = lifespans(records.fleets[0].changes, records.end_ms)
    assert math.isclose(
        sum(span.seconds for span in spans), records.fleets[0].worker_seconds, rel_tol=1e-9, abs_tol=1e-9
    )
    for change, following in pairwise([*records.fleets[0].changes, None]):
        if following is not None and following.at_ms == change.at_ms:
            continue
        exist = [span for span in spans if span.since_ms <= change.at_ms < span.until_ms]
        draining = [s for s in exist if s.draining_ms is not None and s.draining_ms <= change.at_ms]
        if change.at_ms < records.end_ms:
            assert len(exist) == change.active + change.starting + change.draining
            assert len(draining) == change.draining


def test_a_killed_worker_is_gone_when_it_is_killed() -> None:
    scenario = Scenario.from_dict(
        {
            "name": "kill",
            "workload": {
                "kind": "synthetic",
                "input_tokens": 512,
                "output_tokens": 2000,
                "request_count": 12,
                "arrival_interval_ms": 50,
            },
            "fleet": {"workers": 3, "drain_grace_s": 1.0},
            "scaling": [{"at_ms": 2000.0, "workers": 1}],
        }
    )
    records = run(scenario).records
    assert [change.cause for change in records.fleets[0].changes if change.at_ms == 3000.0] == [
        "killed",
        "killed",
    ]
    assert [span.until_ms for span in lifespans(records.fleets[0].changes, records.end_ms)][1:] == [
        3000.0,
        3000.0,
    ]


def test_results_are_the_same_bytes_whatever_the_order_of_hashes(tmp_path: Path) -> None:
    folders = []
    for hash_seed in ("1", "2"):
        folder = tmp_path / hash_seed
        code = (
            "from dynamo_sim.scenario.loader import load_scenario; from dynamo_sim.simulation import run;"
            f"run(load_scenario('scenarios/chat_sessions.yaml')).save({str(folder)!r}, plots=False)"
        )
        env = {**os.environ, "PYTHONHASHSEED": hash_seed, "PYTHONPATH": str(ROOT)}
        subprocess.run([sys.executable, "-c", code], cwd=ROOT, env=env, check=True)
        folders.append({path.name: path.read_bytes() for path in folder.iterdir()})
    assert folders[0] == folders[1]
