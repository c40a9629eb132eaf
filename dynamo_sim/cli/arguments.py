"""Arguments that several commands have, and their types."""

from __future__ import annotations

from argparse import ArgumentParser, ArgumentTypeError
from pathlib import Path

from dynamo_sim.cli.completion import completed_by, keys_with_equals


def given_path(text: str) -> Path:
    """A path; an empty text, as an unset variable of a shell gives, would mean the current folder.

    Raises:
        ArgumentTypeError: there is nothing.
    """
    return Path(given_text(text))


def given_text(text: str) -> str:
    """The text of a path, as it was written.

    Raises:
        ArgumentTypeError: there is nothing.
    """
    if not text.strip():
        raise ArgumentTypeError("found an empty text; must be a path")
    return text


def add_overrides(parser: ArgumentParser, help_text: str) -> None:
    """Give a command the option ``--set KEY=VALUE``, which may be repeated; ``overrides`` gets the texts."""
    action = parser.add_argument(
        "--set", dest="overrides", metavar="KEY=VALUE", action="append", default=[], help=help_text
    )
    completed_by(action, keys_with_equals)


def add_conditions(parser: ArgumentParser, of: str) -> None:
    """Give a command the option ``--fail-on CONDITION``, which may be repeated; ``fail_on`` gets the texts."""
    parser.add_argument(
        "--fail-on",
        action="append",
        default=[],
        metavar="CONDITION",
        type=given_text,
        help=f"end with exit code 3 if a figure of {of} fulfils this, as 'within_sla<0.99'; may be repeated",
    )
