"""Completion with the Tab key, where argcomplete is installed and registered with the shell (docs/scenario.md).

The shell then starts the program with ``_ARGCOMPLETE`` set, and is given what fits the word before the cursor.
"""

from __future__ import annotations

import os
from argparse import Action, ArgumentParser
from collections.abc import Callable, Iterator
from typing import Any


def offer_completions(parser: ArgumentParser) -> None:
    """Answer the shell and end the program if it asks for completions; do nothing otherwise."""
    if "_ARGCOMPLETE" in os.environ:
        import argcomplete

        argcomplete.autocomplete(parser)


def completed_by(action: Action, values: Callable[[], Iterator[str]]) -> None:
    """Let an argument be completed by one of ``values``, which are made when they are asked for."""

    def completer(**_: Any) -> list[str]:
        return list(values())

    action.completer = completer  # type: ignore[attr-defined]


def keys_with_equals() -> Iterator[str]:
    """Every dotted key of a scenario that can be set, ``fleet.workers=``; items of lists are set as a whole."""
    from dynamo_sim.scenario.specs import Scenario
    from dynamo_sim.scenario.suggestions import key_paths

    yield from sorted({f"{'.'.join(map(str, path))}=" for path in key_paths(Scenario)})


def trace_formats() -> Iterator[str]:
    """The names of all trace formats."""
    from dynamo_sim.traces.formats import FORMATS

    return (each.name for each in FORMATS)
