"""Arguments that several commands have, and their types."""

from __future__ import annotations

from argparse import ArgumentParser, ArgumentTypeError
from pathlib import Path


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
    parser.add_argument(
        "--set", dest="overrides", metavar="KEY=VALUE", action="append", default=[], help=help_text
    )
