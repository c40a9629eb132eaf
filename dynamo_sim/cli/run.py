"""`dynamo-sim run SCENARIO`: run a scenario, print its table, write its results."""

from __future__ import annotations

import argparse
import json
import math
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dynamo_sim import signals
from dynamo_sim.cli.arguments import add_overrides, given_path, given_text
from dynamo_sim.errors import OutputError, ScenarioError
from dynamo_sim.text import print_error

if TYPE_CHECKING:
    from dynamo_sim.report.figure_condition import FigureCondition
    from dynamo_sim.report.result import RunResult
    from dynamo_sim.report.summary import Summary
    from dynamo_sim.scenario import Scenario


def add_parser(subparsers: Any) -> None:
    """Add the subcommand."""
    parser = subparsers.add_parser("run", help="run a scenario", description=__doc__)
    parser.add_argument("scenario", metavar="SCENARIO", type=given_text, help="scenario file (YAML)")
    add_overrides(parser, "change one value, as fleet.workers=8 or scaling.0.workers=3; may be repeated")
    output = parser.add_mutually_exclusive_group()
    output.add_argument(
        "--out",
        metavar="DIR",
        type=given_path,
        help="folder of the results (default: results/ and the scenario's name)",
    )
    output.add_argument("--no-save", action="store_true", help="write no files")
    parser.add_argument(
        "--html", metavar="FILE", type=given_path, help="also write one page with everything on it"
    )
    parser.add_argument(
        "--json", action="store_true", help="print the summary as JSON, and warnings to standard error"
    )
    parser.add_argument("--quiet", action="store_true", help="print only errors")
    parser.add_argument("--no-plots", action="store_true", help="draw no pictures")
    parser.add_argument(
        "--fail-on",
        action="append",
        default=[],
        metavar="CONDITION",
        type=given_text,
        help="end with exit code 3 if a figure of the summary is so, as 'within_sla<0.99'; may be repeated",
    )
    parser.set_defaults(handler=handle)


CONDITION_HOLDS = 3
"""Exit code of a run that a condition of ``--fail-on`` holds for."""


def handle(arguments: argparse.Namespace) -> int:
    """Load, run, save, print; nothing is saved of a run that fails."""
    from dynamo_sim.cli.loading import naming
    from dynamo_sim.cli.results_folder import usable_folder
    from dynamo_sim.files.output import check_file_of_option
    from dynamo_sim.report.saving import is_result
    from dynamo_sim.report.unserved import all_rejected
    from dynamo_sim.scenario import load_scenario
    from dynamo_sim.scenario.effects import notes

    scenario = load_scenario(arguments.scenario, arguments.overrides)
    if arguments.no_plots:
        scenario = scenario.with_(**{"report.plots": False})
    conditions = _conditions(arguments.fail_on, scenario)
    folder = None
    if not arguments.no_save:
        folder = usable_folder(arguments.out or Path("results") / scenario.name)
    replaced = folder is not None and is_result(folder)
    if arguments.html is not None:
        check_file_of_option("--html", arguments.html, ".html", ".htm")
    started = time.perf_counter()
    with naming(arguments.scenario):
        result = _run(scenario, show_progress=not arguments.quiet and sys.stderr.isatty())
    summary = result.summary.with_wall_time((time.perf_counter() - started) * 1000.0)
    signals.check()
    _write(result, folder, arguments.html)
    if arguments.json:
        print(json.dumps(_finite(summary), indent=2, allow_nan=False))
        for note in notes(scenario):
            print(f"Note: {note}", file=sys.stderr)
        for warning in result.warnings:
            print(f"Warning: {warning}", file=sys.stderr)
    elif not arguments.quiet:
        _print_table(result, summary)
        if arguments.html is not None:
            print(f"Page: {arguments.html}")
        if folder is not None:
            print(f"Results: {folder}" + (" (replaced those of an earlier run)" if replaced else ""))
    if all_rejected(result.records.requests):
        print_error("every request was rejected")
        return 1
    failed = [condition for condition in conditions if condition.holds(summary)]
    for condition in failed:
        print_error(f"--fail-on {condition}: it is {summary[condition.figure]:,.6g}")
    return CONDITION_HOLDS if failed else 0


def _conditions(texts: list[str], scenario: Scenario) -> list[FigureCondition]:
    """The conditions of ``--fail-on``, each about a figure that this scenario will have."""
    from dynamo_sim.records.records import RunRecords
    from dynamo_sim.report.figure_condition import FigureCondition
    from dynamo_sim.report.summary import summarise

    figures = summarise(RunRecords(), scenario.sla, wall_time_ms=1.0) if texts else {}
    conditions = []
    for text in texts:
        try:
            condition = FigureCondition.parse(text)
            condition.holds(figures)
        except ValueError as error:
            raise ScenarioError(f"--fail-on: {error}") from None
        conditions.append(condition)
    return conditions


def _write(result: RunResult, folder: Path | None, page: Path | None) -> None:
    """Write the page and the results; neither is put in place before both are complete."""
    if page is None:
        _save(result, folder)
        return
    from dynamo_sim.files.output import file_of_option
    from dynamo_sim.report.html import page as html

    with file_of_option("--html", page) as draft:
        draft.write_text(html(result), encoding="utf-8")
        _save(result, folder)


def _save(result: RunResult, folder: Path | None) -> None:
    """Write the results; an error is about the folder, not about the draft of it that was being written."""
    if folder is None:
        return
    try:
        result.save(folder)
    except OSError as error:
        raise OutputError(f"{folder}: {error.strerror or error}") from error


def _run(scenario: Scenario, show_progress: bool) -> RunResult:
    from dynamo_sim.simulation import run

    if not show_progress:
        return run(scenario)
    from dynamo_sim.cli.progress import RunProgress

    with RunProgress(scenario) as progress:
        return run(scenario, progress=progress.update)


def _print_table(result: RunResult, summary: Summary) -> None:
    from dynamo_sim.report.conditions import condition_lines
    from dynamo_sim.report.table import nothing_served, print_table
    from dynamo_sim.scenario.effects import notes

    if nothing := nothing_served(summary):
        print(nothing)
    else:
        print_table(summary)
        for line in condition_lines(result.scenario):
            print(line)
    if line := result.fleet_line:
        print(line)
    for note in notes(result.scenario):
        print(f"Note: {note}")
    for warning in result.warnings:
        print(f"Warning: {warning}")


def _finite(summary: Mapping[str, Any]) -> dict[str, Any]:
    """JSON has no NaN and no infinity: null."""
    return {
        key: None if isinstance(value, float) and not math.isfinite(value) else value
        for key, value in summary.items()
    }
