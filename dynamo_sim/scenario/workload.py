"""The `workload` section: which requests arrive, and when (spec 08)."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path as FilePath
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, ValidationInfo, model_validator

from dynamo_sim.limits import MAX_REQUESTS
from dynamo_sim.scenario.base import CheckedSpec, Count, Fraction, NonNegative, Path, Problems, Spec
from dynamo_sim.scenario.files import existing_path
from dynamo_sim.scenario.generated_workload import GeneratedWorkload
from dynamo_sim.scenario.token_lengths import Tokens
from dynamo_sim.scenario.trace_formats import FormatName
from dynamo_sim.traces.format import DEFAULT_BLOCK_TOKENS, TraceFormat
from dynamo_sim.traces.formats import FORMATS, format_named

Speedup = Annotated[float, Field(gt=0)]
RequestCount = Annotated[int, Field(ge=1, le=MAX_REQUESTS)]


def _checked_paths(value: Any, info: ValidationInfo) -> Any:
    """One path, or a tuple of them."""
    if value is None:
        return None
    if isinstance(value, str):
        return existing_path(value, info.context)
    if isinstance(value, list | tuple) and value and all(isinstance(item, str) for item in value):
        return tuple(existing_path(item, info.context) for item in value)
    raise ValueError("must be a path, or a list of paths")


class SyntheticWorkload(CheckedSpec):
    """Requests of one length at constant intervals (spec 08, 10)."""

    kind: Literal["synthetic"]
    """Kind of workload."""

    input_tokens: Tokens
    """Prompt length of every request."""

    output_tokens: Tokens
    """Output length of every request."""

    request_count: RequestCount
    """Number of requests; with several turns the number of conversations."""

    arrival_interval_ms: NonNegative = 1.0
    """Time from one arrival to the next; 0 = all at once. Not used in a closed loop."""

    turns_per_session: RequestCount = 1
    """Turns of each conversation."""

    shared_prefix_ratio: Fraction = 0.0
    """Share of every prompt that is the same in all requests; needs num_prefix_groups >= 1."""

    num_prefix_groups: Count = 0
    """Switches shared prefixes on; all values from 1 mean the same."""

    inter_turn_delay_ms: NonNegative = 0.0
    """Pause between the end of a turn and the arrival of the next."""

    arrival_speedup_ratio: Speedup = 1.0
    """Divides arrival times and pauses; not used in a closed loop."""

    def _conflicts(self) -> Iterator[tuple[Path, str]]:
        total = self.request_count * self.turns_per_session
        if total > MAX_REQUESTS:
            yield (
                ("turns_per_session",),
                f"found {self.turns_per_session}; with request_count {self.request_count} these are {total} requests, "
                f"and at most {MAX_REQUESTS} are possible",
            )

    @property
    def is_plain(self) -> bool:
        """Whether all requests are single and unlike each other; values below their bounds count as that."""
        return not (
            self.turns_per_session > 1
            or self.shared_prefix_ratio > 0.0
            or self.num_prefix_groups > 0
            or self.inter_turn_delay_ms > 0.0
        )


class TraceColumns(Spec):
    """Names of the columns of a table; those with usual names are found without."""

    arrival: str | None = None
    """When a request arrives, in `time_unit`."""

    input_tokens: str | None = None
    """Prompt length."""

    output_tokens: str | None = None
    """Output length."""

    session: str | None = None
    """The conversation a request belongs to, for routing by session."""

    priority: str | None = None
    """Priority, for the queue of the cache-aware router."""

    prefix: str | None = None
    """Which requests begin with the same tokens: those of one text; needs prefix_tokens."""

    prefix_tokens: str | None = None
    """How many tokens those requests share, rounded down to whole trace_block_size."""

    def named(self) -> dict[str, str]:
        """The columns that were given."""
        return {part: name for part, name in self if name is not None}


class TraceWorkload(Spec):
    """Requests of a recorded trace (spec 08, 3 to 8)."""

    kind: Literal["trace"]
    """Kind of workload."""

    path: Annotated[
        Any,
        BeforeValidator(_checked_paths),
        Field(json_schema_extra={"type": ["string", "array", "null"], "items": {"type": "string"}}),
    ] = None
    """Trace file, plain, .gz or .zst, relative to the scenario's folder; a list where the format allows several."""

    records: tuple[dict[str, Any], ...] | None = Field(default=None, strict=False, min_length=1)
    """The lines of the trace themselves, instead of a file."""

    format: FormatName = "mooncake"
    """Format of the trace."""

    trace_block_size: Tokens | None = DEFAULT_BLOCK_TOKENS
    """Prompt tokens per hash id; for a format whose records say it null, or what they say."""

    columns: TraceColumns | None = None
    """Names of the columns of a table, where they are not found by themselves; only for format table."""

    time_unit: Literal["s", "ms", "us", "ns", "datetime"] | None = None
    """Unit of the arrivals of a table; null = as their values or the name of their column say."""

    shared_prefix_ratio: Fraction = 0.0
    """Share of every first prompt that is the same in all sessions; only for formats without ids."""

    num_prefix_groups: Count = 0
    """Switches shared prefixes on; only for formats without ids."""

    arrival_speedup_ratio: Speedup = 1.0
    """Divides arrival times and pauses; not used in a closed loop."""

    skip_bad_lines: bool = False
    """Leave out lines that cannot be read, instead of refusing the trace."""

    @model_validator(mode="after")
    def _check_and_resolve(self) -> TraceWorkload:
        found = list(self._conflicts())
        if found:
            raise Problems(found)
        if "trace_block_size" not in self.model_fields_set:
            self.__dict__["trace_block_size"] = (
                self.trace_format.block_tokens
            )  # past the freeze: the format says it
        return self

    def _conflicts(self) -> Iterator[tuple[Path, str]]:
        if self.path is None and self.records is None:
            yield ("path",), "missing; a trace needs a path, or its records"
        if self.path is not None and self.records is not None:
            yield ("records",), "cannot be given together with path"
        if isinstance(self.path, tuple) and not self.trace_format.several_files:
            several = ", ".join(each.name for each in FORMATS if each.several_files)
            yield ("path",), f"several files are possible only for format {several}, not for {self.format}"
        for key in ("columns", "time_unit"):
            if getattr(self, key) is not None and not self.trace_format.takes_columns:
                named = " or ".join(each.name for each in FORMATS if each.takes_columns)
                yield (key,), f"is possible only for format {named}, not for {self.format}"
        if self.trace_block_size is None and self.trace_format.block_tokens is not None:
            yield ("trace_block_size",), f"found null; must be a number of tokens for format {self.format}"

    @property
    def trace_format(self) -> TraceFormat:
        """What is known of the format."""
        return format_named(self.format)

    @property
    def paths(self) -> tuple[FilePath, ...]:
        """The trace files in reading order; empty for a workload given by its records."""
        if self.path is None:
            return ()
        names = (self.path,) if isinstance(self.path, str) else self.path
        return tuple(FilePath(name) for name in names)


Workload = Annotated[SyntheticWorkload | TraceWorkload | GeneratedWorkload, Field(discriminator="kind")]
"""Add a kind of workload by adding its model here."""
