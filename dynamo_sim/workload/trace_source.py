"""The requests of a recorded trace, at the times of the trace (`spec 08, 2`, paths A to D)."""

from __future__ import annotations

from array import array

from dynamo_sim.errors import ScenarioError, TraceError
from dynamo_sim.scenario.workload import TraceWorkload
from dynamo_sim.text import plain_number
from dynamo_sim.traces.conversations import Conversations, Workflow
from dynamo_sim.traces.fields import brief
from dynamo_sim.traces.format import TraceFormat
from dynamo_sim.traces.formats import format_named, read_trace
from dynamo_sim.workload.loop import Loop
from dynamo_sim.workload.plain_list import OpenList
from dynamo_sim.workload.sessions import SessionDriver, Sessions
from dynamo_sim.workload.source import WorkloadSource
from dynamo_sim.workload.speedup import check_ratio, sped_up
from dynamo_sim.workload.turns import TraceTurns
from dynamo_sim.workload.workflows import WorkflowDriver


def trace_source(spec: TraceWorkload, loop: Loop) -> WorkloadSource:
    """Build the source of the requests of a trace.

    Raises:
        ScenarioError: the format does not go with the run, or the speed-up is impossible.
        TraceError: the trace cannot be read, or one of its lines is wrong.
    """
    trace_format = format_named(spec.format)
    if trace_format.needs_concurrency and loop.cap is None:
        raise ScenarioError(
            f"trace_format='{trace_format.name}' requires replay_concurrency because source traces do not "
            "contain first-turn timestamps (set concurrency, the number of sessions active at a time)"
        )
    if trace_format.is_delta and loop.disaggregated:
        raise ScenarioError(f"{trace_format.name} trace format is not supported for disaggregated replay")
    if trace_format.is_workflow:
        _check_workflow(trace_format, loop)
    content = read_trace(
        spec.path if spec.path is not None else spec.records or (),
        trace_format.name,
        spec.trace_block_size,
        shared_prefix_ratio=spec.shared_prefix_ratio,
        num_prefix_groups=spec.num_prefix_groups,
        columns=None if spec.columns is None else spec.columns.named(),
        time_unit=spec.time_unit,
        skip_bad_lines=spec.skip_bad_lines,
    )
    source: WorkloadSource
    if isinstance(content, Workflow):
        _check_workflow(trace_format, loop)
        source = workflow_source(content, loop.ratio)
    elif loop.cap is not None:
        check_closed(content, spec.skip_bad_lines)
        source = SessionDriver(sessions_of(content), None, loop.cap, loop.stamp_at_take)
    else:
        if trace_format.takes_columns and content.starts[0] is None:
            raise TraceError(
                "no column says when requests arrive; name it as columns.arrival, or give limits.concurrency to run "
                "the table as a closed loop",
                content.file,
            )
        starts = schedule_open(content, loop.ratio, spec.skip_bad_lines)
        source = open_source(content, starts, loop.as_sessions)
    source.skipped = content.skipped
    return source


def open_source(content: Conversations, starts: array[float], as_sessions: bool) -> WorkloadSource:
    """The source of conversations that begin at these times: a plain list where each has one turn."""
    if content.single and not as_sessions:
        return OpenList(TraceTurns(content.turns), starts, [rows[0] for rows in content.rows])
    return SessionDriver(sessions_of(content), starts)


def sessions_of(content: Conversations) -> Sessions:
    """The sessions of a trace as a driver takes them."""
    return Sessions(TraceTurns(content.turns), content.names, content.rows, content.delays, content.is_delta)


def workflow_source(workflow: Workflow, ratio: float) -> WorkflowDriver:
    """The source of requests that wait for others; all times are divided by ``ratio`` (`spec 08, 8`).

    Raises:
        ScenarioError: a time becomes infinite.
    """
    check_ratio(ratio)
    starts = iter(sped_up((start for start in workflow.starts if start is not None), ratio, "an arrival"))
    workflow.starts = [None if start is None else next(starts) for start in workflow.starts]
    workflow.wait_ms = sped_up(workflow.wait_ms, ratio, "the pause before a request")
    return WorkflowDriver(workflow)


def _check_workflow(trace_format: TraceFormat, loop: Loop) -> None:
    """Raise ScenarioError where requests that wait for others are not possible (`spec 08, 3`)."""
    what = f"{trace_format.workflow_subject} not supported"
    if loop.cap is not None:
        raise ScenarioError(f"{what} with replay_concurrency (remove concurrency)")
    if loop.disaggregated:
        raise ScenarioError(f"{what} for disaggregated replay")


def schedule_open(conversations: Conversations, ratio: float, skip_bad_lines: bool = False) -> array[float]:
    """Session starts of an open loop: shifted so that the first is at 0, then divided by ``ratio`` (`spec 08,
    5`).

    Delays are divided in place of the ones read. A session without a start is an error, or is emptied and
    noted as skipped where bad lines are to be skipped.

    Raises:
        ScenarioError: ``ratio`` is not finite and positive, or makes a time infinite.
        TraceError: a session has no start.
    """
    check_ratio(ratio)
    starts = conversations.starts
    if None in starts:
        if not skip_bad_lines:
            session = starts.index(None)
            raise TraceError(
                f"trace mode requires first_arrival_timestamp_ms for session {brief(conversations.names[session])} "
                "(give its first row a timestamp, or run a closed loop with concurrency)",
                conversations.file,
                conversations.first_line(session),
            )
        conversations.drop(
            [s for s, start in enumerate(starts) if start is None],
            "its session has no timestamp, which an open loop needs",
        )
        starts = conversations.starts
    known = array("d", (start for start in starts if start is not None))
    first = min(known, default=0.0)
    if ratio != 1.0:
        conversations.delays = sped_up(conversations.delays, ratio, "the pause before a turn")
    return sped_up((start - first for start in known), ratio, "the arrival of a session")


def check_closed(conversations: Conversations, skip_bad_lines: bool = False) -> None:
    """Raise TraceError for a session that starts before 0: closed loops do not shift times (`spec 08, 5`)."""
    early = [s for s, start in enumerate(conversations.starts) if start is not None and start < 0.0]
    if not early:
        return
    if skip_bad_lines:
        conversations.drop(early, "its session starts before 0, which a closed loop does not allow")
        return
    session = early[0]
    raise TraceError(
        f"session {brief(conversations.names[session])} has invalid first_arrival_timestamp_ms "
        f"{plain_number(conversations.starts[session] or 0.0)} (0 or more; a closed loop shifts nothing)",
        conversations.file,
        conversations.first_line(session),
    )
