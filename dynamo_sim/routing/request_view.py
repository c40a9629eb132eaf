"""What a user's router can see of a request."""

from __future__ import annotations

from dynamo_sim.kv.prefix import PrefixInterner
from dynamo_sim.workload.request import Request


class RequestView:
    """A request that has arrived and has no worker yet; nothing of it can be changed.

    Args:
        request: the request.
        interner: names the blocks of prompts.
    """

    __slots__ = ("_interner", "_request")

    def __init__(self, request: Request, interner: PrefixInterner) -> None:
        self._request = request
        self._interner = interner

    def __repr__(self) -> str:
        return f"<{self._request.name}: {self.input_tokens} tokens in, {self.output_tokens} out>"

    @property
    def index(self) -> int:
        """Its position in the workload, from 0: unique in a run."""
        return self._request.index

    @property
    def arrival_ms(self) -> float:
        """When it arrived, in ms."""
        return self._request.arrival_ms

    @property
    def input_tokens(self) -> int:
        """Length of its prompt."""
        return self._request.input_tokens

    @property
    def output_tokens(self) -> int:
        """Length of its answer, which a real router cannot know."""
        return self._request.output_tokens

    @property
    def session_id(self) -> str | None:
        """Name of its conversation, or None outside of conversations."""
        return self._request.session_id

    @property
    def turn_index(self) -> int | None:
        """Turn within the conversation, from 0, or None outside of conversations."""
        return self._request.turn_index

    @property
    def priority(self) -> int:
        """Its priority, where the trace gives one; else 0."""
        return self._request.priority

    @property
    def block_tokens(self) -> int:
        """Tokens of a block."""
        return self._interner.block_size

    @property
    def prefix_blocks(self) -> tuple[int, ...]:
        """Names of the whole blocks of its prompt, first block first.

        Two prompts have the same name at the same place if and only if they are equal up to the end of that block.
        Empty for a prompt unlike every other one.
        """
        request = self._request
        request.block_names = names = self._interner.names_of(request)
        return tuple(names[: request.input_tokens // self._interner.block_size])
