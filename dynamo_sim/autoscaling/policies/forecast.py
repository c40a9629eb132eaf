"""Forecasts of a binned series several steps ahead (`spec 10, 5`, predictive)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

LAST_VALUE_BINS = 5
"""With fewer bins than this the forecast is the last value."""

TREND_BINS = 12
"""How many bins a straight line is drawn through."""


def holt_winters(history: Sequence[float], steps: int, season_bins: int | None) -> list[float]:
    """Additive trend and season; without two full seasons plain Holt.

    Raises:
        ImportError: the package ``statsmodels`` is not installed.
    """
    smoothing = exponential_smoothing()
    seasonal = season_bins is not None and season_bins >= 2 and len(history) >= 2 * season_bins
    options: dict[str, Any] = {"trend": "add", "initialization_method": "estimated"}
    if seasonal:
        options |= {"seasonal": "add", "seasonal_periods": season_bins}
    with np.errstate(all="ignore"):
        fitted = smoothing(np.asarray(history, dtype=np.float64), **options).fit()
        forecast = fitted.forecast(steps)
    return [float(value) for value in forecast]


def seasonal_naive(history: Sequence[float], steps: int, season_bins: int | None) -> list[float]:
    """What was there one season ago; the last value until a season has been seen."""
    if season_bins is None or len(history) < season_bins:
        return [float(history[-1])] * steps
    season = history[-season_bins:]
    return [float(season[step % season_bins]) for step in range(steps)]


def linear(history: Sequence[float], steps: int, season_bins: int | None) -> list[float]:
    """The straight line through the last bins, drawn on."""
    recent = np.asarray(history[-TREND_BINS:], dtype=np.float64)
    at = np.arange(len(recent))
    slope, level = np.polyfit(at, recent, 1)
    return [float(level + slope * (len(recent) + step)) for step in range(steps)]


METHODS: dict[str, Callable[[Sequence[float], int, int | None], list[float]]] = {
    "holt_winters": holt_winters,
    "seasonal_naive": seasonal_naive,
    "linear": linear,
}
"""Forecasts by name."""


def forecast(
    method: str, history: Sequence[float], steps: int, season_bins: int | None = None
) -> list[float]:
    """The next ``steps`` bins after ``history`` (not empty), none below 0.

    Args:
        method: a name of `METHODS`.
        history: complete bins, oldest first.
        steps: how many.
        season_bins: length of a season, or None.
    """
    if len(history) < LAST_VALUE_BINS:
        found = [float(history[-1])] * steps
    else:
        found = METHODS[method](history, steps, season_bins)
        if not np.all(np.isfinite(found)):
            found = [float(history[-1])] * steps
    return [max(0.0, value) for value in found]


def exponential_smoothing() -> Any:
    """The class that fits Holt and Holt-Winters.

    Raises:
        ImportError: the package ``statsmodels`` is not installed.
    """
    try:
        from statsmodels.tsa.holtwinters import ExponentialSmoothing
    except ImportError as error:
        raise ImportError(
            "holt_winters needs the package statsmodels: pip install 'statsmodels>=0.14'"
        ) from error
    return ExponentialSmoothing
