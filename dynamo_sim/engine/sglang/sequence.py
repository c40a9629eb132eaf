"""A request as one SGLang-style worker sees it."""

from __future__ import annotations

from collections.abc import Sequence

from dynamo_sim.kv.prefix import PrefixInterner
from dynamo_sim.kv.radix_cache import Node
from dynamo_sim.workload.request import FRESH_TOKEN, Request


class SglangSequence:
    """Prompt and generated tokens of a request, and the slots it holds (`spec 05, 1`).

    Attributes:
        request: the request it serves.
        prompt_tokens, max_output_tokens: its lengths; a planned output counts before the requested length.
        names: names of the pages other sequences may share, from the first on (see `Text`).
        watched: whether its output may be spelled by others, so that its pages have to be kept as they fill.
        generated: tokens generated so far. Stale while it runs in lockstep.
        have: its first ``have`` tokens own slots. Stale while it runs, when it has them all.
        kept_pages: so many pages at its beginning it has put into the tree. Stale while it runs in lockstep.
        duplicates: which of those the tree had already, as (first, behind the last); their slots are its own.
        announced_pages: so many pages at its beginning a router has been told of, as far as they have names.
        anchor: the node of the tree it locks.
        touched: stamp of its latest keep, 0 for none since it began.
        entry: number of its latest entry into the running batch; running requests are in this order.
        origin: lockstep pass in which ``generated`` was 0; meaningful while it runs.
        fresh: whether it has got no token since it entered the batch.
        emitted_ms: time of its latest token. Stale while it runs in lockstep.
    """

    __slots__ = (
        "anchor",
        "announced_pages",
        "duplicates",
        "emitted_ms",
        "entry",
        "fresh",
        "generated",
        "have",
        "kept_pages",
        "max_output_tokens",
        "names",
        "origin",
        "prompt_tokens",
        "request",
        "touched",
        "watched",
    )

    def __init__(self, request: Request, interner: PrefixInterner) -> None:
        planned = request.planned_output
        self.request = request
        self.prompt_tokens = request.input_tokens
        self.max_output_tokens = request.output_tokens if planned is None else len(planned)
        self.names: Sequence[int] = interner.names_of(request)
        self.watched = False
        if planned and request.prompt is not None:
            self.watched = planned[0] < FRESH_TOKEN
        self.generated = 0
        self.have = 0
        self.kept_pages = 0
        self.duplicates: list[tuple[int, int]] = []
        self.announced_pages = 0
        self.anchor: Node | None = None
        self.touched = 0
        self.entry = 0
        self.origin = 0
        self.fresh = True
        self.emitted_ms = 0.0

    @property
    def tokens(self) -> int:
        """Its length: prompt and generated tokens."""
        return self.prompt_tokens + self.generated

    @property
    def left(self) -> int:
        """Tokens it has still to generate."""
        return max(0, self.max_output_tokens - self.generated)
