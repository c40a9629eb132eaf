"""A recorded trace whose requests arrive at other times."""

from __future__ import annotations

from array import array

from dynamo_sim.errors import ScenarioError, TraceError
from dynamo_sim.scenario.arrivals import RetimedArrivals
from dynamo_sim.scenario.generated_workload import GeneratedWorkload
from dynamo_sim.traces.conversations import Conversations, Workflow
from dynamo_sim.traces.formats import format_named, read_trace
from dynamo_sim.workload.arrivals.times import arrival_times_ms
from dynamo_sim.workload.loop import Loop
from dynamo_sim.workload.sessions import SessionDriver
from dynamo_sim.workload.source import WorkloadSource
from dynamo_sim.workload.speedup import sped_up
from dynamo_sim.workload.trace_source import open_source, sessions_of


def retimed_source(
    spec: GeneratedWorkload, arrivals: RetimedArrivals, seed: int, loop: Loop
) -> WorkloadSource:
    """The trace's requests in their order, at the times of the profile; see `RetimedArrivals`.

    Raises:
        ScenarioError: the trace's requests wait for others, or its format is not possible here.
        TraceError: the trace cannot be read, or has fewer requests than asked for.
    """
    if format_named(arrivals.format).is_delta and loop.disaggregated:
        raise ScenarioError(
            f"workload.arrivals.format: {arrivals.format} is not possible in a disaggregated run"
        )
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
    source: WorkloadSource
    if loop.cap is None:
        times = arrival_times_ms(arrivals.profile, seed, count, spec.duration_s, loop.ratio)
        trace.keep(order[: times.size])
        trace.delays = sped_up(trace.delays, loop.ratio, "the pause before a turn")
        source = open_source(trace, array("d", times.tobytes()), as_sessions=trace.is_delta)
    else:
        trace.keep(order[:count])
        source = SessionDriver(sessions_of(trace), None, loop.cap, loop.stamp_at_take)
    source.skipped = trace.skipped
    return source


def _by_time(trace: Conversations) -> list[int]:
    """Sessions in the order in which they began; those of one time, or of unknown ones, as in the file."""
    if None in trace.starts:
        return list(range(len(trace.rows)))
    return sorted(range(len(trace.rows)), key=lambda session: trace.starts[session] or 0.0)
