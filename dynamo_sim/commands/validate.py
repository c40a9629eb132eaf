"""`dynamo-sim validate FILE...`: check scenarios without running them."""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dynamo_sim.scenario import Scenario


def add_parser(subparsers: Any) -> None:
    """Add the subcommand."""
    parser = subparsers.add_parser("validate", help="check scenario files", description=__doc__)
    parser.add_argument("files", nargs="+", metavar="FILE", help="scenario file (YAML)")
    parser.add_argument("--quiet", action="store_true", help="say nothing about good files")
    parser.set_defaults(handler=handle)


def handle(arguments: argparse.Namespace) -> int:
    """Check every file, also after a bad one; 2 if any is bad."""
    from dynamo_sim.errors import ScenarioError
    from dynamo_sim.scenario import load_scenario
    from dynamo_sim.scenario.checks import notes

    bad = False
    for file in arguments.files:
        try:
            scenario = load_scenario(file)
            warnings = _autoscaler_warnings(scenario, file)
        except ScenarioError as error:
            bad = True
            print(error, file=sys.stderr)
            continue
        if not arguments.quiet:
            print(f"{file}: ok")
            for note in notes(scenario):
                print(f"{file}: note: {note}")
            for warning in warnings:
                print(f"{file}: warning: {warning}")
    return 2 if bad else 0


def _autoscaler_warnings(scenario: Scenario, file: str) -> list[str]:
    """What there is to say about the scaling policy; it is built for that, its manifest read."""
    if scenario.autoscaler is None:
        return []
    from dynamo_sim.autoscaling.build import build_autoscaler
    from dynamo_sim.errors import ScenarioError

    try:
        return build_autoscaler(scenario.autoscaler, scenario).warnings
    except ScenarioError as error:
        raise ScenarioError(*(f"{file}: {problem}" for problem in error.problems)) from error
