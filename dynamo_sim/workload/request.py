"""One request: what was asked for, and what was observed of it."""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum
from typing import Protocol

from dynamo_sim.workload.milestones import HandoffMilestones
from dynamo_sim.workload.swap_ins import SwapIns

Runs = tuple[tuple[int, int], ...]
"""Prompt content as ``(token value, number of tokens)`` runs, neighbours of one value merged."""

MIN_UNIQUE_TOKEN = 1 << 32
"""Token values from here on were made up for this run: no trace can spell them (trace values have 32 bits)."""


class Content(Protocol):
    """What knows the prompts of requests, and makes their runs when somebody asks: few prompts are needed at a time."""

    def runs_of(self, row: int) -> Runs | None:
        """The prompt of the request with this index, or None for one that is unlike every other."""


class Outcome(Enum):
    """How a request left the fleet (`spec 09, 7`)."""

    COMPLETED = "completed"
    REJECTED = "rejected"
    FAILED = "failed"


class Request:
    """A request on its way through the fleet.

    The first group of attributes is what the workload asks for, the second what the run notes. Times are
    milliseconds of virtual time, lengths are tokens; ``None`` means "not (yet)".

    Attributes:
        index: position in the workload, from 0; unique in a run.
        session_id: name of the conversation, or None outside of conversations.
        session_index: number of the session in order of first appearance.
        turn_index: turn within the session, from 0.
        arrival_ms: when the request arrived (set by the workload; the fleet may stamp it later, `spec 08, 2`).
        input_tokens: prompt length.
        output_tokens: requested output length.
        content: the prompt's content, or what knows it; None for a prompt that is unlike every other one.
        planned_output: the token values the engine will generate, or None for values unlike anything else.
        priority, strict_priority, policy_class: for the cache-aware router only.
        block_names: names of the blocks of prompt and planned output (`PrefixInterner.names_of`), where somebody has
            asked for them before the request reached a worker.
        worker_id: worker of the first dispatch.
        first_admit_ms: start of the pass that first admitted it.
        first_token_ms, second_token_ms, last_token_ms: token times.
        emitted_tokens: tokens generated so far.
        first_reused_tokens, reused_tokens: prompt tokens found in the cache at the first admission, and the
            most at any admission.
        preemptions: how often it lost its place in the batch to make room (SGLang: was retracted).
        handoff: its way through two fleets, of a disaggregated run; None otherwise.
        swap_ins: what came back for it from lower cache tiers; None while nothing has.
        outcome: how it ended, or None while it has not.
        ended_ms: when it ended.
    """

    __slots__ = (
        "arrival_ms",
        "block_names",
        "content",
        "emitted_tokens",
        "ended_ms",
        "first_admit_ms",
        "first_reused_tokens",
        "first_token_ms",
        "handoff",
        "index",
        "input_tokens",
        "last_token_ms",
        "outcome",
        "output_tokens",
        "planned_output",
        "policy_class",
        "preemptions",
        "priority",
        "reused_tokens",
        "second_token_ms",
        "session_id",
        "session_index",
        "strict_priority",
        "swap_ins",
        "turn_index",
        "worker_id",
    )

    def __init__(
        self,
        index: int,
        arrival_ms: float,
        input_tokens: int,
        output_tokens: int,
        content: Runs | Content | None = None,
        planned_output: tuple[int, ...] | None = None,
        session_id: str | None = None,
        session_index: int = 0,
        turn_index: int | None = None,
        priority: int = 0,
        strict_priority: int = 0,
        policy_class: str | None = None,
    ) -> None:
        self.index = index
        self.arrival_ms = arrival_ms
        self.input_tokens = input_tokens
        self.output_tokens = output_tokens
        self.content = content
        self.planned_output = planned_output
        self.session_id = session_id
        self.session_index = session_index
        self.turn_index = turn_index
        self.priority = priority
        self.strict_priority = strict_priority
        self.policy_class = policy_class
        self.block_names: Sequence[int] | None = None
        self.worker_id: int | None = None
        self.first_admit_ms: float | None = None
        self.first_token_ms: float | None = None
        self.second_token_ms: float | None = None
        self.last_token_ms: float | None = None
        self.emitted_tokens = 0
        self.first_reused_tokens = 0
        self.reused_tokens = 0
        self.preemptions = 0
        self.handoff: HandoffMilestones | None = None
        self.swap_ins: SwapIns | None = None
        self.outcome: Outcome | None = None
        self.ended_ms: float | None = None

    def __repr__(self) -> str:
        name = f"{self.session_id}/{self.turn_index}" if self.session_id is not None else str(self.index)
        return f"<Request {name}: {self.input_tokens} in, {self.output_tokens} out, at {self.arrival_ms} ms>"

    @property
    def prompt(self) -> Runs | None:
        """The prompt's content, or None for a prompt that is unlike every other one."""
        content = self.content
        return content if content is None or isinstance(content, tuple) else content.runs_of(self.index)

    @property
    def name(self) -> str:
        """What to call this request in a message to a person."""
        if self.session_id is None:
            return f"request {self.index}"
        return f"turn {self.turn_index} of session {self.session_id!r}"

    def forget_tokens_after(self, now_ms: float, before_ms: float) -> None:
        """Take back what a pass that never ended has noted; ``before_ms`` is the end of the pass before it."""
        if self.first_token_ms is not None and self.first_token_ms > now_ms:
            self.first_token_ms = self.second_token_ms = self.last_token_ms = None
            self.emitted_tokens = 0
        elif self.last_token_ms is not None and self.last_token_ms > now_ms:
            self.emitted_tokens -= 1
            self.last_token_ms = before_ms
            if self.second_token_ms is not None and self.second_token_ms > now_ms:
                self.second_token_ms = None

    def note_admission(self, now_ms: float, reused_tokens: int) -> None:
        """Note that a pass starting at ``now_ms`` admitted it with that many prompt tokens reused (`spec 02, 13`)."""
        if self.first_admit_ms is None:
            self.first_admit_ms = now_ms
            self.first_reused_tokens = reused_tokens
        if reused_tokens > self.reused_tokens:
            self.reused_tokens = reused_tokens

    def note_decode_admission(self, now_ms: float, reused_tokens: int) -> None:
        """The same for a decode worker of a disaggregated run (`spec 07, 14`)."""
        milestones = self.handoff
        assert milestones is not None
        if milestones.decode_admit_ms is None:
            milestones.decode_admit_ms = now_ms
        if milestones.decode_reused_tokens is None or reused_tokens > milestones.decode_reused_tokens:
            milestones.decode_reused_tokens = reused_tokens
