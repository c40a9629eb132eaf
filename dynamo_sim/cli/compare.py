"""`dynamo-sim compare`: run variants of a scenario, or several scenarios, and put their figures side by side."""

from __future__ import annotations

import argparse
import json
import math
import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from dynamo_sim.cli.arguments import add_overrides, given_text

if TYPE_CHECKING:
    from dynamo_sim.report.result import RunResult

ROWS = (
    ("completed requests", "completed_requests", "{:,.0f}"),
    ("rejected requests", "rejected_requests", "{:,.0f}"),
    ("failed requests", "failed_requests", "{:,.0f}"),
    ("unfinished requests", "unfinished_requests", "{:,.0f}"),
    ("preemptions", "preemptions", "{:,.0f}"),
    ("within the SLA", "within_sla_requests", "{:,.0f}"),
    ("within the SLA (share)", "within_sla", "{:.1%}"),
    ("TTFT p50 (ms)", "median_ttft_ms", "{:,.1f}"),
    ("TTFT p99 (ms)", "p99_ttft_ms", "{:,.1f}"),
    ("ITL p50 (ms)", "median_itl_ms", "{:,.2f}"),
    ("ITL p99 (ms)", "p99_itl_ms", "{:,.2f}"),
    ("E2E p50 (ms)", "median_e2e_latency_ms", "{:,.1f}"),
    ("E2E p99 (ms)", "p99_e2e_latency_ms", "{:,.1f}"),
    ("output tokens/s", "output_throughput_tok_s", "{:,.1f}"),
    ("reused at 1st admission", "first_admission_prefix_cache_reused_ratio", "{:.1%}"),
    ("duration (s)", "duration_ms", "{:,.2f}"),
    ("peak workers", "peak_workers", "{:,.0f}"),
    ("mean workers", "mean_workers", "{:,.1f}"),
    ("scale changes", "scale_changes", "{:,.0f}"),
    ("GPU hours", "gpu_hours", "{:,.3f}"),
)
"""Label, field of the summary or of `_more`, format; a row without a value in any run is left out."""

ONLY_IF_ANY = ("rejected_requests", "failed_requests", "unfinished_requests", "preemptions", "scale_changes")
"""Rows that are left out where they are 0 in all runs."""

OF_ANY_RUN = (
    "completed_requests",
    "rejected_requests",
    "failed_requests",
    "unfinished_requests",
    "within_sla_requests",
    "within_sla",
    "scale_changes",
    "peak_workers",
    "mean_workers",
    "gpu_hours",
)
"""Fields that a run has of which nobody got a token."""


def add_parser(subparsers: Any) -> None:
    """Add the subcommand."""
    parser = subparsers.add_parser(
        "compare", help="run variants and put their figures side by side", description=__doc__
    )
    parser.add_argument(
        "scenarios", nargs="+", metavar="SCENARIO", type=given_text, help="scenario files (YAML)"
    )
    parser.add_argument(
        "--vary",
        action="append",
        default=[],
        metavar="KEY=A,B,...",
        help="run every scenario with each of these values, as fleet.workers=4,6,8; with several, all combinations",
    )
    add_overrides(parser, "change one value for all")
    parser.add_argument("--json", action="store_true", help="print the summaries as JSON, and nothing else")
    parser.set_defaults(handler=handle)


def handle(arguments: argparse.Namespace) -> int:
    """Check every variant before the first one runs."""
    from dynamo_sim.cli.loading import naming
    from dynamo_sim.cli.variants import refuse_equal_runs, variants
    from dynamo_sim.errors import SimulationError

    chosen = list(variants(arguments.scenarios, arguments.overrides, arguments.vary))
    if arguments.vary:
        refuse_equal_runs([(label, scenario) for label, _, scenario in chosen])
    from dynamo_sim.simulation import run

    results: list[tuple[str, RunResult]] = []
    for number, (label, path, scenario) in enumerate(chosen, start=1):
        if sys.stderr.isatty():
            print(f"running {label} ({number}/{len(chosen)}) ...", file=sys.stderr)
        try:
            with naming(path):
                results.append((label, run(scenario)))
        except SimulationError as error:
            raise SimulationError(f"{label}: {error}") from error
    if arguments.json:
        print(
            json.dumps(
                [{"variant": label, "summary": _finite(result)} for label, result in results], indent=2
            )
        )
    else:
        _print(results)
    from dynamo_sim.report.conditions import unequal_pools_warning
    from dynamo_sim.scenario.effects import notes

    for note in dict.fromkeys(note for _, result in results for note in notes(result.scenario)):
        print(f"Note: {note}", file=sys.stderr if arguments.json else sys.stdout)

    if unequal := unequal_pools_warning([result.scenario for _, result in results]):
        print(f"Warning: {unequal}", file=sys.stderr if arguments.json else sys.stdout)
    for label, result in results:
        for warning in result.warnings:
            print(f"Warning: {label}: {warning}", file=sys.stderr if arguments.json else sys.stdout)
    return 0


def _print(results: list[tuple[str, RunResult]]) -> None:
    from rich.console import Console
    from rich.table import Table

    table = Table(title=None)
    table.add_column("")
    for label, _ in results:
        table.add_column(label, justify="right")
    figures = [{**result.summary, **more} for (_, result), more in zip(results, _more(results), strict=True)]
    for label, field, form in ROWS:
        values = [_figure(of_run, field) for of_run in figures]
        if field in ONLY_IF_ANY and not any(values):
            continue
        if any(value is not None for value in values):
            scaled = [v / 1000.0 if field == "duration_ms" and v is not None else v for v in values]
            table.add_row(label, *("-" if v is None else form.format(v) for v in scaled))
    width = None if sys.stdout.isatty() else 40 + 24 * len(results)
    Console(width=width).print(table)


def _more(results: list[tuple[str, RunResult]]) -> list[dict[str, float]]:
    """Figures that no summary has: the size of the fleets, if one of them changed."""
    from dynamo_sim.report.fleet_use import fleet_use

    uses = [fleet_use(result.records.fleet, result.end_ms) for _, result in results]
    changed = any(use.changes for use in uses)
    return [{"peak_workers": use.most, "mean_workers": use.mean} if changed else {} for use in uses]


def _figure(figures: Mapping[str, float], field: str) -> float | None:
    """A figure of a run; None where it is not there, and for a latency or rate that nobody had."""
    return figures.get(field) if figures["completed_requests"] or field in OF_ANY_RUN else None


def _finite(result: RunResult) -> dict[str, Any]:
    return {
        k: None if isinstance(v, float) and not math.isfinite(v) else v for k, v in result.summary.items()
    }
