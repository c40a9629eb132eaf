"""The `arrivals` part of a generated workload: when requests come."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, ValidationInfo

from dynamo_sim.scenario.base import CheckedSpec, Fraction, Path, Spec
from dynamo_sim.scenario.files import existing_path
from dynamo_sim.scenario.token_lengths import Tokens
from dynamo_sim.scenario.trace_formats import RetimedFormatName

SECONDS_PER_DAY = 86400.0

MAX_RPS = 1e9
MAX_TIME_S = 1e12

Rate = Annotated[float, Field(ge=0, le=MAX_RPS)]
PositiveRate = Annotated[float, Field(gt=0, le=MAX_RPS)]
Seconds = Annotated[float, Field(ge=0, le=MAX_TIME_S)]
Burstiness = Annotated[float, Field(ge=0.001)]


class ArrivalSpec(CheckedSpec):
    """What all shapes have in common."""

    @property
    def ends(self) -> bool:
        """Whether the rate falls to 0 for good, so that the load ends by itself."""
        return False


class ConstantArrivals(ArrivalSpec):
    """Requests at equal distances: the first at 0, then one every 1 / rate seconds."""

    shape: Literal["constant"]
    """How the rate behaves over time."""

    rate_rps: PositiveRate
    """Requests a second."""


class PoissonArrivals(ArrivalSpec):
    """Independent arrivals of a constant rate: exponential gaps, the first gap before the first request."""

    shape: Literal["poisson"]
    """How the rate behaves over time."""

    rate_rps: PositiveRate
    """Mean requests a second."""


class GammaArrivals(ArrivalSpec):
    """Bursts at a constant mean rate: gamma-distributed gaps, as `--burstiness` of vLLM's benchmark has them.

    The gap has shape `burstiness` and scale 1 / (rate x burstiness), hence mean 1 / rate; its coefficient of
    variation is 1 / sqrt(burstiness).
    """

    shape: Literal["gamma"]
    """How the rate behaves over time."""

    rate_rps: PositiveRate
    """Mean requests a second."""

    burstiness: Burstiness
    """1 = Poisson; smaller = burstier (0.25: gaps vary twice as much); larger = more even."""


class VaryingArrivals(ArrivalSpec):
    """What the shapes with a rate that changes over time have in common."""

    random: bool = True
    """Random arrivals at this rate; false = evenly spaced, as near to the rate as whole requests can be."""

    burstiness: Burstiness = 1.0
    """1 = Poisson with this rate; smaller = burstier, as in shape gamma; not with random: false."""

    def _conflicts(self) -> Iterator[tuple[Path, str]]:
        if not self.random and self.burstiness != 1.0:
            yield ("burstiness",), "is not possible with random: false"


class RateStep(Spec):
    """A constant rate from a time on."""

    from_s: Seconds
    """When it begins, in seconds of virtual time."""

    rate_rps: Rate
    """Mean requests a second until the next step; 0 = a pause."""


class PiecewiseArrivals(VaryingArrivals):
    """A rate that jumps at given times; nothing arrives before the first step."""

    shape: Literal["piecewise"]
    """How the rate behaves over time."""

    steps: tuple[RateStep, ...] = Field(strict=False, json_schema_extra={"minItems": 1})
    """The rates in order of time; the last one lasts, and a last one of 0 ends the load."""

    def _conflicts(self) -> Iterator[tuple[Path, str]]:
        yield from super()._conflicts()
        for position in range(1, len(self.steps)):
            before, after = self.steps[position - 1].from_s, self.steps[position].from_s
            if after <= before:
                yield (
                    ("steps", position, "from_s"),
                    f"found {after:g}; must be after the step before, at {before:g}",
                )
        if not any(step.rate_rps for step in self.steps):
            yield ("steps",), "must have at least one step with a rate_rps above 0"

    @property
    def ends(self) -> bool:
        """Whether the last rate is 0."""
        return bool(self.steps) and self.steps[-1].rate_rps == 0


class RampArrivals(VaryingArrivals):
    """A rate that changes linearly from 0 s on and then stays."""

    shape: Literal["ramp"]
    """How the rate behaves over time."""

    from_rps: Rate
    """Mean requests a second at the beginning."""

    to_rps: Rate
    """Mean requests a second at the end of the ramp and from then on; 0 ends the load."""

    duration_s: Annotated[float, Field(gt=0, le=MAX_TIME_S)]
    """Length of the ramp in seconds."""

    def _conflicts(self) -> Iterator[tuple[Path, str]]:
        yield from super()._conflicts()
        if not self.from_rps and not self.to_rps:
            yield ("to_rps",), "must be above 0 where from_rps is 0"

    @property
    def ends(self) -> bool:
        """Whether the ramp goes down to 0."""
        return self.to_rps == 0


class DiurnalArrivals(VaryingArrivals):
    """Day and night: rate = mean x (1 + amplitude x cos(2 pi (t - peak) / period))."""

    shape: Literal["diurnal"]
    """How the rate behaves over time."""

    mean_rps: PositiveRate
    """Requests a second, averaged over a period."""

    amplitude: Fraction
    """How far peak and trough lie from the mean, as a fraction of it: 0.5 = from half to one and a half."""

    period_s: Annotated[float, Field(ge=1, le=MAX_TIME_S)] = SECONDS_PER_DAY
    """Length of a day in seconds; shorten it to see several in a short run."""

    peak_at_s: Seconds | None = None
    """When the rate is highest; null = after half a period, so that the run begins at night."""


class FlashCrowdArrivals(VaryingArrivals):
    """A steady rate, and one crowd: a linear rise, a plateau, a linear fall, then the steady rate again."""

    shape: Literal["flash_crowd"]
    """How the rate behaves over time."""

    base_rps: Rate
    """Mean requests a second before and after; 0 = nothing but the crowd."""

    peak_rps: PositiveRate
    """Mean requests a second on the plateau."""

    at_s: Seconds
    """When the rise begins, in seconds."""

    ramp_s: Seconds
    """Length of the rise in seconds; 0 = at once."""

    hold_s: Seconds
    """Length of the plateau in seconds."""

    decay_s: Seconds
    """Length of the fall in seconds; 0 = at once."""

    def _conflicts(self) -> Iterator[tuple[Path, str]]:
        yield from super()._conflicts()
        if not (self.ramp_s or self.hold_s or self.decay_s):
            yield ("hold_s",), "must be above 0 where ramp_s and decay_s are 0"

    @property
    def ends(self) -> bool:
        """Whether nothing comes after the crowd."""
        return self.base_rps == 0


RateShape = (
    ConstantArrivals
    | PoissonArrivals
    | GammaArrivals
    | PiecewiseArrivals
    | RampArrivals
    | DiurnalArrivals
    | FlashCrowdArrivals
)


def _checked_path(value: Any, info: ValidationInfo) -> Any:
    return existing_path(value, info.context) if isinstance(value, str) else value


class RetimedArrivals(ArrivalSpec):
    """The requests of a recorded trace in their order, at other times.

    Lengths and prompts are the trace's. Single requests arrive as the profile says; of conversations the
    first turns do, later turns keep their pauses. Without timestamps the order is that of the file. The load
    ends with the trace at the latest.
    """

    shape: Literal["retimed"]
    """How the rate behaves over time."""

    path: Annotated[str, BeforeValidator(_checked_path)]
    """Trace file, plain, .gz or .zst, relative to the scenario's folder."""

    profile: Annotated[RateShape, Field(discriminator="shape")]
    """The new arrivals."""

    format: RetimedFormatName = "mooncake"
    """Format of the trace; its requests must not wait for requests of other conversations."""

    trace_block_size: Tokens | None = None
    """Prompt tokens per hash id; null = 512, or what the records say."""

    skip_bad_lines: bool = False
    """Leave out lines that cannot be read, instead of refusing the trace."""

    @property
    def ends(self) -> bool:
        """Always: a trace has an end."""
        return True


Arrivals = Annotated[
    RateShape | RetimedArrivals,
    Field(discriminator="shape"),
]
"""Add a shape by adding its model to `RateShape`, and its rate to `workload.arrivals.rates`."""
