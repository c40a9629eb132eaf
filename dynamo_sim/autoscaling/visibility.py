"""What a policy can never see, or not always, reported before a run starts (`spec 10, 8`)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from dynamo_sim.autoscaling.metrics.query import MetricQuery
from dynamo_sim.autoscaling.policy import Loop, Policy
from dynamo_sim.metric_catalogue import Kind
from dynamo_sim.scenario.autoscaler.metrics import MetricsSection


def hidden_metrics(queries: Iterable[MetricQuery], settings: MetricsSection) -> list[str]:
    """One line for every query whose window or lookback is too short for the scrapes.

    Args:
        queries: that are answered from scrapes.
        settings: how metrics travel.
    """
    if settings.perfect:
        return []
    return list(dict.fromkeys(line for query in queries for line in _lines(query, settings)))


def _lines(query: MetricQuery, settings: MetricsSection) -> Iterator[str]:
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
        yield f"{what}, and {scrapes} that does not always hold {needs}: some evaluations see nothing; {advice}"


def blind_at_zero(policy: Policy, loops: Sequence[Loop], min_workers: int) -> list[str]:
    """A line where the fleet may go to 0 and nothing that is read then says that somebody waits.

    Args:
        policy: any policy.
        loops: of the policy.
        min_workers: smallest fleet of the scenario.
    """
    if min_workers or not policy.may_empty_fleet:
        return []
    reads = [loop.policy.queries for loop in loops]
    queries = dict.fromkeys(query for some in reads for query in some or ())
    if None in reads or not queries or not all(query.spec.per_worker for query in queries):
        return []
    return [
        "the fleet may go to 0, and the policy reads only metrics of workers "
        f"({', '.join(map(str, queries))}): without workers nothing brings it back; keep one worker, or let the policy "
        "read router_queue (dynamo_frontend_router_queue_pending_requests in a manifest)"
    ]
