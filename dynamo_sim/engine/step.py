"""What a worker does between two decisions: one pass, or a stretch of decode passes."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from enum import Enum

from dynamo_sim.engine.pass_log import PassNumbers
from dynamo_sim.engine.pass_stats import PassStats
from dynamo_sim.workload.request import Request


class SignalKind(Enum):
    """What an output signal of a request says (`spec 06, 3.2`)."""

    FIRST_TOKEN = "first token"
    """Its first token is out, and more are to come: its prefill is over."""
    COMPLETED = "completed"
    """Its last token is out."""
    REJECTED = "rejected"
    """The worker has refused it; there is no token."""


FIRST_TOKEN, COMPLETED, REJECTED = SignalKind  # looking a member up in its class takes longer

Signal = tuple[Request, SignalKind]
"""An output signal. Tokens between the first and the last one change nothing outside the worker and have none."""


class Step:
    """One pass, or a stretch of passes in which nothing is decided, of one worker.

    Attributes:
        start_ms: when its first pass starts.
        ends_ms: the end of each pass, in order; at least one.
        progress: whether its first pass did something (`spec 01, 3.5`); a zero-time pass without progress
            leaves the worker idle.
        admissions: requests admitted by its first pass.
        tokens, forwards: tokens emitted, and distinct requests that emitted, in each pass (`spec 04, 6.4`).
        signals: output signals of the last pass, in the engine's order; complete after `Scheduler.finish`. The passes
            of a stretch before its last one have none, but for those that nobody asks for (`Scheduler.start`).
        stats: forward-pass metrics, when a planner asks for them.
        later_stats: the same for all passes but the first, where those have other ones than the first.
        first_pass, stretch: what a `PassLog` notes of it, when passes are recorded: numbers of a pass that was carried
            out at its start, and of the stretch that `Scheduler.finish` carries out.
        reported_passes: passes whose metrics were reported before the step ended.
        order: place of the end of its first pass among all that is due at one instant (`spec 01, 5`): the instant it
            was queued, the round, the step of that round, the place in it; set by the fleet.
    """

    __slots__ = (
        "admissions",
        "ends_ms",
        "first_pass",
        "forwards",
        "later_stats",
        "order",
        "progress",
        "reported_passes",
        "signals",
        "start_ms",
        "stats",
        "stretch",
        "tokens",
    )

    def __init__(
        self, start_ms: float, ends_ms: list[float], progress: bool, tokens: int, forwards: int
    ) -> None:
        self.start_ms = start_ms
        self.ends_ms = ends_ms
        self.progress = progress
        self.admissions = 0
        self.tokens = tokens
        self.forwards = forwards
        self.signals: list[Signal] = []
        self.stats: PassStats | None = None
        self.later_stats: PassStats | None = None
        self.first_pass: PassNumbers | None = None
        self.stretch: PassNumbers | None = None
        self.reported_passes = 0
        self.order: tuple[float, int, int, float] = (0.0, 0, 0, 0.0)

    def stats_of(self, index: int) -> tuple[PassStats, int]:
        """Metrics that hold for pass ``index``, and which pass of theirs it is, from 0; they must be recorded."""
        if index and self.later_stats is not None:
            return self.later_stats, index - 1
        assert self.stats is not None
        return self.stats, index

    @property
    def finals(self) -> list[tuple[Request, bool]]:
        """Requests that ended, with "was rejected", in the engine's order."""
        if not self.signals:
            return []
        return [(request, kind is REJECTED) for request, kind in self.signals if kind is not FIRST_TOKEN]

    @property
    def end_ms(self) -> float:
        """When its last pass ends."""
        return self.ends_ms[-1]

    @property
    def last_start_ms(self) -> float:
        """When its last pass starts."""
        return self.ends_ms[-2] if len(self.ends_ms) > 1 else self.start_ms

    def cut(self, now_ms: float) -> bool:
        """End at the first pass boundary at or after ``now_ms``; say whether that made it shorter."""
        ends = self.ends_ms
        keep = bisect_left(ends, now_ms) + 1
        if keep >= len(ends):
            return False
        del ends[keep:]
        return True

    def has_boundary_at(self, now_ms: float) -> bool:
        """Whether a pass of it but the last one ends at ``now_ms``."""
        ends = self.ends_ms
        return len(ends) > 1 and ends[-1] > now_ms and ends[bisect_left(ends, now_ms)] == now_ms

    def keep_ended(self, now_ms: float) -> bool:
        """Leave out the passes that have not ended by ``now_ms``; False, and nothing left out, when none has."""
        ended = bisect_right(self.ends_ms, now_ms)
        if ended:
            del self.ends_ms[ended:]
        return bool(ended)
