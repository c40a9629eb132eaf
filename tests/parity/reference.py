"""Asks the compiled reference (`ai-dynamo-runtime`, the ``parity`` extra) for its answers.

Run as a script it is the far end: it reads one case a line and prints one answer a line. The reference may panic or
loop for ever, so it always runs in a process of its own, with a time limit a case.
"""

from __future__ import annotations

import contextlib
import importlib.util
import json
import os
import select
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
HOST_BOUND = ("wall_time_ms", "processed_tokens_per_s", "processed_output_tokens_per_s")


def interpreter() -> str | None:
    """A Python that has the reference: ``DYNAMO_SIM_REFERENCE_PYTHON``, or this one; None without it."""
    named = os.environ.get("DYNAMO_SIM_REFERENCE_PYTHON")
    if named:
        return named
    found = importlib.util.find_spec("dynamo") and importlib.util.find_spec("dynamo._core")
    return sys.executable if found else None


class Reference:
    """A running reference.

    Args:
        python: an interpreter that has it installed.
        seconds: how long it may think about one case.
    """

    def __init__(self, python: str, seconds: float = 20.0) -> None:
        self._python = python
        self._seconds = seconds
        self._process: subprocess.Popen[str] | None = None

    def answer(self, case: dict[str, Any]) -> dict[str, Any] | None:
        """What it answers to a case; None where it panics or does not come back."""
        if self._process is None or self._process.poll() is not None:
            self._process = subprocess.Popen(
                [self._python, __file__],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                text=True,
                cwd=ROOT,
                env={**os.environ, "DYN_LOG": "off", "PYTHONPATH": str(ROOT)},
            )
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.write(json.dumps(case) + "\n")
        self._process.stdin.flush()
        ready, _, _ = select.select([self._process.stdout], [], [], self._seconds)
        line = self._process.stdout.readline() if ready else ""
        if not line:
            self.close()
            return None
        answer: dict[str, Any] = json.loads(line)
        return answer

    def close(self) -> None:
        """End the process."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            for stream in (self._process.stdin, self._process.stdout):
                with contextlib.suppress(OSError):
                    if stream is not None:
                        stream.close()
            self._process = None


# ---------------------------------------------------------------- the far end


def _engine_args(core: Any, given: dict[str, Any], folder: Path) -> Any:
    values = dict(given)
    if isinstance(values.get("planner_profile_data"), dict):
        import numpy as np

        path = folder / "profile.npz"
        np.savez(
            path, **{k: np.asarray(v, dtype=np.float64) for k, v in values["planner_profile_data"].items()}
        )
        values["planner_profile_data"] = str(path)
    if values.get("sglang") is not None:
        values["sglang"] = core.SglangArgs(**values["sglang"])
    if values.get("trtllm") is not None:
        values["trtllm"] = core.TrtllmArgs(**values["trtllm"])
    return core.MockEngineArgs(**values)


def _router_config(core: Any, given: dict[str, Any], folder: Path) -> Any:
    values = dict(given)
    if "router_policy" in values:
        path = folder / "policy.yaml"
        path.write_text(json.dumps(values.pop("router_policy")))
        values["router_policy_config"] = str(path)
    return core.KvRouterConfig(**values)


def _fleets(core: Any, case: dict[str, Any], folder: Path) -> dict[str, Any]:
    """Engine arguments and numbers of workers of one fleet or two, as keywords of the reference, in its order."""
    if "engine" in case:
        engine = _engine_args(core, case["engine"], folder)
        return {"extra_engine_args": engine, "num_workers": case.get("workers", 1)}
    sides = ("prefill", "decode")
    fleets = {f"{side}_engine_args": _engine_args(core, case[side], folder) for side in sides}
    return fleets | {f"num_{side}_workers": case.get(f"{side}_workers", 1) for side in sides}


def _plain(value: Any) -> Any:
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    fields = [name for name in dir(value) if not name.startswith("_")]
    return {name: _plain(getattr(value, name)) for name in fields if not callable(getattr(value, name))}


def _ask(case: dict[str, Any], folder: Path) -> dict[str, Any]:
    import dynamo._core as core

    from tests.parity.planner import CasePlanner

    workload = dict(case["workload"])
    is_trace = workload.pop("kind") == "trace"
    sla = case.get("sla", {})
    common: dict[str, Any] = {f"sla_{name}": sla.get(name) for name in ("ttft_ms", "itl_ms", "e2e_ms")}
    common["arrival_speedup_ratio"] = case.get("speedup", 1.0)
    common["replay_concurrency"] = case.get("concurrency")
    common["router_mode"] = case.get("router_mode", "round_robin")
    if case.get("router") is not None:
        common["router_config"] = _router_config(core, case["router"], folder)
    fleets = _fleets(core, case, folder)
    trace = folder / "trace.jsonl"
    if is_trace:
        trace.write_text("".join(json.dumps(record) + "\n" for record in workload["records"]))
    block_size = workload.get("block_size", 512)
    if case.get("scaling") or case.get("poll_ms"):
        planner = CasePlanner(case.get("scaling", []), case.get("poll_ms"))
        bridge_type = core.PlannerReplayBridge
        if is_trace:
            make = bridge_type if "engine" in case else bridge_type.create_disagg
            bridge = make(str(trace), *fleets.values(), **common, trace_block_size=block_size)
        else:
            make = bridge_type.from_synthetic if "engine" in case else bridge_type.from_synthetic_disagg
            bridge = make(**fleets, **common, **workload)
        report = _plain(bridge.run(planner))
        return {"report": report, "requests": None, "ticks": _plain(planner.ticks)}
    rows_path = folder / "rows.jsonl"
    common |= fleets
    if is_trace:
        report = core.run_mocker_trace_replay(
            [str(trace)],
            trace_format=workload.get("format", "mooncake"),
            trace_block_size=block_size,
            trace_shared_prefix_ratio=workload.get("shared_prefix_ratio", 0.0),
            trace_num_prefix_groups=workload.get("num_prefix_groups", 0),
            max_sim_time_ms=case.get("max_sim_time_ms"),
            report_jsonl_path=str(rows_path),
            **common,
        )
    else:
        report = core.run_mocker_synthetic_trace_replay(**workload, **common)
    rows = [json.loads(line) for line in rows_path.read_text().splitlines()] if rows_path.exists() else None
    return {"report": _plain(report), "requests": rows, "ticks": None}


def main() -> None:
    out = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # whatever the reference prints must not mix with the answers
    for line in sys.stdin:
        with tempfile.TemporaryDirectory() as name:
            try:
                answer = _ask(json.loads(line), Path(name))
                for key in HOST_BOUND:
                    answer["report"].pop(key, None)
            except KeyboardInterrupt:
                raise
            except BaseException as error:  # a panic of the reference is no Exception
                answer = {"error": str(error) or type(error).__name__}
        out.write(json.dumps(answer) + "\n")
        out.flush()


if __name__ == "__main__":
    main()
