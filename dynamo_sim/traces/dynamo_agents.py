"""What waits for what among recorded agents: chains, children and tools (`spec 08, 8`, agents)."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from dynamo_sim.errors import TraceError
from dynamo_sim.traces.cycles import find_cycle
from dynamo_sim.traces.fields import brief

MODES = ("blocking", "background")


@dataclass(slots=True)
class Recorded:
    """One recorded request; times are ms since the epoch, ``session`` is None outside of agents."""

    request_id: str
    start_ms: int
    end_ms: int
    input_tokens: int
    output_tokens: int
    hashes: list[int]
    block_tokens: int
    session: str | None
    parent: str | None
    line: int
    file: str | None = None

    def order(self) -> tuple[int, int, str]:
        """Key by which requests are sorted."""
        return self.start_ms, self.end_ms, self.request_id


@dataclass(slots=True)
class ToolLink:
    """What an ended tool call says about requests of its session, and about the child session it ran."""

    tool: str
    session: str
    source: str
    consumer: str | None
    child: str | None
    mode: str
    line: int
    file: str | None = None


def link_agents(
    requests: Sequence[Recorded], links: Sequence[ToolLink]
) -> tuple[list[tuple[int, ...]], list[float]]:
    """The rows each request waits for, and its pause after the last of them in ms.

    Args:
        requests: sorted by `Recorded.order`; their positions are the row numbers.
        links: what the ended tools say, in file order.

    Raises:
        TraceError: a child has two parents, a tool contradicts the requests, or there is a cycle.
    """
    chains: dict[str, list[int]] = {}
    parents: dict[str, str] = {}
    for row, request in enumerate(requests):
        session = request.session or ""
        chains.setdefault(session, []).append(row)
        if request.parent is not None and parents.setdefault(session, request.parent) != request.parent:
            raise TraceError(
                f"session {brief(session)} has conflicting parent_session_id values: "
                f"{brief(parents[session])} and {brief(request.parent)}",
                request.file,
                request.line,
            )
    links_of_child = _check_links(requests, links)

    waits_for: list[dict[int, None]] = [{} for _ in requests]
    for chain in chains.values():
        for before, row in pairwise(chain):
            waits_for[row][before] = None
    row_of = {request.request_id: row for row, request in enumerate(requests)}
    for child, parent in parents.items():
        above = chains.get(parent)
        if above is None:
            continue
        first = chains[child][0]
        last = max(chains[child], key=lambda row: (requests[row].end_ms, *_start_and_id(requests[row])))
        link = _only_link(links_of_child.get(child, []), parent)
        if link is not None:
            waits_for[first][row_of[link.source]] = None
            if link.consumer is not None:
                waits_for[row_of[link.consumer]][last] = None
            continue
        starts = [requests[row].start_ms for row in above]
        spawning = bisect_right(starts, requests[first].start_ms) - 1
        if spawning >= 0:
            waits_for[first][above[spawning]] = None
        for row, start in zip(above, starts, strict=True):
            if start >= requests[last].end_ms:
                waits_for[row][last] = None
                break

    rows = [tuple(waits) for waits in waits_for]
    cycle = find_cycle(rows)
    if cycle is not None:
        raise TraceError(
            f"agentic request dependencies contain a cycle (at request {brief(requests[cycle].request_id)})",
            requests[cycle].file,
            requests[cycle].line,
        )
    wait_ms = [
        float(max(0, request.start_ms - max(requests[row].end_ms for row in waits))) if waits else 0.0
        for request, waits in zip(requests, rows, strict=True)
    ]
    return rows, wait_ms


def _start_and_id(request: Recorded) -> tuple[int, str]:
    return request.start_ms, request.request_id


def _fault(link: ToolLink, text: str) -> TraceError:
    return TraceError(f"tool {brief(link.tool)} {text}", link.file, link.line)


def _check_links(requests: Sequence[Recorded], links: Sequence[ToolLink]) -> dict[str, list[ToolLink]]:
    """Check what tools say about requests; returns the links of each child session."""
    session_of = {request.request_id: request.session for request in requests}
    links_of_child: dict[str, list[ToolLink]] = {}
    for link in links:
        if link.mode not in MODES:
            raise _fault(
                link, f"has unsupported execution_mode {brief(link.mode)} (allowed: {', '.join(MODES)})"
            )
        for name in (link.source, link.consumer):
            if name is None:
                continue
            if name not in session_of:
                raise _fault(link, f"references unknown request_id {brief(name)}")
            if session_of[name] != link.session:
                raise _fault(link, f"request {brief(name)} belongs to a different session")
        if link.child is not None:
            links_of_child.setdefault(link.child, []).append(link)
    return links_of_child


def _only_link(links: Sequence[ToolLink], parent: str) -> ToolLink | None:
    """The link of a child session of ``parent``; only children whose parent has requests are looked at."""
    if not links:
        return None
    if len(links) > 1:
        raise TraceError(
            f"multiple tool events reference child session {brief(links[1].child or '')}",
            links[1].file,
            links[1].line,
        )
    if links[0].session != parent:
        raise _fault(
            links[0], f"source request {brief(links[0].source)} is not in parent session {brief(parent)}"
        )
    return links[0]
