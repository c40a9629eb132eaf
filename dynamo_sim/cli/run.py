"""`dynamo-sim run SCENARIO`: run a scenario, print its table, write its results."""

from __future__ import annotations

import argparse
import json
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dynamo_sim import signals
from dynamo_sim.cli.arguments import add_conditions, add_overrides, given_path, given_text
from dynamo_sim.cli.exit_codes import CONDITION_HOLDS, DONE, FAILED
from dynamo_sim.errors import OutputError
from dynamo_sim.text import print_error

if TYPE_CHECKING:
    from dynamo_sim.report.result import RunResult
    from dynamo_sim.report.summary import Summary


EXAMPLES = (
    "dynamo-sim run scenarios/quickstart.yaml",
    "dynamo-sim run scenarios/quickstart.yaml --set fleet.workers=5 --out results/five",
    "dynamo-sim run scenarios/hpa_flash_crowd.yaml --no-save --html page.html",
    "dynamo-sim run scenarios/quickstart.yaml --no-save --quiet --fail-on 'within_sla<0.99'",
    "dynamo-sim run scenarios/quickstart.yaml --no-save --json | python3 -m json.tool",
)


def add_parser(subparsers: Any) -> None:
    """Add the subcommand."""
    parser = subparsers.add_parser(
        "run",
        help="run a scenario",
        description="Run a scenario: print its table and write its results.",
        examples=EXAMPLES,
    )
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
    add_conditions(parser, "the summary")
    parser.set_defaults(handler=handle)


def handle(arguments: argparse.Namespace) -> int:
    """Load, run, save, print; nothing is saved of a run that fails."""
    from dynamo_sim.cli.conditions import conditions_on, failures
    from dynamo_sim.cli.json_text import finite
    from dynamo_sim.cli.loading import load
    from dynamo_sim.cli.results_folder import usable_folder
    from dynamo_sim.cli.running import run_for_command
    from dynamo_sim.files.output import check_file_of_option
    from dynamo_sim.report.saving import is_result
    from dynamo_sim.report.unserved import all_rejected
    from dynamo_sim.scenario.effects import notes

    scenario = load(arguments.scenario, arguments.overrides)
    if arguments.no_plots:
        scenario = scenario.with_(**{"report.plots": False})
    conditions = conditions_on([scenario.sla], arguments.fail_on)
    folder = None
    if not arguments.no_save:
        folder = usable_folder(arguments.out, scenario.name)
    replaced = folder is not None and is_result(folder)
    if arguments.html is not None:
        check_file_of_option("--html", arguments.html, ".html", ".htm")
    started = time.perf_counter()
    result = run_for_command(scenario, arguments.scenario, scenario.name, arguments.quiet)
    summary = result.summary.with_wall_time((time.perf_counter() - started) * 1000.0)
    signals.check()
    _write(result, folder, arguments.html)
    if arguments.json:
        print(json.dumps(finite(summary), indent=2, allow_nan=False))
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
        return FAILED
    failed = failures(conditions, summary)
    for failure in failed:
        print_error(f"--fail-on {failure}")
    return CONDITION_HOLDS if failed else DONE


def _write(result: RunResult, folder: Path | None, page: Path | None) -> None:
    """Write the page and the results; both are put in place together, once both are complete."""
    from dynamo_sim.files.drafts import Drafts
    from dynamo_sim.files.output import naming_option
    from dynamo_sim.report.saving import save_result

    with Drafts() as drafts:
        if page is not None:
            from dynamo_sim.report.html import page as html

            with naming_option("--html", page):
                drafts.file(page).write_text(html(result), encoding="utf-8")
        if folder is not None:
            try:
                save_result(result, folder, drafts=drafts)
            except OSError as error:  # about the folder, not about the draft of it that was being written
                raise OutputError(f"{folder}: {error.strerror or error}") from error


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
    if line := result.breakdown_line:
        print(line)
    if line := result.fleet_line:
        print(line)
    for note in notes(result.scenario):
        print(f"Note: {note}")
    for warning in result.warnings:
        print(f"Warning: {warning}")
