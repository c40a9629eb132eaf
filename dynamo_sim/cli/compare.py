"""`dynamo-sim compare`: run variants of a scenario, or several scenarios, and put their figures side by side."""

from __future__ import annotations

import argparse
import json
import sys
from typing import TYPE_CHECKING, Any

from dynamo_sim.cli.arguments import add_conditions, add_overrides, given_text
from dynamo_sim.cli.completion import completed_by, keys_with_equals
from dynamo_sim.cli.exit_codes import CONDITION_HOLDS, DONE
from dynamo_sim.text import print_error

if TYPE_CHECKING:
    from dynamo_sim.cli.variants import Variant
    from dynamo_sim.report.result import RunResult

EXAMPLES = (
    "dynamo-sim compare scenarios/quickstart.yaml --vary fleet.workers=4,5,6",
    "dynamo-sim compare scenarios/flash_crowd.yaml --vary fleet.workers=4,6 --vary seed=1,2,3",
    "dynamo-sim compare scenarios/pitfalls/hpa-target-band.yaml scenarios/pitfalls/hpa-target-band-cured.yaml",
    "dynamo-sim compare scenarios/quickstart.yaml --vary fleet.workers=5,6 --fail-on 'within_sla<0.99'",
)


def add_parser(subparsers: Any) -> None:
    """Add the subcommand."""
    parser = subparsers.add_parser(
        "compare",
        help="run variants and put their figures side by side",
        description="Run variants of a scenario, or several scenarios, and put their figures side by side.",
        examples=EXAMPLES,
    )
    parser.add_argument(
        "scenarios", nargs="+", metavar="SCENARIO", type=given_text, help="scenario files (YAML)"
    )
    varied = parser.add_argument(
        "--vary",
        action="append",
        default=[],
        metavar="KEY=A,B,...",
        help="run every scenario with each of these values, as fleet.workers=4,6,8; with several, all combinations",
    )
    completed_by(varied, keys_with_equals)
    add_overrides(parser, "change one value for all")
    add_conditions(parser, "any run")
    parser.add_argument("--json", action="store_true", help="print the runs as JSON, and nothing else")
    parser.set_defaults(handler=handle)


def handle(arguments: argparse.Namespace) -> int:
    """Check every variant before the first one runs; what has been run is printed, also if another cannot be."""
    from dynamo_sim.cli.conditions import conditions_on, failures
    from dynamo_sim.cli.variants import refuse_equal_runs, variants

    chosen = list(variants(arguments.scenarios, arguments.overrides, arguments.vary))
    refuse_equal_runs(chosen)
    conditions = conditions_on([variant.scenario.sla for variant in chosen], arguments.fail_on)
    results: list[tuple[Variant, RunResult]] = []
    try:
        for number, variant in enumerate(chosen, start=1):
            results.append((variant, _run(variant, f"{number}/{len(chosen)}")))
    finally:
        if results:
            _show(results, of=len(chosen), as_json=arguments.json)
    failed = [
        f"--fail-on {failure} ({variant.label})"
        for variant, result in results
        for failure in failures(conditions, result.summary)
    ]
    for line in failed:
        print_error(line)
    return CONDITION_HOLDS if failed else DONE


def _run(variant: Variant, place: str) -> RunResult:
    from dynamo_sim.cli.running import run_for_command
    from dynamo_sim.errors import SimulationError

    try:
        return run_for_command(variant.scenario, variant.file, f"{variant.label} ({place})")
    except SimulationError as error:
        raise SimulationError(f"{variant.label}: {error}") from error


def _show(results: list[tuple[Variant, RunResult]], of: int, as_json: bool) -> None:
    """Print the runs, under which conditions their figures hold, and what there is to say about them."""
    from dynamo_sim.cli.compare_table import print_comparison
    from dynamo_sim.report.conditions import shared_condition_lines, unequal_pools_warning
    from dynamo_sim.scenario.effects import notes

    beside = sys.stderr if as_json else sys.stdout
    named = [(variant.label, result) for variant, result in results]
    if as_json:
        print(json.dumps([_as_dict(variant, result) for variant, result in results], indent=2))
    else:
        print_comparison(named)
        for line in shared_condition_lines([(label, result.scenario) for label, result in named]):
            print(line)
    for note in dict.fromkeys(note for _, result in named for note in notes(result.scenario)):
        print(f"Note: {note}", file=beside)
    if unequal := unequal_pools_warning([result.scenario for _, result in named]):
        print(f"Warning: {unequal}", file=beside)
    for label, result in named:
        for warning in result.warnings:
            print(f"Warning: {label}: {warning}", file=beside)
    if len(results) < of:
        print(f"Warning: only {len(results)} of {of} runs were done", file=beside)


def _as_dict(variant: Variant, result: RunResult) -> dict[str, Any]:
    from dynamo_sim.cli.compare_table import fleet_figures
    from dynamo_sim.cli.json_text import finite
    from dynamo_sim.report.conditions import conditions

    return {
        "variant": variant.label,
        "scenario": variant.file,
        "varied": variant.varied,
        "conditions": conditions(variant.scenario),
        "summary": finite({**result.summary, **fleet_figures(result)}),
        "warnings": list(result.warnings),
    }
