"""A recorded trace whose requests arrive at other times."""

from __future__ import annotations

from array import array

from dynamo_sim.errors import ScenarioError, TraceError
from dynamo_sim.scenario.arrivals import RetimedArrivals
from dynamo_sim.scenario.generated_workload import GeneratedWorkload
from dynamo_sim.workload.conversations import Conversations, Workflow, sped_up
from dynamo_sim.workload.generated.arrival_times import arrival_times_ms
from dynamo_sim.workload.plain_list import OpenList
from dynamo_sim.workload.session_driver import SessionDriver
from dynamo_sim.workload.sources import WorkloadSource
from dynamo_sim.workload.trace.formats import read_trace


def retimed_source(
    spec: GeneratedWorkload,
    arrivals: RetimedArrivals,
    seed: int,
    concurrency: int | None = None,
    stamp_at_take: bool = False,
    disaggregated: bool = False,
) -> WorkloadSource:
    """The trace's requests in their order, at the times of the profile; see `RetimedArrivals`.

    Raises:
        ScenarioError: the trace's requests wait for others, or its format is not possible here.
        TraceError: the trace cannot be read, or has fewer requests than asked for.
    """
    if arrivals.format == "mooncake-delta" and disaggregated:
        raise ScenarioError("workload.arrivals.format: mooncake-delta is not possible in a disaggregated run")
    trace = read_trace(
        arrivals.path, arrivals.format, arrivals.trace_block_size, skip_bad_lines=arrivals.skip_bad_lines
    )
    if isinstance(trace, Workflow):
        raise ScenarioError(
            f"workload.arrivals: requests of {arrivals.path} start when others end; they cannot be re-timed"
        )
    available = len(trace.rows)
    count = available if spec.request_count is None else spec.request_count
    if count > available:
        what = "requests" if trace.single else "conversations"
        raise TraceError(f"has {available} {what}, fewer than the {count} of request_count", trace.file)
    order = _by_time(trace)
    if concurrency is None:
        speedup = spec.arrival_speedup_ratio
        times = arrival_times_ms(arrivals.profile, seed, count, spec.duration_s, speedup)
        starts: array[float] | None = array("d", times.tobytes())
        _keep(trace, order[: times.size])
        trace.delays = sped_up(trace.delays, speedup, "the pause before a turn")
    else:
        starts = None
        _keep(trace, order[:count])
    source = _source(trace, starts, concurrency, stamp_at_take)
    source.skipped = trace.skipped
    return source


def _source(
    trace: Conversations, starts: array[float] | None, cap: int | None, stamp_at_take: bool
) -> WorkloadSource:
    if starts is not None and trace.single and not trace.delta:
        return OpenList(trace.turns, starts, [rows[0] for rows in trace.rows])
    return SessionDriver(trace, starts, cap, stamp_at_take)


def _by_time(trace: Conversations) -> list[int]:
    """Sessions in the order in which they began; those of one time, or of unknown ones, as in the file."""
    if None in trace.starts:
        return list(range(len(trace.rows)))
    return sorted(range(len(trace.rows)), key=lambda session: trace.starts[session] or 0.0)


def _keep(trace: Conversations, sessions: list[int]) -> None:
    """Let the trace consist of these sessions, in this order."""
    trace.names = [trace.names[session] for session in sessions]
    trace.rows = [trace.rows[session] for session in sessions]
    trace.starts = [trace.starts[session] for session in sessions]
