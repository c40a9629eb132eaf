"""What the rest of the project knows of a trace format; the table of all of them is `traces/formats.py`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from dynamo_sim.traces.conversations import Conversations, Workflow
from dynamo_sim.traces.lines import TraceLines

DEFAULT_BLOCK_TOKENS = 512


@dataclass(frozen=True, slots=True)
class ReadOptions:
    """What a scenario says about reading a trace.

    Attributes:
        block_tokens: tokens an id; None where the records say it and the scenario does not.
        shared_prefix_ratio, num_prefix_groups: for formats with `takes_shared_prefix`.
        columns, time_unit: for formats with `takes_columns`: names of columns, and the unit of the arrivals.
    """

    block_tokens: int | None
    shared_prefix_ratio: float = 0.0
    num_prefix_groups: int = 0
    columns: Mapping[str, str] | None = None
    time_unit: str | None = None

    @property
    def given_block_tokens(self) -> int:
        """Tokens an id, for a format whose records do not say it."""
        assert self.block_tokens is not None
        return self.block_tokens


Reader = Callable[[Sequence[TraceLines], ReadOptions], Conversations | Workflow]
"""Reads one file, or several where the format allows that.

Raises ScenarioError for impossible options, and TraceError for a trace that cannot be used.
"""

Sample = Sequence[dict[str, Any]]
"""The objects among the first rows of a trace."""


@dataclass(frozen=True, slots=True)
class TraceFormat:
    """One format of traces.

    Attributes:
        name: as scenarios and the command line have it.
        read: reads traces of it.
        recognise: whether the first rows of a trace look like it.
        line: what a line of it is, in the words of the documents.
        arrivals: where the times of its requests come from, in the words of the documents.
        aliases: other spellings of the name.
        block_tokens: prompt tokens an id where the scenario does not say it; None where the records do.
        has_arrivals: whether it has times; without them only a closed loop can run it.
        several_files: whether one trace may lie in several files.
        is_workflow: whether its requests wait for requests of other sessions; None where the records decide.
        workflow_subject: what to call such requests where they cannot be used.
        is_delta: whether a row is only what its turn adds to the conversation.
        takes_shared_prefix: whether the scenario decides how much its prompts share.
        takes_columns: whether the scenario says in which columns things stand, and in which unit its times are.
        with_script: whether a run with a scaling script takes it. The reference reads every trace as
            ``mooncake`` there (`spec 08, 2`).
    """

    name: str
    read: Reader
    recognise: Callable[[Sample], bool]
    line: str
    arrivals: str
    aliases: tuple[str, ...] = ()
    block_tokens: int | None = DEFAULT_BLOCK_TOKENS
    has_arrivals: bool = True
    several_files: bool = False
    is_workflow: bool | None = False
    workflow_subject: str = ""
    is_delta: bool = False
    takes_shared_prefix: bool = False
    takes_columns: bool = False
    with_script: bool = False

    @property
    def needs_concurrency(self) -> bool:
        """Whether only a closed loop can run it, unless its requests get other times."""
        return not self.has_arrivals

    @property
    def with_two_fleets(self) -> bool:
        """Whether a run with a prefill and a decode fleet takes it, unless its records say otherwise (`spec 08, 3`)."""
        return not self.is_delta and self.is_workflow is not True

    @property
    def closed_loop(self) -> str:
        """Whether a closed loop can run it, in the words of the documents."""
        if self.needs_concurrency:
            return "required"
        return {False: "yes", True: "no", None: "without agents"}[self.is_workflow]
