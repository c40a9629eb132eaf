"""The reference's load of constant lengths and intervals (`spec 08, 10`)."""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from itertools import accumulate, chain, repeat
from math import isfinite

from dynamo_sim.errors import ScenarioError
from dynamo_sim.limits import MAX_BLOCKS
from dynamo_sim.prompt_ids import TOKEN_MASK, check_shared_ratio, shared_blocks
from dynamo_sim.scenario.workload import SyntheticWorkload
from dynamo_sim.text import plain_number
from dynamo_sim.workload.content import runs_of_ids
from dynamo_sim.workload.loop import Loop
from dynamo_sim.workload.plain_list import CappedList, OpenList
from dynamo_sim.workload.request import Request, Runs
from dynamo_sim.workload.sessions import SessionDriver, Sessions
from dynamo_sim.workload.source import WorkloadSource
from dynamo_sim.workload.speedup import check_ratio, sped_up


def synthetic_source(load: SyntheticWorkload, block_tokens: int, loop: Loop) -> WorkloadSource:
    """Build the source of a synthetic load (`spec 08, 2`, paths E to G).

    Args:
        load: the parameters.
        block_tokens: the engine's block size.
        loop: how requests are offered.

    Raises:
        ScenarioError: a parameter is out of range.
    """
    check_counts(load)
    if load.is_plain and not loop.as_sessions:
        turns = SyntheticTurns(load, load.request_count)
        if loop.cap is not None:
            return CappedList(turns, loop.cap)
        check_ratio(loop.ratio, "arrival_speedup_ratio")
        return OpenList(turns, plain_arrivals(load, loop.ratio))
    if loop.cap is not None:
        return SessionDriver(synthetic_sessions(load, block_tokens, 1.0), None, loop.cap, loop.stamp_at_take)
    check_ratio(loop.ratio)
    return SessionDriver(synthetic_sessions(load, block_tokens, loop.ratio), session_starts(load, loop.ratio))


class SyntheticTurns:
    """Rows that exist only when they are asked for.

    Args:
        load: the parameters.
        rows: number of rows.
        block_tokens: tokens an id, or None for prompts that are unlike everything else.
    """

    def __init__(self, load: SyntheticWorkload, rows: int, block_tokens: int | None = None) -> None:
        self._input = load.input_tokens
        self._output = load.output_tokens
        self._rows = rows
        self._block = block_tokens or load.input_tokens
        blocks = -(-load.input_tokens // self._block)
        ratio, groups = load.shared_prefix_ratio, load.num_prefix_groups
        self._shared = 0 if block_tokens is None else shared_blocks(blocks, ratio, groups)
        self._private = blocks - self._shared
        self._beginning = tuple((value, self._block) for value in range(self._shared))
        self._last_tokens = load.input_tokens - (blocks - 1) * self._block

    def __len__(self) -> int:
        return self._rows

    def runs_of(self, row: int) -> Runs | None:
        """Shared ids 0, 1, 2, ..., then ids of one counter over all rows that starts at 1.

        None where nothing is shared: numbers of the counter come only once, so the prompt is like no other.
        """
        shared, private = self._shared, self._private
        if not shared:
            return None
        first = 1 + row * private
        if not private or first < shared or first + private > TOKEN_MASK:
            values = [*range(shared), *((first + offset) & TOKEN_MASK for offset in range(private))]
            return runs_of_ids(values, self._block, self._input)
        last = first + private - 1
        return (*self._beginning, *zip(range(first, last), repeat(self._block)), (last, self._last_tokens))

    def input_tokens(self, row: int) -> int:
        """Prompt length."""
        return self._input

    def output_tokens(self, row: int) -> int:
        """Tokens to generate."""
        return self._output

    def planned_output(self, row: int) -> None:
        """Answers are never planned."""

    def request(self, row: int, arrival_ms: float) -> Request:
        """A new request for ``row``."""
        return Request(row, arrival_ms, self._input, self._output, self if self._shared else None)


class _EqualSessions(Sequence[range]):
    """Rows of sessions that all have the same number of turns."""

    def __init__(self, sessions: int, turns: int) -> None:
        self._sessions = sessions
        self._turns = turns

    def __len__(self) -> int:
        return self._sessions

    def __getitem__(self, session):  # type: ignore[no-untyped-def]
        if not 0 <= session < len(self):
            raise IndexError(session)
        return range(session * self._turns, (session + 1) * self._turns)


def check_counts(load: SyntheticWorkload) -> None:
    """Raise ScenarioError for lengths, counts or an interval out of range."""
    for name in ("input_tokens", "output_tokens", "request_count"):
        if getattr(load, name) < 1:
            raise ScenarioError(f"{name} must be at least 1, got {getattr(load, name)}")
    if load.num_prefix_groups < 0:
        raise ScenarioError(f"num_prefix_groups must be 0 or more, got {load.num_prefix_groups}")
    interval = load.arrival_interval_ms
    if not (isfinite(interval) and interval >= 0.0):
        raise ScenarioError(
            f"arrival_interval_ms must be a finite non-negative number, got {plain_number(interval)}"
        )


def plain_arrivals(load: SyntheticWorkload, ratio: float) -> array[float]:
    """Arrival k = (k x interval) / speed-up: a product (`spec 08, 10`)."""
    interval = float(load.arrival_interval_ms)
    return sped_up((k * interval for k in range(load.request_count)), ratio, "the last arrival")


def session_starts(load: SyntheticWorkload, ratio: float) -> array[float]:
    """Session starts: a running sum, then divided; a product differs in the last bits (`spec 08, 10`)."""
    interval = float(load.arrival_interval_ms)
    gap = 1000.0 / (1000.0 / interval) if interval else 0.0
    sums = accumulate(chain((0.0,), repeat(gap, load.request_count - 1)))
    return sped_up(sums, ratio, "the last arrival")


def synthetic_sessions(load: SyntheticWorkload, block_tokens: int, ratio: float) -> Sessions:
    """Sessions of equal turns that share their leading blocks with each other.

    Args:
        load: the parameters.
        block_tokens: the engine's block size, which is the size of an id here.
        ratio: divides delays.

    Raises:
        ScenarioError: a parameter is out of range.
    """
    if load.turns_per_session < 1:
        raise ScenarioError(f"turns_per_session must be at least 1, got {load.turns_per_session}")
    delay = load.inter_turn_delay_ms
    if not (isfinite(delay) and delay >= 0.0):
        raise ScenarioError(
            f"inter_turn_delay_ms must be a finite non-negative number, got {plain_number(delay)}"
        )
    check_shared_ratio(load.shared_prefix_ratio)
    if load.shared_prefix_ratio > 0.0 and load.input_tokens > MAX_BLOCKS * block_tokens:
        raise ScenarioError(
            f"workload.input_tokens: found {load.input_tokens}; must be at most {MAX_BLOCKS * block_tokens}, which "
            f"are {MAX_BLOCKS} blocks of {block_tokens} tokens, where prompts share a prefix"
        )
    turns = load.turns_per_session
    rows = load.request_count * turns
    return Sessions(
        turns=SyntheticTurns(load, rows, block_tokens),
        names=_Names(load.request_count),
        rows=_EqualSessions(load.request_count, turns),
        delays=_Constant(sped_up((delay,), ratio, "the pause before a turn")[0], rows),
    )


class _Names(Sequence[str]):
    def __init__(self, count: int) -> None:
        self._count = count

    def __len__(self) -> int:
        return self._count

    def __getitem__(self, session):  # type: ignore[no-untyped-def]
        if not 0 <= session < len(self):
            raise IndexError(session)
        return f"session_{session}"


class _Constant(Sequence[float]):
    def __init__(self, value: float, count: int) -> None:
        self._value = value
        self._count = count

    def __len__(self) -> int:
        return self._count

    def __getitem__(self, row):  # type: ignore[no-untyped-def]
        if not 0 <= row < self._count:
            raise IndexError(row)
        return self._value
