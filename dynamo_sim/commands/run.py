"""`dynamo-sim run SCENARIO`: run a scenario, print its table, write its results."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dynamo_sim.report.result import RunResult
    from dynamo_sim.scenario import Scenario


def add_parser(subparsers: Any) -> None:
    """Add the subcommand."""
    parser = subparsers.add_parser("run", help="run a scenario", description=__doc__)
    parser.add_argument("scenario", metavar="SCENARIO", help="scenario file (YAML)")
    parser.add_argument(
        "--set",
        dest="overrides",
        metavar="KEY=VALUE",
        action="append",
        default=[],
        help="change one value, as fleet.workers=8 or scaling.0.workers=3; may be repeated",
    )
    output = parser.add_mutually_exclusive_group()
    output.add_argument(
        "--out",
        metavar="DIR",
        type=Path,
        help="folder of the results (default: results/ and the scenario's name)",
    )
    output.add_argument("--no-save", action="store_true", help="write no files")
    parser.add_argument("--json", action="store_true", help="print the summary as JSON, and nothing else")
    parser.add_argument("--quiet", action="store_true", help="print only errors")
    parser.add_argument("--no-plots", action="store_true", help="draw no pictures")
    parser.set_defaults(handler=handle)


def handle(arguments: argparse.Namespace) -> int:
    """Load, run, save, print; nothing is saved of a run that fails."""
    from dynamo_sim.commands.result_folder import ResultFolder
    from dynamo_sim.scenario import load_scenario
    from dynamo_sim.scenario.checks import require_runnable

    scenario = load_scenario(arguments.scenario, arguments.overrides)
    require_runnable(scenario)
    if arguments.no_plots:
        scenario = scenario.with_(**{"report.plots": False})
    talkative = not (arguments.quiet or arguments.json)
    with ExitStack() as stack:
        folder = None
        if not arguments.no_save:
            folder = stack.enter_context(ResultFolder(arguments.out or Path("results") / scenario.name))
        result = _run(scenario, show_progress=not arguments.quiet and sys.stderr.isatty())
        if folder is not None:
            result.save(folder.work)
    if arguments.json:
        print(json.dumps(_plain(result.summary), indent=2, allow_nan=False))
    elif talkative:
        _print_table(scenario, result)
        if folder is not None:
            print(f"Results: {folder.target}")
    return 0


def _run(scenario: Scenario, show_progress: bool) -> RunResult:
    from dynamo_sim.simulation import run

    if not show_progress:
        return run(scenario)
    from dynamo_sim.commands.progress import RunProgress

    with RunProgress(scenario) as progress:
        return run(scenario, progress=progress.update)


def _print_table(scenario: Scenario, result: RunResult) -> None:
    from rich.console import Console

    from dynamo_sim.report.table import print_table
    from dynamo_sim.scenario.checks import notes

    print_table(result.summary, Console())
    for note in notes(scenario):
        print(f"Note: {note}")


def _plain(summary: Any) -> Any:
    return {key: summary[key] for key in summary} if isinstance(summary, Mapping) else summary.to_dict()
