"""Completion: what the shell is offered for a word of the command line."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def offered(line: str) -> list[str]:
    """What argcomplete answers to a shell whose command line is ``line``, the cursor at its end."""
    environment = {
        **os.environ,
        "PYTHONPATH": str(ROOT),
        "_ARGCOMPLETE": "1",
        "_ARGCOMPLETE_IFS": "\n",
        "_ARGCOMPLETE_SUPPRESS_SPACE": "1",
        "COMP_LINE": line,
        "COMP_POINT": str(len(line)),
    }
    code = (
        "import os; os.dup2(1, 8); import sys; from dynamo_sim.cli import main; "
        "sys.argv[0] = 'dynamo-sim'; sys.exit(main())"
    )
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True)
    return done.stdout.split()


STEP_KEYS = ("at_ms", "decode", "prefill", "workers")


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("dynamo-sim com", ["compare"]),
        ("dynamo-sim run --no-", ["--no-save", "--no-plots"]),
        ("dynamo-sim trace --format moon", ["mooncake", "mooncake-delta"]),
        ("dynamo-sim run --set fleet.wor", ["fleet.workers="]),
        (
            "dynamo-sim compare --vary scaling.0.",
            [f"scaling.0.{key}=" for key in ("at_ms", "decode", "prefill", "workers")],
        ),
    ],
)
def test_commands_options_keys_and_formats_are_completed(line: str, words: list[str]) -> None:
    assert offered(line) == words
