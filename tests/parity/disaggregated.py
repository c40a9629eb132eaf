"""Disaggregated cases, put together from their parts: two fleets, a handoff between them, one workload."""

from __future__ import annotations

from typing import Any

from dynamo_sim.clock import Clock
from dynamo_sim.engine.build import scheduler_factory
from dynamo_sim.engine.roles import Stage
from dynamo_sim.fleet.collector import Collector
from dynamo_sim.fleet.fleet import Fleet
from dynamo_sim.kv.prefix import PrefixInterner
from dynamo_sim.records.records import RunRecords
from dynamo_sim.report.rows import request_rows
from dynamo_sim.report.summary import summarise
from dynamo_sim.routing.build import RouterContext, build_routers
from dynamo_sim.scenario.engine_args import EngineArgs
from dynamo_sim.scenario.sections import Sla
from dynamo_sim.scenario.specs import Scenario
from dynamo_sim.serving.disaggregated import DisaggregatedServing
from dynamo_sim.serving.planner_bridge import PlannerController
from dynamo_sim.serving.side import SideParts
from dynamo_sim.serving.transfer import TransferTiming
from dynamo_sim.workload.build import build_source
from tests.parity.cases import Case, _routing, _workload, has_ticks
from tests.parity.planner import CasePlanner


def build(case: Case, controller: Any = None, max_passes: int = 1_000_000) -> DisaggregatedServing:
    """The serving of a case."""
    ticks = has_ticks(case)
    args = {side: EngineArgs(**case[side]) for side in ("prefill", "decode")}
    scenario = Scenario.from_dict(
        {
            "name": "case",
            "workload": _workload(case, ticks),
            "fleet": {"workers": 2, "engine": {}},
            "routing": _routing(case),
        }
    )
    source = build_source(
        scenario.workload,
        engine_block_size=args["prefill"].block_size,
        concurrency=case.get("concurrency"),
        ticks=ticks,
        disaggregated=True,
    )
    cap_ms = None if ticks else case.get("max_sim_time_ms")
    interner = PrefixInterner(args["prefill"].block_size)
    records = RunRecords()
    contexts = (
        RouterContext(args[side], interner, stream=f"routing/{side}") for side in ("prefill", "decode")
    )
    routers = dict(zip(("prefill", "decode"), build_routers(scenario.routing, *contexts), strict=True))
    parts = {}
    for name, stage in (("prefill", Stage.PREFILL), ("decode", Stage.DECODE)):
        engine = args[name]
        factory = scheduler_factory(engine, capped=cap_ms is not None, interner=interner, stage=stage)
        fleet = Fleet(stage, factory, case.get(f"{name}_workers", 1), engine.startup_time, visible=False)
        collector = Collector(records=records, name=name, gpus_per_worker=engine.gpus_per_worker)
        parts[name] = SideParts(fleet, routers[name], collector)
    return DisaggregatedServing(
        Clock(),
        parts["prefill"],
        parts["decode"],
        source,
        interner=interner,
        timing=TransferTiming.of(args["prefill"]),
        source_first=args["prefill"].engine_type == "vllm",
        controller=controller,
        max_passes=max_passes,
        cap_ms=cap_ms,
    )


def answer(case: Case, max_stretch_passes: int = 1_000_000) -> dict[str, Any]:
    """The answer in the form of the reference."""
    planner = CasePlanner(case.get("scaling", []), case.get("poll_ms")) if has_ticks(case) else None
    serving = build(case, None if planner is None else PlannerController(planner), max_stretch_passes)
    serving.run()
    records = serving.decode.collector.records
    rows = request_rows(records) if case["workload"]["kind"] == "trace" and planner is None else None
    report = dict(summarise(records, Sla(**case.get("sla", {}))).as_reference())
    return {"report": report, "requests": rows, "ticks": None if planner is None else planner.ticks}
