"""What scrapes can never show, or not always, told before a run starts (`spec 10, 8.1 and 8.2`)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from dynamo_sim.autoscaling.catalogue import Kind
from dynamo_sim.autoscaling.metrics import MetricsSettings
from dynamo_sim.autoscaling.query import MetricQuery


def hidden_metrics(queries: Iterable[MetricQuery], settings: MetricsSettings) -> list[str]:
    """One line for every query whose window or lookback is too short for the scrapes.

    Args:
        queries: that are answered from scrapes.
        settings: how metrics travel.
    """
    if settings.perfect:
        return []
    return list(dict.fromkeys(line for query in queries for line in _lines(query, settings)))


def _lines(query: MetricQuery, settings: MetricsSettings) -> Iterator[str]:
    interval, delay = settings.scrape_interval_s, settings.scrape_delay_s
    scrapes = f"with a scrape every {interval:g} s"
    if delay:
        scrapes += f", seen {delay:g} s later,"
    instant = query.spec.kind is Kind.GAUGE and query.over == "last"
    window = settings.lookback_s if instant else query.window_s or settings.window_s
    key = "lookback_s" if instant else "window_s"
    what = f"{query}: {key} is {window:g}"
    differences = query.spec.kind in (Kind.COUNTER, Kind.RATIO)
    # Scrapes that are visible now lie from `window` ago to `delay` ago.
    span = window - delay
    never, always = (interval, 2 * interval) if differences else (0.0, interval)
    needs = "the two samples it needs" if differences else "a sample"
    advice = f"from {always + delay:g} on it always does"
    if span < never or span < 0:
        yield f"{what}, and {scrapes} that never holds {needs}: nothing is ever seen; {advice}"
    elif span < always:
        yield f"{what}, and {scrapes} that does not always hold {needs}: some looks see nothing; {advice}"
