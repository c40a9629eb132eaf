"""One-step forecasts of a series that comes in one value at a time (`spec 10, 6.5`)."""

from __future__ import annotations

import math
from typing import Protocol


class Predictor(Protocol):
    """Takes a value each interval and says what the next one will be."""

    def add(self, value: float) -> None:
        """A new value; NaN counts as 0, and zeros before the first other value are skipped."""

    def predict(self) -> float:
        """The next value; 0 before the first."""


class ConstantPredictor:
    """The next value is the last one."""

    def __init__(self) -> None:
        self._last = 0.0

    def add(self, value: float) -> None:
        self._last = 0.0 if math.isnan(value) else float(value)

    def predict(self) -> float:
        return self._last


class KalmanPredictor:
    """A Kalman filter over level and trend.

    A forecast is made by the filter's own step to the next interval, so that step is not made again when the value
    arrives.

    Args:
        q_level, q_trend: variance of a step's change in level and trend.
        r: variance of an observation.
        log1p: work on ``log(1 + value)``; forecasts are then never below 0.
    """

    def __init__(
        self, q_level: float = 1.0, q_trend: float = 0.1, r: float = 10.0, log1p: bool = False
    ) -> None:
        self._q_level = max(1e-12, q_level)
        self._q_trend = max(1e-12, q_trend)
        self._r = max(1e-9, r)
        self._log1p = log1p
        self._begun = False
        self._stepped = False
        self._level = self._trend = 0.0
        self._var_level = self._var_trend = 1000.0
        self._covariance = 0.0

    def add(self, value: float) -> None:
        value = 0.0 if math.isnan(value) else float(value)
        if not self._begun and value == 0:
            return
        seen = math.log1p(max(0.0, value)) if self._log1p else value
        if not self._begun:
            self._level = seen
            self._begun = True
        else:
            if not self._stepped:
                self._step()
            self._update(seen)
        self._stepped = False

    def predict(self) -> float:
        if not self._begun:
            return 0.0
        if not self._stepped:
            self._step()
            self._stepped = True
        return max(0.0, math.expm1(self._level)) if self._log1p else self._level

    def _step(self) -> None:
        self._level += self._trend
        self._var_level += 2 * self._covariance + self._var_trend + self._q_level
        self._covariance += self._var_trend
        self._var_trend += self._q_trend

    def _update(self, seen: float) -> None:
        innovation = seen - self._level
        total = self._var_level + self._r
        gain_level, gain_trend = self._var_level / total, self._covariance / total
        self._level += gain_level * innovation
        self._trend += gain_trend * innovation
        self._var_trend -= gain_trend * self._covariance
        self._covariance *= 1 - gain_level
        self._var_level *= 1 - gain_level
