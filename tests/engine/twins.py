"""What shows of a scheduler on a load: the same of the real one and of its plain twin."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from dynamo_sim.engine.gaps import merged_gaps
from dynamo_sim.engine.step import FIRST_TOKEN, Step
from dynamo_sim.errors import SimulationError
from dynamo_sim.kv.kv_events import KvEvent
from dynamo_sim.kv.prefix import PrefixInterner, merge_runs
from dynamo_sim.workload.request import Request

RECORDED = (
    "first_admit_ms",
    "first_reused_tokens",
    "reused_tokens",
    "first_token_ms",
    "second_token_ms",
    "last_token_ms",
    "emitted_tokens",
)

STATS = (
    "num_prefill_requests",
    "sum_prefill_tokens",
    "var_prefill_length",
    "sum_prefill_kv_tokens",
    "num_decode_requests",
    "var_decode_kv_tokens",
    "num_queued_prefill",
    "sum_queued_prefill_tokens",
    "var_queued_prefill_length",
    "num_queued_decode",
    "sum_queued_decode_kv_tokens",
    "var_queued_decode_kv_tokens",
)


@dataclass
class PlainStats:
    """Forward-pass metrics as the specification writes them (`spec 02, 11`)."""

    num_prefill_requests: int = 0
    sum_prefill_tokens: int = 0
    var_prefill_length: float = 0.0
    sum_prefill_kv_tokens: int = 0
    num_decode_requests: int = 0
    sum_decode_kv_tokens: int = 0
    var_decode_kv_tokens: float = 0.0
    num_queued_prefill: int = 0
    sum_queued_prefill_tokens: int = 0
    var_queued_prefill_length: float = 0.0
    num_queued_decode: int = 0
    sum_queued_decode_kv_tokens: int = 0
    var_queued_decode_kv_tokens: float = 0.0
    used_kv_tokens: tuple[int, ...] = (0,)
    decode_kv_growth: int = 0


FAILED = Step(0.0, [0.0], False, 0, 0)
"""In place of a step that the scheduler refuses, because requests could never end."""


def random_requests(draw: random.Random) -> list[Request]:
    """Requests in order of arrival that begin alike, and may speak what others ask."""
    documents = [[draw.choice([1, 2, 3]) for _ in range(100)] for _ in range(2)]
    longest = draw.choice([20, 60])
    planned = draw.random() < 0.4
    requests = []
    now = 0.0
    for index in range(draw.randint(4, 16)):
        now += draw.choice([0.0, 0.0, draw.expovariate(0.1), draw.expovariate(0.01)])
        document, shared = draw.choice(documents), draw.randint(1, longest)
        output = draw.randint(0 if draw.random() < 0.03 else 1, draw.choice([3, 15, 40]))
        private = draw.choice([0, 0, draw.randint(1, 12)])
        plan = None
        if planned and not private and draw.random() < 0.7:
            plan = tuple(document[shared : shared + output])
        prompt = merge_runs([*((token, 1) for token in document[:shared]), (100 + index, private)])
        content = None if draw.random() < 0.1 else prompt
        length = shared + private
        requests.append(Request(index, round(now, 3), length, output, content, planned_output=plan))
    return requests


def serve(
    scheduler: Any,
    requests: list[Request],
    max_passes: int,
    during: Callable[[Step], None] = lambda step: None,
    foresees: bool = False,
) -> Iterator[Step]:
    """Steps of a worker, each when it has ended, until all is done, or nothing goes on (`FAILED`), or 3 000 passes.

    Args:
        during: is called with each step just before it ends.
        foresees: whether the scheduler knows of the next arrival before it plans; else stretches are cut.
    """
    coming, now, passes = list(requests), 0.0, 0
    while (coming or scheduler.request_count) and passes <= 3000:
        while coming and coming[0].arrival_ms <= now:
            scheduler.receive(coming.pop(0))
        if not scheduler.request_count:
            now = coming[0].arrival_ms
            continue
        try:
            if foresees:
                step = scheduler.start(now, max_passes, coming[0].arrival_ms if coming else now + 2000.0)
            else:
                step = scheduler.start(now, max_passes)
        except SimulationError:
            yield FAILED
            return
        if coming:
            step.cut(coming[0].arrival_ms)
        during(step)
        scheduler.finish(step)
        yield step
        if not step.progress:
            if not coming:
                return
            now = coming[0].arrival_ms
            continue
        now = step.end_ms
        passes += len(step.ends_ms)


def story(
    scheduler: Any,
    requests: list[Request],
    max_passes: int,
    during: Callable[[Step], None] = lambda step: None,
    foresees: bool = False,
) -> dict[str, Any]:
    """Everything there is to see of a load on one worker: its passes, its requests, the gaps between tokens."""
    scheduler.records_stats = True
    passes: list[tuple[Any, ...]] = []
    failed = False
    for step in serve(scheduler, requests, max_passes, during, foresees):
        if step is FAILED:
            failed = True
            break
        if hasattr(scheduler, "check"):
            scheduler.check()
        for index, end in enumerate(step.ends_ms):
            stats, place = step.stats_of(index)
            passes.append(
                (
                    end,
                    stats.used_kv_tokens[place],
                    stats.sum_decode_kv_tokens + place * stats.decode_kv_growth,
                    (step.tokens, step.forwards),
                    {name: round(getattr(stats, name), 6) for name in STATS},
                    [(request.index, kind) for request, kind in step.signals if kind is not FIRST_TOKEN]
                    if index == len(step.ends_ms) - 1
                    else [],
                    [
                        request.index
                        for request, kind in step.signals
                        if kind is FIRST_TOKEN and request.first_token_ms == end
                    ],
                )
            )
    scheduler.close()
    complete = not failed and not scheduler.request_count
    seen = [[getattr(r, name) for name in RECORDED] for r in requests]
    gaps = [values.tolist() for values in merged_gaps([scheduler.gaps])]
    return {
        "passes": passes[:3000],
        "requests": seen if complete else None,
        "gaps": gaps if complete else None,
    }


def random_pulls(scheduler: Any, seed: int) -> Callable[[Step], None]:
    """Something that takes KV events now and then during the steps of a worker."""
    scheduler.publish_kv_events()
    draw = random.Random(seed)

    def pull(step: Step) -> None:
        for now_ms in sorted(draw.sample(step.ends_ms, draw.randint(0, min(3, len(step.ends_ms))))):
            scheduler.take_kv_events(now_ms, starts_included=draw.random() < 0.5 and now_ms < step.end_ms)

    return pull


class BlockNames:
    """The names of blocks, by the tokens up to their ends; they are the same in every new `PrefixInterner`."""

    def __init__(self, requests: list[Request], block_size: int) -> None:
        self.of: dict[tuple[Any, ...] | None, int] = {}
        interner = PrefixInterner(block_size)
        for each in requests:  # in order of arrival, as a worker meets them
            if each.prompt is None:
                continue
            tokens = [value for value, length in each.prompt for _ in range(length)]
            tokens += each.planned_output or ()
            for index, name in enumerate(interner.names_of(each)):
                self.of[tuple(tokens[: (index + 1) * block_size])] = name

    def known(self, kind: Any, parent: Any, blocks: list[tuple[Any, ...]]) -> KvEvent:
        """An event of a plain twin, without the blocks that nobody can ask for."""
        return KvEvent(kind, self.of.get(parent), tuple(self.of[b] for b in blocks if b in self.of))


def block_by_block(events: list[tuple[float, KvEvent]]) -> list[tuple[float, str, int | None, int]]:
    """Events with their times as one entry a block: how they are grouped carries no meaning."""
    entries = []
    for at_ms, (kind, parent, names) in events:
        for name in names:
            entries.append((at_ms, kind, parent, name))
            parent = name if kind == "stored" else None
    return entries
