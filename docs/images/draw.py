"""Draws the pictures of the README: python docs/images/draw.py"""

from __future__ import annotations

import sys
from pathlib import Path

import matplotlib

matplotlib.use("agg")

import matplotlib.pyplot as plt

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

import dynamo_sim as ds  # noqa: E402

DPI = 80
STARTUPS_S = (10, 60)
MODES = ("round_robin", "least_loaded")


def flash_crowd() -> None:
    """What an HPA does about a flash crowd."""
    result = ds.run(ds.load_scenario(ROOT / "scenarios" / "hpa_flash_crowd.yaml"))
    panels = result.plot.timeline_panels
    figure, axes = plt.subplots(panels, 1, figsize=(9, 1.9 * panels), sharex=True, layout="constrained")
    result.plot.timeline(axes)
    figure.savefig(Path(__file__).with_name("hpa_flash_crowd.png"), dpi=DPI)


def slow_start() -> None:
    """Time to first token while a fleet grows, for workers that start fast and slowly."""
    scenario = ds.load_scenario(ROOT / "scenarios" / "scale_up_slow_start.yaml")
    figure, axes = plt.subplots(
        len(STARTUPS_S), 1, figsize=(9, 5.5), sharex=True, sharey=True, layout="constrained"
    )
    for ax, startup_s in zip(axes, STARTUPS_S, strict=True):
        result = ds.run(scenario.with_(**{"fleet.engine.startup_time": startup_s}))
        result.plot.latency_over_time(ax, metric="ttft")
        ax.set_title(f"workers start in {startup_s} s", loc="right")
        ax.label_outer()
    figure.savefig(Path(__file__).with_name("slow_start.png"), dpi=DPI)


def routing() -> None:
    """Time to first token while a fleet grows, for a router that looks at no worker and one that does."""
    scenario = ds.load_scenario(ROOT / "scenarios" / "routing_scale_up.yaml")
    figure, axes = plt.subplots(
        len(MODES), 1, figsize=(9, 5.5), sharex=True, sharey=True, layout="constrained"
    )
    for ax, mode in zip(axes, MODES, strict=True):
        result = ds.run(scenario.with_(routing={"mode": mode}))
        result.plot.latency_over_time(ax, metric="ttft")
        ax.text(0.01, 0.88, mode, transform=ax.transAxes, fontsize="large")
        ax.label_outer()
    figure.savefig(Path(__file__).with_name("routing.png"), dpi=DPI)


if __name__ == "__main__":
    flash_crowd()
    slow_start()
    routing()
