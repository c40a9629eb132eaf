"""What scaling policies are made of: questions to the metrics, and what all policies have in common (spec 10, 8)."""

from __future__ import annotations

from contextlib import suppress
from datetime import datetime
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

from pydantic import AfterValidator, BeforeValidator, Field, GetJsonSchemaHandler, model_validator
from pydantic_core import CoreSchema

from dynamo_sim.limits import MAX_SCALE, MAX_WORKERS, MIN_PER_WORKER
from dynamo_sim.metric_catalogue import HISTOGRAMS, METRICS, query_faults
from dynamo_sim.scenario.base import CheckedSpec, Path, Problems, Spec

Positive = Annotated[float, Field(gt=0)]

PerWorker = Annotated[float, Field(ge=MIN_PER_WORKER)]
"""How much of a metric one worker is to have."""

Workers = Annotated[int, Field(ge=0, le=MAX_WORKERS)]
"""Workers of a fleet."""

FIRST_YEAR, LAST_YEAR = 1900, 2999
"""Calendars of time zones make no sense far from today."""

if TYPE_CHECKING:
    MetricName = str
    HistogramName = str
else:  # the names of the catalogue, for the checks and the schema
    MetricName = Literal[tuple(METRICS)]
    HistogramName = Literal[HISTOGRAMS]


def _checked_moment(text: str) -> str:
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise ValueError("must be a date and time such as 2025-01-06T08:00:00+00:00") from None
    if not FIRST_YEAR <= moment.year <= LAST_YEAR:
        raise ValueError(f"must be in the years {FIRST_YEAR} to {LAST_YEAR}")
    return text


Moment = Annotated[str, AfterValidator(_checked_moment)]
"""A moment of the wall clock."""


def _checked_expression(text: str) -> str:
    from dynamo_sim.cron import check_expression

    with suppress(ImportError):  # reported when the policy is built
        check_expression(text)
    return text


def _checked_zone(text: str) -> str:
    from dynamo_sim.cron import time_zone

    time_zone(text)
    return text


CronExpression = Annotated[str, AfterValidator(_checked_expression)]
"""A cron expression of five fields."""

TimeZone = Annotated[str, AfterValidator(_checked_zone)]
"""An IANA name of a time zone."""


class MetricSpec(Spec):
    """A question to the metrics: which one, over what time, put together how."""

    metric: MetricName
    """The metric; times are in ms."""

    over: str | None = None
    """Within a worker's window: last, avg (gauges); rate, increase (counters); mean, p95 ... (latencies)."""

    reduce: Literal["sum", "avg", "max", "min", "merge", "avg_over_time"] | None = None
    """Over the workers; merge pools the observations of latencies. null = merge for those, else avg."""

    window_s: Positive | None = None
    """Length of the window; null = that of the metrics section."""

    scale: Annotated[float, Field(ge=-MAX_SCALE, le=MAX_SCALE)] = 1.0
    """Every value is multiplied by it."""

    @model_validator(mode="after")
    def _check_query(self) -> MetricSpec:
        found: list[tuple[Path, str]] = [
            ((key,), fault) for key, fault in query_faults(METRICS[self.metric], self.over, self.reduce)
        ]
        if found:
            raise Problems(found)
        return self


AnyMetric = Annotated[
    MetricSpec, BeforeValidator(lambda value: {"metric": value} if isinstance(value, str) else value)
]
"""A metric, or just its name."""


class PolicySpec(CheckedSpec):
    """What all policies have in common.

    In YAML a policy says its ``kind``; in Python its class does.
    """

    kind_is_needed: ClassVar[bool] = True

    def model_post_init(self, context: Any) -> None:
        if self.kind_is_needed:
            self.model_fields_set.add("kind")  # so that it is written out

    @classmethod
    def __get_pydantic_json_schema__(
        cls, core_schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> dict[str, Any]:
        schema = super().__get_pydantic_json_schema__(core_schema, handler)
        described = handler.resolve_ref_schema(schema)
        if cls.kind_is_needed:
            needed = described.get("required", [])
            described["required"] = ["kind", *(key for key in needed if key != "kind")]
        return schema
