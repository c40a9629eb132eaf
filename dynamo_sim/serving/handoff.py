"""The life of a prompt between two fleets: facts come in, actions go out (`spec 07, 4`)."""

from __future__ import annotations

from enum import Enum

from dynamo_sim.workload.milestones import HandoffMilestones
from dynamo_sim.workload.request import Outcome, Request


class Action(Enum):
    """What has to be done next for a handoff."""

    __hash__ = object.__hash__  # that of Enum is written in Python

    SUBMIT_PREFILL = "submit prefill"
    RESERVE_DESTINATION = "reserve destination"
    START_TRANSFER = "start transfer"
    ACTIVATE_DESTINATION = "activate destination"
    RELEASE_SOURCE = "release source"
    COMPLETE = "complete"
    CANCEL_SOURCE = "cancel source"
    CANCEL_DESTINATION = "cancel destination"
    FAIL = "complete (failed)"
    """Both sides are clean: the request leaves the system without an answer."""


class Fact(Enum):
    """What has happened to a handoff."""

    __hash__ = object.__hash__

    HELD = "source held"
    RESERVED = "destination reserved"
    TRANSFERRED = "transfer done"
    ACTIVATED = "destination activated"
    RELEASED = "source released"
    REJECTED = "prefill rejected"
    REFUSED = "destination refused"
    SOURCE_LOST = "prefill worker killed"
    DESTINATION_LOST = "decode worker killed"
    SOURCE_CANCELLED = "source cancelled"
    DESTINATION_CANCELLED = "destination cancelled"


_AFTER_TRANSFER = {
    Fact.TRANSFERRED: Action.ACTIVATE_DESTINATION,
    Fact.ACTIVATED: Action.RELEASE_SOURCE,
    Fact.RELEASED: Action.COMPLETE,
}

SOURCE_FIRST = {
    Fact.HELD: Action.RESERVE_DESTINATION,
    Fact.RESERVED: Action.START_TRANSFER,
    **_AFTER_TRANSFER,
}
"""vLLM: the prompt is computed, then a decode worker is chosen for it."""

DESTINATION_FIRST = {
    Fact.RESERVED: Action.SUBMIT_PREFILL,
    Fact.HELD: Action.START_TRANSFER,
    **_AFTER_TRANSFER,
}
"""SGLang: a decode worker has room, then the prompt is computed for it."""

_FAILURES = {
    Fact.REJECTED: Outcome.REJECTED,
    Fact.REFUSED: Outcome.FAILED,
    Fact.SOURCE_LOST: Outcome.FAILED,
    Fact.DESTINATION_LOST: Outcome.FAILED,
}


class Handoff:
    """One handoff, which knows no clock and no worker.

    Its way is a line: every fact of the order is followed by one action, and no action is asked for twice. A failure
    ends that; what has been asked of either side is then cancelled, and the handoff fails when both have reported.

    Args:
        request: whose prompt it is.
        order: which action follows which fact: `SOURCE_FIRST` or `DESTINATION_FIRST`.

    Attributes:
        milestones: where and when the prompt was.
        missing_tokens: tokens of the prompt that were not at the destination when room was set aside.
        failure: how it has failed, or None.
    """

    __slots__ = ("_asked", "_facts", "_order", "failure", "milestones", "missing_tokens", "request")

    def __init__(self, request: Request, order: dict[Fact, Action]) -> None:
        self.request = request
        self.milestones = HandoffMilestones()
        self.missing_tokens = 0
        self.failure: Outcome | None = None
        self._order = order
        self._facts: set[Fact] = set()
        self._asked: set[Action] = set()

    def start(self) -> Action:
        """The first action."""
        source_first = self._order is SOURCE_FIRST
        action = Action.SUBMIT_PREFILL if source_first else Action.RESERVE_DESTINATION
        self._asked.add(action)
        return action

    def note(self, fact: Fact) -> tuple[Action, ...]:
        """What has to be done after a fact; a repeated one changes nothing."""
        if fact in self._facts:
            return ()
        self._facts.add(fact)
        if self.failure is not None:
            return self._after_failure()
        outcome = _FAILURES.get(fact)
        if outcome is None:
            action = self._order[fact]
            self._asked.add(action)
            return (action,)
        if fact is Fact.SOURCE_LOST and Fact.TRANSFERRED in self._facts:
            return ()  # the copy that was sent is enough
        self.failure = outcome
        return self._cancellations() or self._after_failure()

    def _cancellations(self) -> tuple[Action, ...]:
        cancellations = (
            (Action.SUBMIT_PREFILL, Fact.SOURCE_CANCELLED, Action.CANCEL_SOURCE),
            (Action.RESERVE_DESTINATION, Fact.DESTINATION_CANCELLED, Action.CANCEL_DESTINATION),
        )
        actions = []
        for asked, report, cancellation in cancellations:
            if asked in self._asked:
                actions.append(cancellation)
            else:
                self._facts.add(report)  # there is nothing to cancel
        return tuple(actions)

    def _after_failure(self) -> tuple[Action, ...]:
        both = {Fact.SOURCE_CANCELLED, Fact.DESTINATION_CANCELLED}
        if Action.FAIL in self._asked or not both <= self._facts:
            return ()
        self._asked.add(Action.FAIL)
        return (Action.FAIL,)
