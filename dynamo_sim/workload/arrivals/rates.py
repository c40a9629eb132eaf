"""Rates over time, their integrals, and the inverses of those: the time change that arrivals are made with.

The integral of a rate from 0 to t is the number of requests expected by t. A Poisson process of that rate is
a Poisson process of rate 1 whose events e are moved to the times at which e requests are expected, which is
exact, whatever the rate (Cinlar 1975, Introduction to Stochastic Processes, 4.7).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import cos, pi
from typing import Protocol

import numpy as np
import numpy.typing as npt

from dynamo_sim.scenario.arrivals import (
    DiurnalArrivals,
    FlashCrowdArrivals,
    PiecewiseArrivals,
    RampArrivals,
    RateShape,
)

Floats = npt.NDArray[np.float64]

MIN_PIECE_S = 1e-9
"""Slopes of shorter segments are not computed from their length."""


class RateProfile(Protocol):
    """A rate over time; all arguments and results are arrays of one shape."""

    def rate_rps(self, time_s: Floats) -> Floats:
        """Requests a second at these times, from 0 s; where it jumps, the rate after the jump."""

    def expected_by(self, time_s: Floats) -> Floats:
        """Requests expected from 0 s to these times; of infinity the total."""

    def when_expected(self, requests: Floats) -> Floats:
        """The last times at which no more than so many requests are expected: the inverse of `expected_by`.

        Infinity where so many are never exceeded. Times of an hour are exact to about 1e-9 s.
        """


@dataclass(frozen=True, slots=True)
class Segment:
    """A linear part of a rate, up to the next segment.

    Attributes:
        from_s: when it begins.
        rate_rps: rate at its beginning.
        until_rps: rate at its end; the same, if None.
    """

    from_s: float
    rate_rps: float
    until_rps: float | None = None


class LinearSegments:
    """A rate made of linear segments; segments of no length count for nothing.

    Args:
        segments: in order of time, the first from 0; the last lasts for ever and must not change.
    """

    def __init__(self, segments: Sequence[Segment]) -> None:
        self._from = np.array([segment.from_s for segment in segments])
        self._rate = np.array([segment.rate_rps for segment in segments])
        until = np.array([p.rate_rps if p.until_rps is None else p.until_rps for p in segments])
        self._length = np.append(np.diff(self._from), np.inf)
        self._slope = (until - self._rate) / np.maximum(self._length, MIN_PIECE_S)
        amounts = (self._rate[:-1] + until[:-1]) / 2.0 * self._length[:-1]
        self._expected = np.concatenate(([0.0], np.cumsum(amounts)))

    def rate_rps(self, time_s: Floats) -> Floats:
        """Requests a second at these times."""
        segment = np.searchsorted(self._from, time_s, side="right") - 1
        return self._rate[segment] + self._slope[segment] * (time_s - self._from[segment])

    def expected_by(self, time_s: Floats) -> Floats:
        """Requests expected up to these times."""
        segment = np.searchsorted(self._from, time_s, side="right") - 1
        rate, slope, since = self._rate[segment], self._slope[segment], time_s - self._from[segment]
        with np.errstate(invalid="ignore"):  # 0 x infinity, in the last segment
            amounts = np.where(rate > 0.0, rate * since, 0.0)
            amounts += np.where(slope != 0.0, slope * since * since / 2.0, 0.0)
        return self._expected[segment] + amounts

    def when_expected(self, requests: Floats) -> Floats:
        """The last times at which no more than so many requests are expected."""
        segment = np.searchsorted(self._expected, requests, side="right") - 1
        rate, slope = self._rate[segment], self._slope[segment]
        more = requests - self._expected[segment]
        root = np.sqrt(np.maximum(rate * rate + 2.0 * slope * more, 0.0))
        with np.errstate(divide="ignore", invalid="ignore"):
            # Solves rate x since + slope / 2 x since^2 = more, in the form that does not cancel.
            since = 2.0 * more / (rate + root)
        since[more == 0.0] = 0.0
        since[(rate == 0.0) & (slope == 0.0)] = np.inf
        return self._from[segment] + np.minimum(since, self._length[segment])


class Periodic:
    """A rate that repeats for ever.

    Args:
        period: the rate over one period from 0 s, closed by a segment that begins at its end.
        period_s: length of the period.
        from_s: where in the period the run begins.
    """

    def __init__(self, period: LinearSegments, period_s: float, from_s: float) -> None:
        self._one = period
        self._period = period_s
        self._from = from_s
        at = period.expected_by(np.array([from_s, period_s]))
        self._before, self._in_one = float(at[0]), float(at[1])

    def rate_rps(self, time_s: Floats) -> Floats:
        """Requests a second at these times."""
        return self._one.rate_rps((time_s + self._from) % self._period)

    def expected_by(self, time_s: Floats) -> Floats:
        """Requests expected up to these times."""
        since = time_s + self._from
        periods = np.floor(since / self._period)
        with np.errstate(invalid="ignore"):
            rest = np.where(np.isinf(since), 0.0, since - periods * self._period)
        return periods * self._in_one + self._one.expected_by(np.maximum(rest, 0.0)) - self._before

    def when_expected(self, requests: Floats) -> Floats:
        """The last times at which no more than so many requests are expected."""
        since = requests + self._before
        periods = np.floor(since / self._in_one)
        rest = np.clip(since - periods * self._in_one, 0.0, self._in_one)
        return np.maximum(periods * self._period + self._one.when_expected(rest) - self._from, 0.0)


def rate_profile(shape: RateShape) -> RateProfile:
    """The rate that a part `arrivals` of a scenario describes."""
    match shape:
        case PiecewiseArrivals():
            before = [] if shape.steps[0].from_s == 0 else [Segment(0.0, 0.0)]
            return LinearSegments([*before, *(Segment(step.from_s, step.rate_rps) for step in shape.steps)])
        case RampArrivals():
            ramp = Segment(0.0, shape.from_rps, shape.to_rps)
            return LinearSegments([ramp, Segment(shape.duration_s, shape.to_rps)])
        case FlashCrowdArrivals():
            return _flash_crowd(shape)
        case DiurnalArrivals():
            return _diurnal(shape)
        case _:
            return LinearSegments([Segment(0.0, shape.rate_rps)])


def _flash_crowd(shape: FlashCrowdArrivals) -> LinearSegments:
    plateau_s = shape.at_s + shape.ramp_s
    fall_s = plateau_s + shape.hold_s
    return LinearSegments(
        [
            Segment(0.0, shape.base_rps),
            Segment(shape.at_s, shape.base_rps, shape.peak_rps),
            Segment(plateau_s, shape.peak_rps),
            Segment(fall_s, shape.peak_rps, shape.base_rps),
            Segment(fall_s + shape.decay_s, shape.base_rps),
        ]
    )


DIURNAL_SEGMENTS = 1440
"""Straight segments a period; peak, mean and trough are ends of segments."""


def _diurnal(shape: DiurnalArrivals) -> Periodic:
    """The cosine as straight segments that begin at the peak.

    The rate is off by at most 2.4e-6 of its swing, and not at all in the mean. In return nothing but sums,
    products and roots decides about times, which are the same on every platform; the cosines themselves are
    rounded for that reason.
    """
    period_s = shape.period_s
    peak_s = period_s / 2.0 if shape.peak_at_s is None else shape.peak_at_s
    knots = range(DIURNAL_SEGMENTS + 1)
    from_s = [period_s * knot / DIURNAL_SEGMENTS for knot in knots]
    cosines = [round(cos(2.0 * pi * knot / DIURNAL_SEGMENTS), 9) for knot in knots]
    rates = [shape.mean_rps * (1.0 + shape.amplitude * cosine) for cosine in cosines]
    segments = [Segment(*segment) for segment in zip(from_s, rates, [*rates[1:], None], strict=True)]
    return Periodic(LinearSegments(segments), period_s, -peak_s % period_s)
