"""`dynamo-sim schema`: the JSON Schema of scenario files, for editors."""

from __future__ import annotations

import argparse
import sys
from typing import Any

from dynamo_sim.cli.arguments import given_path
from dynamo_sim.cli.exit_codes import DONE

EXAMPLES = ("dynamo-sim schema", "dynamo-sim schema --out schema.json")


def add_parser(subparsers: Any) -> None:
    """Add the subcommand."""
    parser = subparsers.add_parser(
        "schema",
        help="print the JSON Schema of scenarios",
        description="Print the JSON Schema of scenario files, with which editors complete and check keys.",
        examples=EXAMPLES,
    )
    parser.add_argument("--out", metavar="FILE", type=given_path, help="write it to a file instead")
    parser.set_defaults(handler=handle)


def handle(arguments: argparse.Namespace) -> int:
    """Print or write the schema."""
    from dynamo_sim.files.output import check_file_of_option, file_of_option
    from dynamo_sim.scenario.schema import scenario_schema_text

    text = scenario_schema_text()
    if arguments.out is None:
        sys.stdout.write(text)
    else:
        check_file_of_option("--out", arguments.out, ".json")
        with file_of_option("--out", arguments.out) as draft:
            draft.write_text(text, encoding="utf-8")
    return DONE
