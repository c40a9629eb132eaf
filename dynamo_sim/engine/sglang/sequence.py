"""A request as one SGLang-style worker sees it."""

from __future__ import annotations

from collections.abc import Sequence

from dynamo_sim.kv.prefix import PrefixInterner
from dynamo_sim.kv.radix_cache import Node
from dynamo_sim.workload.request import MIN_UNIQUE_TOKEN, Request


class SglangSequence:
    """Prompt and generated tokens of a request, and the slots it holds (`spec 05, 1`).

    Attributes:
        request: the request it serves.
        prompt_tokens, max_output_tokens: its lengths; a planned output counts before the requested length.
        names: names of the pages other sequences may share, from the first on (see `Text`).
        page_by_page: its output may be part of other prompts, so its pages have to be stored as they fill.
        generated: tokens generated so far. Stale while it runs in lockstep.
        allocated_tokens: its first tokens, so many of them, own slots. Stale while it runs, when it has them all.
        stored_pages: so many pages at its beginning it has put into the tree. Stale while it runs in lockstep.
        duplicates: which of those the tree had already, as (first, behind the last); their slots are private.
        published_pages: so many pages at its beginning were published as stored, as far as they have names.
        last_node: the node of the tree it locks.
        last_use: stamp of its latest store, 0 for none since it began.
        entry: number of its latest entry into the running batch; running requests are in this order.
        origin: group pass in which ``generated`` was 0; meaningful while it runs.
        is_new: it has got no token since it entered the batch.
        is_source: its slots are kept for another worker when it has its last token (`spec 07, 5.1`).
        handed_over: its prompt was computed on another worker.
        emitted_ms: time of its latest token. Stale while it runs in lockstep.
    """

    __slots__ = (
        "allocated_tokens",
        "duplicates",
        "emitted_ms",
        "entry",
        "generated",
        "handed_over",
        "is_new",
        "is_source",
        "last_node",
        "last_use",
        "max_output_tokens",
        "names",
        "origin",
        "page_by_page",
        "prompt_tokens",
        "published_pages",
        "request",
        "stored_pages",
    )

    def __init__(self, request: Request, interner: PrefixInterner) -> None:
        planned = request.planned_output
        self.request = request
        self.prompt_tokens = request.input_tokens
        self.max_output_tokens = request.output_tokens if planned is None else len(planned)
        self.names: Sequence[int] = interner.names_of(request)
        self.page_by_page = False
        if planned and request.prompt is not None:
            self.page_by_page = planned[0] < MIN_UNIQUE_TOKEN
        self.generated = 0
        self.allocated_tokens = 0
        self.stored_pages = 0
        self.duplicates: list[tuple[int, int]] | None = None
        self.published_pages = 0
        self.last_node: Node | None = None
        self.last_use = 0
        self.entry = 0
        self.origin = 0
        self.is_new = True
        self.is_source = False
        self.handed_over = False
        self.emitted_ms = 0.0

    @property
    def tokens(self) -> int:
        """Its length: prompt and generated tokens."""
        return self.prompt_tokens + self.generated

    @property
    def left(self) -> int:
        """Tokens it has still to generate."""
        return max(0, self.max_output_tokens - self.generated)
