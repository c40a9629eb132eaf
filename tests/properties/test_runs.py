"""What holds in every run, whatever the load (`spec 01, 3 and 7`)."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dynamo_sim.clock import Clock
from dynamo_sim.engine.build import scheduler_factory
from dynamo_sim.engine.vllm.scheduler import VllmScheduler
from dynamo_sim.errors import SimulationError
from dynamo_sim.fleet.collector import Collector
from dynamo_sim.fleet.fleet import Fleet, Stage
from dynamo_sim.records.gaps import merged_gaps
from dynamo_sim.routing.round_robin import RoundRobin
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
    for change in collector.records.fleet:
        assert change.active >= 0 and change.starting >= 0 and change.leaving >= 0
        if change.cause in ("start", "added"):
            assert seen.isdisjoint(change.worker_ids)
            seen.update(change.worker_ids)
    assert len(made) == len(seen)


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
