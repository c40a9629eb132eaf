"""From the truth to what a controller can see: exporter, scrapes, windows, staleness (`spec 10, 8`)."""

from __future__ import annotations

from dynamo_sim.autoscaling.metrics.pipeline import MetricsPipeline, scrape_offsets
from dynamo_sim.autoscaling.metrics.sampler import Observations, Sampler
from dynamo_sim.autoscaling.metrics.settings import MetricsSettings

__all__ = ["MetricsPipeline", "MetricsSettings", "Observations", "Sampler", "scrape_offsets"]
