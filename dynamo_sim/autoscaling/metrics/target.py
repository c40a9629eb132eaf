"""One thing that is scraped: a worker, or the frontend queue."""

from __future__ import annotations

import math

import numpy as np

from dynamo_sim.autoscaling.fleet_view import Sample
from dynamo_sim.autoscaling.metrics.histogram import (
    Counts,
    Floats,
    ObservationLog,
    bucket_percentile,
    exact_percentile,
    mean,
)
from dynamo_sim.autoscaling.metrics.query import MetricQuery
from dynamo_sim.autoscaling.metrics.series import SampleSeries
from dynamo_sim.metric_catalogue import Kind
from dynamo_sim.scenario.autoscaler.metrics import MetricsSection


class Target:
    """Its samples, and what can be said of them at a given time.

    Attributes:
        id: worker id, or `FLEET`.
        columns: place of each gauge and counter in a row.
        series: the rows.
        logs: observations by histogram.
        shift_s, scrapes: next scrape is at ``shift_s + scrapes * interval``.
        observed_s: until when observations have been taken.
        gone: whether it does not exist any more.
        over: whether its last scrape is behind it.
        stale_s: since when its series has ended; None while it goes on.
    """

    __slots__ = (
        "columns",
        "gone",
        "id",
        "logs",
        "observed_s",
        "over",
        "scrapes",
        "series",
        "settings",
        "shift_s",
        "stale_s",
    )

    def __init__(
        self, target_id: int, columns: dict[str, int], settings: MetricsSection, since_s: float
    ) -> None:
        self.id = target_id
        self.columns = columns
        self.settings = settings
        self.series = SampleSeries(len(columns))
        self.logs: dict[str, ObservationLog] = {}
        self.shift_s = 0.0
        self.scrapes = 0
        self.over = False
        self.observed_s = since_s
        self.gone = False
        self.stale_s: float | None = None

    @property
    def due_s(self) -> float:
        """Time of the next scrape."""
        return self.shift_s + self.scrapes * self.settings.scrape_interval_s

    # ------------------------------------------------------------ answers

    def sample(self, query: MetricQuery, now_s: float) -> Sample | None:
        """The answer for this target alone, without the query's scale; None for no data."""
        kind = query.spec.kind
        if kind is Kind.GAUGE:
            return self._last(query, now_s) if query.over == "last" else self._mean(query, now_s)
        if kind is Kind.COUNTER:
            found = self._increase(query.spec.columns[0], self._window(query), now_s)
            if found is None:
                return None
            increase, seconds, at_s = found
            return Sample(increase / seconds if query.over == "rate" else increase, at_s, seconds)
        if kind is Kind.RATIO:
            parts = self.ratio(query, now_s)
            if parts is None or parts[1] <= 0:
                return None
            return Sample(min(parts[0] / parts[1], 1.0), parts[2], parts[3])
        values, counts = self.observed(query, now_s)
        value = summary(values, counts, query, self._window(query), self.settings)
        return None if value is None else Sample(value, self._visible_s(now_s), self._window(query))

    def ratio(self, query: MetricQuery, now_s: float) -> tuple[float, float, float, float] | None:
        """(numerator, denominator, time of the last sample, seconds) of a ratio over the window."""
        columns, window_s = query.spec.columns, self._window(query)
        above = self._increase(columns[0], window_s, now_s)
        if above is None:
            return None
        increase, seconds, at_s = above
        if len(columns) == 1:
            return increase, seconds, at_s, seconds
        below = self._increase(columns[1], window_s, now_s)
        return None if below is None else (increase, below[0], at_s, seconds)

    def observed(self, query: MetricQuery, now_s: float) -> tuple[Floats, Counts]:
        """Observations of the window that have been scraped and are visible."""
        log = self.logs.get(query.metric)
        if log is None:
            return np.empty(0), np.empty(0, dtype=np.int64)
        return log.between(now_s - self._window(query), self._visible_s(now_s))

    # ------------------------------------------------------------ one column

    def _window(self, query: MetricQuery) -> float:
        return self.settings.window_s if query.window_s is None else query.window_s

    def _delay(self) -> float:
        return 0.0 if self.settings.perfect else self.settings.scrape_delay_s

    def _visible_s(self, now_s: float) -> float:
        """Time of the last scrape that is visible."""
        place = self.series.place_at(now_s - self._delay())
        return float(self.series.times[place]) if place >= 0 else -math.inf

    def _last(self, query: MetricQuery, now_s: float) -> Sample | None:
        visible = now_s - self._delay()
        if self.stale_s is not None and self.stale_s <= visible:
            return None
        place = self.series.place_at(visible)
        if place < 0:
            return None
        at_s = float(self.series.times[place])
        if at_s < now_s - self.settings.lookback_s:
            return None
        value = float(self.series.rows[place, self.columns[query.metric]])
        return None if math.isnan(value) else Sample(value, at_s)

    def _mean(self, query: MetricQuery, now_s: float) -> Sample | None:
        first, last = self._places(self._window(query), now_s)
        values = self.series.rows[first : last + 1, self.columns[query.metric]]
        values = values[~np.isnan(values)]
        if not len(values):
            return None
        return Sample(float(values.mean()), float(self.series.times[last]), self._window(query))

    def _increase(self, column: str, window_s: float, now_s: float) -> tuple[float, float, float] | None:
        """(increase, seconds between the samples, time of the last) of a counter; None for fewer than two samples."""
        first, last = self._places(window_s, now_s)
        if self.settings.perfect:  # the window begins at its edge, not at the first sample inside
            if self.gone and last >= 0 and self.series.times[last] <= now_s - window_s:
                return None
            first = max(0, self.series.place_at(now_s - window_s))
        if last <= first:
            return None
        values = self.series.rows[first : last + 1, self.columns[column]]
        increase = float(values[-1] - values[0])
        drops = np.flatnonzero(np.diff(values) < 0)  # a restarted worker counts from 0 again
        increase += float(values[drops].sum())
        times = self.series.times
        return increase, float(times[last] - times[first]), float(times[last])

    def _places(self, window_s: float, now_s: float) -> tuple[int, int]:
        """Places of the first and the last visible row of a window; the last is the smaller one when there is none."""
        first = int(np.searchsorted(self.series.times, now_s - window_s, side="left"))
        return first, self.series.place_at(now_s - self._delay())


def summary(
    values: Floats, counts: Counts, query: MetricQuery, window_s: float, settings: MetricsSection
) -> float | None:
    """One number of the observations of a window; their rate is 0 without any, everything else is no data then."""
    if query.over == "rate":
        return float(counts.sum()) / window_s
    percent = query.percent
    if percent is None:
        return mean(values, counts)
    bounds = settings.buckets.get(query.metric)
    if bounds is None:
        return exact_percentile(values, counts, percent)
    return bucket_percentile(values, counts, percent, bounds)
