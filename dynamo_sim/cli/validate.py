"""`dynamo-sim validate FILE...`: check scenarios without running them."""

from __future__ import annotations

import argparse
from typing import Any

from dynamo_sim.cli.arguments import add_overrides, given_text
from dynamo_sim.cli.exit_codes import BAD_INPUT, DONE

EXAMPLES = (
    "dynamo-sim validate scenarios/*.yaml",
    "dynamo-sim validate scenarios/quickstart.yaml --set fleet.engine.engine_type=sglang",
)


def add_parser(subparsers: Any) -> None:
    """Add the subcommand."""
    parser = subparsers.add_parser(
        "validate",
        help="check scenario files",
        description="Check scenario files without running them, and name keys that change nothing.",
        examples=EXAMPLES,
    )
    parser.add_argument("files", nargs="+", metavar="FILE", type=given_text, help="scenario file (YAML)")
    add_overrides(parser, "change one value, as in `run`; may be repeated")
    parser.add_argument("--quiet", action="store_true", help="say nothing about good files")
    parser.set_defaults(handler=handle)


def handle(arguments: argparse.Namespace) -> int:
    """Check every file, also after a bad one; 2 if any is bad."""
    from dynamo_sim.cli.loading import load_and_build
    from dynamo_sim.errors import ScenarioError
    from dynamo_sim.scenario.effects import notes
    from dynamo_sim.text import print_error, printable

    bad = False
    for file in arguments.files:
        try:
            scenario, warnings = load_and_build(file, arguments.overrides)
        except ScenarioError as error:
            bad = True
            print_error(error)
            continue
        if not arguments.quiet:
            name = printable(file)
            print(f"{name}: ok")
            for note in notes(scenario):
                print(f"{name}: note: {note}")
            for warning in warnings:
                print(f"{name}: warning: {warning}")
    return BAD_INPUT if bad else DONE
