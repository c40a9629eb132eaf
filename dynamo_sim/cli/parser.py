"""The parser of the command line: examples at the end of each help, one line for a wrong argument."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from difflib import get_close_matches
from typing import Any, NoReturn

from dynamo_sim.cli.exit_codes import BAD_INPUT
from dynamo_sim.text import print_error


class Parser(argparse.ArgumentParser):
    """Takes no abbreviations of options.

    Args:
        examples: command lines that work in a clone of the repository; the end of the help.
        closing: what the help says after them.
    """

    def __init__(self, *, examples: Sequence[str] = (), closing: str = "", **more: Any) -> None:
        lines = [*(["examples:"] if examples else []), *(f"  {line}" for line in examples)]
        more |= {
            "allow_abbrev": False,
            "formatter_class": argparse.RawDescriptionHelpFormatter,
            "epilog": "\n".join([*lines, *(["", closing] if closing else [])]) or None,
        }
        super().__init__(**more)

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> tuple[Any, list[str]]:
        """Refuse what this command does not know; argparse leaves that to the parser above."""
        namespace, unknown = super().parse_known_args(args, namespace)
        if unknown:
            options = [option.strip("-") for action in self._actions for option in action.option_strings]
            near = get_close_matches(unknown[0].strip("-").partition("=")[0], options, n=1, cutoff=0.7)
            meant = f"; did you mean --{near[0]}?" if near and unknown[0].startswith("-") else ""
            self.error(f"unrecognized arguments: {' '.join(unknown)}{meant}")
        return namespace, []

    def error(self, message: str) -> NoReturn:
        """Print one line and end with the exit code of bad input."""
        print_error(f"{self.prog}: {message}; see {self.prog} --help")
        sys.exit(BAD_INPUT)
