"""The `workload` section of kind `generated`: arrivals by a rate over time, lengths by distributions."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Literal

from pydantic import Field, model_validator

from dynamo_sim.scenario.arrivals import MAX_TIME_S, Arrivals, RetimedArrivals
from dynamo_sim.scenario.base import Fraction, Path, PositiveCount, Problems, Spec
from dynamo_sim.scenario.token_lengths import TokenLengths

PositiveNumber = Annotated[float, Field(gt=0)]


class GeneratedWorkload(Spec):
    """Random or evenly spaced requests of random or equal lengths, reproducible by the scenario's seed.

    It ends with whatever comes first: `request_count`, `duration_s`, or the end of the arrivals themselves.
    """

    kind: Literal["generated"]
    """Kind of workload."""

    arrivals: Arrivals | None = None
    """When requests come; not used in a closed loop, which may leave it out."""

    input_tokens: TokenLengths | None = None
    """Prompt lengths; needed unless the arrivals are those of a trace."""

    output_tokens: TokenLengths | None = None
    """Answer lengths; needed unless the arrivals are those of a trace."""

    request_count: PositiveCount | None = None
    """Most requests; of a trace with conversations, most conversations."""

    duration_s: Annotated[float, Field(gt=0, le=MAX_TIME_S)] | None = None
    """Requests arrive before this time in seconds, as it is before any speed-up; not in a closed loop."""

    shared_prefix_ratio: Fraction = 0.0
    """Share of every prompt, from its beginning, that it has in common with the others of its group."""

    num_prefix_groups: PositiveCount = 1
    """Groups of prompts that begin alike; every request draws one."""

    arrival_speedup_ratio: PositiveNumber = 1.0
    """Divides arrival times and pauses; not used in a closed loop."""

    @model_validator(mode="after")
    def _check(self) -> GeneratedWorkload:
        found = list(self._trace_conflicts() if self.is_retimed else self._missing())
        if found:
            raise Problems(found)
        return self

    @property
    def is_retimed(self) -> bool:
        """Whether the requests are those of a trace."""
        return isinstance(self.arrivals, RetimedArrivals)

    def _missing(self) -> Iterator[tuple[Path, str]]:
        for key in ("input_tokens", "output_tokens"):
            if getattr(self, key) is None:
                yield (key,), "missing; only arrivals of shape 'retimed' have lengths of their own"
        bounded = self.request_count is not None or self.duration_s is not None
        if self.arrivals is not None and not bounded and not self.arrivals.ends:
            yield ("request_count",), "missing; give request_count or duration_s, or this load never ends"

    def _trace_conflicts(self) -> Iterator[tuple[Path, str]]:
        for key in ("input_tokens", "output_tokens", "shared_prefix_ratio", "num_prefix_groups"):
            if key in self.model_fields_set:
                yield (key,), "is not possible with arrivals of shape 'retimed': the trace says it"

    def loop_conflicts(self, closed: bool) -> Iterator[tuple[Path, str]]:
        """What is missing for an open or a closed loop."""
        if closed and self.request_count is None and not self.is_retimed:
            yield ("request_count",), "missing; a closed loop needs it, whatever the arrivals say"
        if not closed and self.arrivals is None:
            yield ("arrivals",), "missing; only a closed loop (limits.concurrency) goes without"
