"""One run of one load on one side: prints its CPU time, peak memory and a few figures as JSON.

``python benchmarks/one_run.py ours|reference LOAD [TRACE]``. CPU time is that of the run itself, from a case in memory
to the finished report; imports and reading the trace file are not in it.
"""

from __future__ import annotations

import json
import resource
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.loads import load

FIGURES = ("num_requests", "duration_ms", "mean_ttft_ms", "mean_itl_ms", "p99_e2e_latency_ms")


def ours(case: dict[str, Any]) -> tuple[float, dict[str, Any]]:
    from dynamo_sim.simulation import run
    from tests.parity.cases import to_scenario

    scenario = to_scenario(case).with_(**{"report.passes": True})  # as by default
    begin = time.process_time()
    report = run(scenario).summary
    return time.process_time() - begin, dict(report)


def reference(case: dict[str, Any]) -> tuple[float, dict[str, Any]]:
    import dynamo._core as core

    workload = dict(case["workload"])
    common: dict[str, Any] = {"router_mode": case.get("router_mode", "round_robin")}
    for key, engine, count in (
        ("engine", "extra_engine_args", "workers"),
        ("prefill", "prefill_engine_args", "prefill_workers"),
        ("decode", "decode_engine_args", "decode_workers"),
    ):
        if key in case:
            common |= {engine: core.MockEngineArgs(**case[key]), f"num_{count}": case[count]}
    with tempfile.TemporaryDirectory() as folder:
        trace = Path(folder, "trace.jsonl")
        if workload.pop("kind") == "trace":
            trace.write_text("".join(json.dumps(record) + "\n" for record in workload["records"]))
            begin = time.process_time()
            report = core.run_mocker_trace_replay(
                [str(trace)], trace_block_size=workload["block_size"], **common
            )
        else:
            begin = time.process_time()
            report = core.run_mocker_synthetic_trace_replay(**workload, **common)
        return time.process_time() - begin, dict(report)


def main(side: str, name: str, trace: str | None = None) -> None:
    case = load(name, trace)
    cpu_s, report = {"ours": ours, "reference": reference}[side](case)
    peak_mb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(json.dumps({"cpu_s": cpu_s, "peak_mb": peak_mb, "figures": {key: report[key] for key in FIGURES}}))


if __name__ == "__main__":
    main(*sys.argv[1:])
