"""The queue of the cache-aware router: classes, their order, and whose turn it is (`spec 06, 6`)."""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from typing import NamedTuple

from dynamo_sim.errors import SimulationError
from dynamo_sim.routing.kv.overlap_index import Depths
from dynamo_sim.scenario.routing.policy_classes import DEFAULT_BUSY_FRACTION, PolicyClass, PolicyProfile
from dynamo_sim.workload.request import Request

Key = tuple[int, float, int]
"""Smaller goes first: strict priority and score, both negated, and the number of the arrival."""


class Arrival(NamedTuple):
    """A request as the router saw it when it arrived (`spec 06, 4`).

    Attributes:
        blocks: full blocks of its prompt that others may share.
        overlap: leading blocks that each worker held then.
        cached_tokens: most prompt tokens that an eligible worker held then.
        arrived_ms: when it arrived at the router.
    """

    request: Request
    blocks: Sequence[int]
    overlap: Depths
    cached_tokens: int
    arrived_ms: float

    @property
    def work_tokens(self) -> int:
        """Prompt tokens that are cached nowhere, at least 1 (`spec 06, 6.1`)."""
        return max(self.request.input_tokens - self.cached_tokens, 1)


class QueueClass:
    """Requests that wait together, in their order.

    Args:
        name: what messages call it.
        policy: order of the class: fcfs, lcfs or wspt.
        quantum: tokens that its turn is worth.
        busy_tokens: a worker with more booked tokens is busy.
        busy_fraction: the same in parts of the workers' token budget.
        budget_tokens: that budget.
        limits: most waiting requests, prompt tokens and cached tokens for each eligible worker; None for no limit.

    Attributes:
        deficit: tokens that it has saved for its turn.
    """

    def __init__(
        self,
        name: str,
        policy: str,
        quantum: int = 1,
        *,
        budget_tokens: int,
        busy_tokens: int | None = None,
        busy_fraction: float | None = None,
        limits: tuple[int | None, int | None, int | None] = (None, None, None),
    ) -> None:
        self.name = name
        self.policy = policy
        self.quantum = quantum
        self.deficit = 0
        self._busy_tokens = busy_tokens
        self._busy_above = None if busy_fraction is None else busy_fraction * float(budget_tokens)
        self._limits = dict(zip(_LIMITED, limits, strict=True))
        self._waiting: list[tuple[Key, Arrival]] = []
        self._sums = dict.fromkeys(_LIMITED, 0)

    @classmethod
    def of(cls, spec: PolicyClass, budget_tokens: int) -> QueueClass:
        """The class that a policy file describes."""
        fraction = spec.prefill_busy_threshold_frac
        if fraction is None and spec.prefill_busy_threshold is None:
            fraction = DEFAULT_BUSY_FRACTION
        return cls(
            spec.name,
            spec.queue_policy,
            spec.quantum,
            budget_tokens=budget_tokens,
            busy_tokens=spec.prefill_busy_threshold,
            busy_fraction=fraction,
            limits=(
                spec.request_queue_limit_per_worker,
                spec.raw_isl_token_queue_limit_per_worker,
                spec.cached_token_queue_limit_per_worker,
            ),
        )

    def __len__(self) -> int:
        return len(self._waiting)

    @property
    def head_tokens(self) -> int:
        """Work of the request that goes next; there must be one."""
        return self._waiting[0][1].work_tokens

    def is_busy(self, booked_tokens: int) -> bool:
        """Whether a worker with so many booked tokens is busy for this class (`spec 06, 4`)."""
        if self._busy_tokens is not None and booked_tokens > self._busy_tokens:
            return True
        return self._busy_above is not None and float(booked_tokens) > self._busy_above

    def push(self, arrival: Arrival, number: int, workers: int) -> None:
        """Let a request wait; ``workers`` are eligible.

        Raises:
            SimulationError: a limit of the class is reached.
        """
        for kind, limit in self._limits.items():
            if limit is not None and self._sums[kind] >= limit * workers:
                raise SimulationError(
                    f"routing.router_policy_config: class {self.name!r} may hold {limit * workers:,} waiting {kind} "
                    f"with {workers} workers, and holds {self._sums[kind]:,}; raise its {_LIMITED[kind]}"
                )
        heapq.heappush(self._waiting, (self._key(arrival, number), arrival))
        self._count(arrival, 1)

    def pop(self) -> Arrival:
        """Take out the request that goes next."""
        arrival = heapq.heappop(self._waiting)[1]
        self._count(arrival, -1)
        return arrival

    def _count(self, arrival: Arrival, sign: int) -> None:
        for kind, count in zip(
            _LIMITED, (1, arrival.request.input_tokens, arrival.cached_tokens), strict=True
        ):
            self._sums[kind] += sign * count

    def _key(self, arrival: Arrival, number: int) -> Key:
        """Computed once (`spec 06, 6.1`): a point of priority is worth a second of waiting."""
        request = arrival.request
        priority, seconds = float(max(request.priority, 0)), max(arrival.arrived_ms, 0.0) / 1000.0
        if self.policy == "fcfs":
            score = priority - seconds
        elif self.policy == "lcfs":
            score = priority + seconds
        else:
            score = (1.0 + priority) / float(arrival.work_tokens)
        return -request.strict_priority, -score, number


_LIMITED = {
    "requests": "request_queue_limit_per_worker",
    "prompt tokens": "raw_isl_token_queue_limit_per_worker",
    "cached tokens": "cached_token_queue_limit_per_worker",
}
"""What the limits of a class count, and their keys in the policy file."""


class RouterQueue:
    """All classes, and the deficit round-robin over them (`spec 06, 6.3`).

    Args:
        classes: the classes, in the order of the policy file.
        profile: how requests are assigned to classes; None where there is only one.
    """

    def __init__(self, classes: Sequence[QueueClass], profile: PolicyProfile | None = None) -> None:
        self.classes = classes
        self._cursor = 0
        self._count = 0
        self._number = 0
        self._ended_wait_ms = 0.0
        self._since_ms = 0.0  # summed over the waiting requests
        self._profile = profile
        if profile is not None:
            specs = profile.policy_classes
            self._explicit = {s.name: c for s, c in zip(specs, classes, strict=True) if not s.policy_family}
            self._by_pair = {
                (s.policy_family, s.cache_bucket): c for s, c in zip(specs, classes, strict=True)
            }
            self._families = {s.policy_family for s in specs}

    def __len__(self) -> int:
        return self._count

    def waited_ms(self, now_ms: float) -> float:
        """Time in the queue so far, in ms, summed over all requests that waited in it."""
        return self._ended_wait_ms + self._count * now_ms - self._since_ms

    def class_of(self, arrival: Arrival) -> QueueClass:
        """The class of a request."""
        profile = self._profile
        if profile is None:
            return self.classes[0]
        asked = arrival.request.policy_class
        if asked is not None and asked in self._explicit:
            return self._explicit[asked]
        family = asked if asked in self._families and asked is not None else profile.default_policy_family
        uncached = arrival.request.input_tokens - arrival.cached_tokens
        bucket = next(b.bucket for b in reversed(profile.uncached_isl_buckets) if b.min_tokens <= uncached)
        return self._by_pair[family, bucket]

    def push(self, queue_class: QueueClass, arrival: Arrival, workers: int) -> None:
        """Let a request wait in its class; ``workers`` are eligible.

        Raises:
            SimulationError: a limit of the class is reached.
        """
        queue_class.push(arrival, self._number, workers)
        self._number += 1
        self._count += 1
        self._since_ms += arrival.arrived_ms

    def pop(self, booked_tokens: int, now_ms: float) -> Arrival | None:
        """Take out the request whose turn it is; None where every class is empty or finds all workers busy.

        Args:
            booked_tokens: booked tokens of the least booked eligible worker.
        """
        queue_class = self.classes[0] if len(self.classes) == 1 else self._class_in_turn(booked_tokens)
        if queue_class is None or not queue_class or queue_class.is_busy(booked_tokens):
            return None
        arrival = queue_class.pop()
        self._count -= 1
        self._since_ms -= arrival.arrived_ms
        self._ended_wait_ms += now_ms - arrival.arrived_ms
        if len(self.classes) > 1:
            self._end_turn(queue_class, arrival.work_tokens)
        return arrival

    def _class_in_turn(self, booked_tokens: int) -> QueueClass | None:
        count = len(self.classes)
        in_turn = [self.classes[(self._cursor + offset) % count] for offset in range(count)]
        candidates = []
        for each in in_turn:
            if not each:
                each.deficit = 0
            elif not each.is_busy(booked_tokens):
                if each.head_tokens <= each.deficit:
                    return each
                each.deficit += each.quantum
                if each.head_tokens <= each.deficit:
                    return each
                candidates.append(each)
        if not candidates:
            return None
        rounds = min(-(-(each.head_tokens - each.deficit) // each.quantum) for each in candidates)
        for each in candidates:
            each.deficit += rounds * each.quantum
        return next(each for each in candidates if each.head_tokens <= each.deficit)

    def _end_turn(self, queue_class: QueueClass, work_tokens: int) -> None:
        """A class pays for the request that it sent; it keeps its turn while it can pay for the next one."""
        place = self.classes.index(queue_class)
        queue_class.deficit = max(queue_class.deficit - work_tokens, 0)
        if not queue_class:
            queue_class.deficit = 0
            place += 1
        elif queue_class.head_tokens > queue_class.deficit:
            place += 1
        self._cursor = place % len(self.classes)
