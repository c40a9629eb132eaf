"""`dynamo-sim validate FILE...`: check scenarios without running them."""

from __future__ import annotations

import argparse
import sys
from typing import Any


def add_parser(subparsers: Any) -> None:
    """Add the subcommand."""
    parser = subparsers.add_parser("validate", help="check scenario files", description=__doc__)
    parser.add_argument("files", nargs="+", metavar="FILE", help="scenario file (YAML)")
    parser.add_argument("--quiet", action="store_true", help="say nothing about good files")
    parser.set_defaults(handler=handle)


def handle(arguments: argparse.Namespace) -> int:
    """Check every file, also after a bad one; 2 if any is bad."""
    from dynamo_sim.commands.loading import load_and_build
    from dynamo_sim.errors import ScenarioError
    from dynamo_sim.scenario.checks import notes

    bad = False
    for file in arguments.files:
        try:
            scenario, warnings = load_and_build(file)
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
