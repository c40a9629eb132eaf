"""The errors a user can cause or meet; everything else that escapes is a bug.

The command line turns them into one message and an exit code: bad input (`ScenarioError`, `TraceError`) is 2,
a run that cannot go on (`SimulationError`) and output that cannot be written (`OutputError`) are 1.
"""

from __future__ import annotations

from pathlib import Path

from dynamo_sim.text import printable


class DynamoSimError(Exception):
    """Base of all errors with a message written for the user."""


class ScenarioError(DynamoSimError):
    """A scenario is malformed, or asks for something impossible.

    `problems` holds one line for each thing that is wrong; the text of the error is all of them, one a line.
    """

    def __init__(self, *problems: str) -> None:
        self.problems: tuple[str, ...] = tuple(printable(problem) for problem in problems)
        super().__init__("\n".join(self.problems))


class TraceError(DynamoSimError):
    """A trace file cannot be read, or one of its lines is wrong.

    `line` counts from 1 and includes blank lines (spec 08, 3); None when the fault is in no single line.
    """

    def __init__(self, message: str, file: str | Path | None = None, line: int | None = None) -> None:
        self.message = message
        self.file = None if file is None else str(file)
        self.line = line
        place = self.file or ""
        if line is not None:
            place = f"{place}:{line}" if place else f"line {line}"
        super().__init__(printable(f"{place}: {message}" if place else message))


class SimulationError(DynamoSimError):
    """A run that cannot go on; the text names the request or worker, the limit it met and the remedy."""


class OutputError(DynamoSimError):
    """What a command made cannot be written; the text names the file or folder."""
