"""`dynamo-sim compare`: run variants of a scenario, or several scenarios, and put their figures side by side."""

from __future__ import annotations

import argparse
import json
import math
import sys
from collections.abc import Iterator, Sequence
from itertools import product
from typing import TYPE_CHECKING, Any

from dynamo_sim.commands.arguments import given_text

if TYPE_CHECKING:
    from dynamo_sim.report.result import RunResult
    from dynamo_sim.report.summary import Summary
    from dynamo_sim.scenario import Scenario

MOST_RUNS = 64

ROWS = (
    ("completed requests", "completed_requests", "{:,.0f}"),
    ("failed requests", "failed_requests", "{:,.0f}"),
    ("within the SLA", "goodput_completed_requests", "{:,.0f}"),
    ("TTFT p50 (ms)", "median_ttft_ms", "{:,.1f}"),
    ("TTFT p99 (ms)", "p99_ttft_ms", "{:,.1f}"),
    ("ITL p50 (ms)", "median_itl_ms", "{:,.2f}"),
    ("ITL p99 (ms)", "p99_itl_ms", "{:,.2f}"),
    ("E2E p50 (ms)", "median_e2e_latency_ms", "{:,.1f}"),
    ("E2E p99 (ms)", "p99_e2e_latency_ms", "{:,.1f}"),
    ("output tokens/s", "output_throughput_tok_s", "{:,.1f}"),
    ("prompt tokens reused", "first_admission_prefix_cache_reused_ratio", "{:.1%}"),
    ("duration (s)", "duration_ms", "{:,.2f}"),
    ("GPU hours", "gpu_hours", "{:,.3f}"),
)
"""Label, field of the summary, format; a row without a value in any run is left out."""


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
    parser.add_argument(
        "--set",
        dest="overrides",
        metavar="KEY=VALUE",
        action="append",
        default=[],
        help="change one value for all",
    )
    parser.add_argument("--json", action="store_true", help="print the summaries as JSON, and nothing else")
    parser.set_defaults(handler=handle)


def handle(arguments: argparse.Namespace) -> int:
    """Check every variant before the first one runs."""
    from dynamo_sim.commands.loading import naming

    variants = list(_variants(arguments))
    from dynamo_sim.simulation import run

    results: list[tuple[str, RunResult]] = []
    for label, path, scenario in variants:
        if sys.stderr.isatty():
            print(f"running {label} ...", file=sys.stderr)
        with naming(path):
            results.append((label, run(scenario)))
    if arguments.json:
        print(
            json.dumps(
                [{"variant": label, "summary": _finite(result)} for label, result in results], indent=2
            )
        )
    else:
        _print(results)
    for label, result in results:
        for warning in result.warnings:
            print(f"Warning: {label}: {warning}", file=sys.stderr if arguments.json else sys.stdout)
    return 0


def _variants(arguments: argparse.Namespace) -> Iterator[tuple[str, str, Scenario]]:
    """What to call it, its file, and the scenario."""
    from dynamo_sim.commands.loading import load_and_build
    from dynamo_sim.errors import ScenarioError

    axes: list[list[str]] = []
    for text in arguments.vary:
        key, equals, values = text.partition("=")
        if not equals or not key or not values:
            raise ScenarioError(f"--vary {text}: must be KEY=A,B,..., like fleet.workers=4,6,8")
        axes.append([f"{key}={value}" for value in _split(values)])
    count = len(arguments.scenarios) * math.prod(map(len, axes))
    if count > MOST_RUNS:
        raise ScenarioError(f"--vary: {count} runs are too many to read side by side; at most {MOST_RUNS}")
    for path in arguments.scenarios:
        for choice in product(*axes):
            scenario, _ = load_and_build(path, arguments.overrides, choice)
            scenario = scenario.with_(**{"report.passes": False})
            short = _short(choice)
            names = [scenario.name] if len(arguments.scenarios) > 1 or not short else []
            yield " ".join([*names, *short]), path, scenario


def _short(choice: Sequence[str]) -> list[str]:
    """``workers=4`` for ``fleet.workers=4``, unless another key ends alike."""
    keys = [text.partition("=")[0] for text in choice]
    lasts = [key.rpartition(".")[2] for key in keys]
    return [
        text if lasts.count(last) > 1 else text[len(key) - len(last) :]
        for text, key, last in zip(choice, keys, lasts, strict=True)
    ]


def _split(values: str) -> list[str]:
    """Cut at commas that lie outside brackets, braces and quotes."""
    parts, depth, quote = [""], 0, ""
    for letter in values:
        if letter == quote:
            quote = ""
        elif not quote and letter in "\"'":
            quote = letter
        elif not quote:
            depth += (letter in "[{") - (letter in "]}")
        if letter == "," and depth == 0 and not quote:
            parts.append("")
        else:
            parts[-1] += letter
    return parts


def _print(results: list[tuple[str, RunResult]]) -> None:
    from rich.console import Console
    from rich.table import Table

    table = Table(title=None)
    table.add_column("")
    for label, _ in results:
        table.add_column(label, justify="right")
    for label, field, form in ROWS:
        values = [_figure(result.summary, field) for _, result in results]
        if any(value is not None for value in values):
            scaled = [v / 1000.0 if field == "duration_ms" and v is not None else v for v in values]
            table.add_row(label, *("-" if v is None else form.format(v) for v in scaled))
    width = None if sys.stdout.isatty() else 40 + 24 * len(results)
    Console(width=width).print(table)


def _figure(summary: Summary, field: str) -> float | None:
    """A field of the summary; None where it is not there, and for a latency or rate that nobody had."""
    counts = ("completed_requests", "failed_requests", "goodput_completed_requests", "gpu_hours")
    return summary.get(field) if summary["completed_requests"] or field in counts else None


def _finite(result: RunResult) -> dict[str, Any]:
    return {
        k: None if isinstance(v, float) and not math.isfinite(v) else v for k, v in result.summary.items()
    }
