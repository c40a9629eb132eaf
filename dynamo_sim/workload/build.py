"""From the description of a workload to the source that offers it (`spec 08, 2`)."""

from __future__ import annotations

from typing import Any

from dynamo_sim.errors import ScenarioError
from dynamo_sim.workload.conversations import (
    Conversations,
    Workflow,
    check_closed,
    check_ratio,
    schedule_open,
)
from dynamo_sim.workload.generated.build import generated_source
from dynamo_sim.workload.plain_list import CappedList, OpenList
from dynamo_sim.workload.session_driver import SessionDriver
from dynamo_sim.workload.sources import WorkloadSource
from dynamo_sim.workload.synthetic import (
    SyntheticTurns,
    check_counts,
    is_plain,
    plain_arrivals,
    session_starts,
    synthetic_sessions,
)
from dynamo_sim.workload.trace.agentic import schedule_workflow
from dynamo_sim.workload.trace.formats import canonical_format, read_trace
from dynamo_sim.workload.workflow_driver import WorkflowDriver


def build_source(
    spec: Any,
    *,
    engine_block_size: int,
    concurrency: int | None = None,
    ticks: bool = False,
    single_worker: bool = False,
    honour_cap_with_ticks: bool = False,
    disaggregated: bool = False,
    seed: int = 0,
) -> WorkloadSource:
    """Build the source of requests that ``spec`` describes.

    Args:
        spec: a synthetic load (``kind`` "synthetic": `SyntheticLoad` and ``arrival_speedup_ratio``) or a
            trace (``kind`` "trace": ``path`` or ``records``, ``format``, ``trace_block_size``,
            ``shared_prefix_ratio``, ``num_prefix_groups``, ``arrival_speedup_ratio``, ``skip_bad_lines``).
        engine_block_size: tokens a block of the engine (disaggregated: of the prefill engine).
        concurrency: cap of a closed loop, on requests or on sessions (`spec 08, 9`); None for an open loop.
        ticks: whether the run has an autoscaler. The reference then ignores the cap, which only switches the
            speed-up off (`spec 08, 9`).
        single_worker: whether the one-worker runtime executes the run: closed-loop arrivals are stamped when
            taken.
        honour_cap_with_ticks: make ``concurrency`` a cap on sessions in runs with ticks too.
        disaggregated: whether prefill and decode are separate fleets, for which some formats are refused.
        seed: the scenario's seed; only generated loads are random.

    Raises:
        ScenarioError: the parameters are out of range or do not go together.
        TraceError: the trace cannot be read, or one of its lines is wrong.
    """
    if concurrency is not None and concurrency < 1:
        raise ScenarioError(f"replay_concurrency must be at least 1, got {concurrency} (concurrency)")
    if spec.kind == "generated":
        return generated_source(
            spec,
            seed=seed,
            concurrency=concurrency,
            stamp_at_take=single_worker and concurrency is not None,
            disaggregated=disaggregated,
        )
    ratio = float(spec.arrival_speedup_ratio)
    cap = concurrency
    if ticks and concurrency is not None:
        ratio = 1.0
        cap = concurrency if honour_cap_with_ticks else None
    stamp_at_take = single_worker and cap is not None
    if spec.kind == "synthetic":
        return _synthetic(spec, engine_block_size, ratio, cap, ticks, stamp_at_take)
    return _trace(spec, ratio, cap, ticks, stamp_at_take, disaggregated)


def _synthetic(
    spec: Any, block_tokens: int, ratio: float, cap: int | None, ticks: bool, stamp_at_take: bool
) -> WorkloadSource:
    check_counts(spec)
    if is_plain(spec) and not ticks:
        turns = SyntheticTurns(spec, spec.request_count)
        if cap is not None:
            return CappedList(turns, cap)
        check_ratio(ratio, "arrival_speedup_ratio")
        return OpenList(turns, plain_arrivals(spec, ratio))
    if cap is not None:
        return SessionDriver(synthetic_sessions(spec, block_tokens, 1.0), None, cap, stamp_at_take)
    check_ratio(ratio)
    return SessionDriver(synthetic_sessions(spec, block_tokens, ratio), session_starts(spec, ratio))


def _trace(
    spec: Any, ratio: float, cap: int | None, ticks: bool, stamp_at_take: bool, disaggregated: bool
) -> WorkloadSource:
    trace_format = canonical_format(spec.format)
    skip = bool(spec.skip_bad_lines)
    if trace_format == "applied_compute_agentic" and cap is None:
        raise ScenarioError(
            "trace_format='applied_compute_agentic' requires replay_concurrency because source traces do not "
            "contain first-turn timestamps (set concurrency, the number of sessions active at a time)"
        )
    if trace_format == "mooncake-delta" and disaggregated:
        raise ScenarioError("mooncake-delta trace format is not supported for disaggregated replay")
    if trace_format == "agentic_mooncake":
        _refuse_workflow("agentic_mooncake trace format is", cap, disaggregated)
    content = read_trace(
        spec.path if spec.path is not None else spec.records,
        trace_format,
        spec.trace_block_size,
        shared_prefix_ratio=spec.shared_prefix_ratio,
        num_prefix_groups=spec.num_prefix_groups,
        skip_bad_lines=skip,
    )
    source: WorkloadSource
    if isinstance(content, Workflow):
        if trace_format == "dynamo":
            _refuse_workflow("agentic Dynamo request traces are", cap, disaggregated)
        check_ratio(ratio)
        schedule_workflow(content, ratio)
        source = WorkflowDriver(content)
    elif cap is not None:
        check_closed(content, skip)
        source = SessionDriver(content, None, cap, stamp_at_take)
    else:
        source = _open_loop(content, ratio, ticks, skip)
    source.skipped = content.skipped
    return source


def _open_loop(content: Conversations, ratio: float, ticks: bool, skip: bool) -> WorkloadSource:
    starts = schedule_open(content, ratio, skip)
    if content.single and not ticks:
        return OpenList(content.turns, starts, [rows[0] for rows in content.rows])
    return SessionDriver(content, starts)


def _refuse_workflow(what: str, cap: int | None, disaggregated: bool) -> None:
    if cap is not None:
        raise ScenarioError(f"{what} not supported with replay_concurrency (remove concurrency)")
    if disaggregated:
        raise ScenarioError(f"{what} not supported for disaggregated replay")
