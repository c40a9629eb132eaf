"""The command line: finds the subcommand, runs it, and turns errors into one message and an exit code.

0 = done, 1 = the run could not go on, no request could be served, or output could not be written, 2 = bad input,
3 = a condition of --fail-on holds, 128 + N = ended by signal N (130: Ctrl-C, 129: hung up, 143: terminated).
"""

from __future__ import annotations

import argparse
import importlib
import io
import os
import sys
from collections.abc import Sequence
from typing import NoReturn

from dynamo_sim import signals
from dynamo_sim.text import print_error

COMMANDS = {
    "run": "dynamo_sim.cli.run",
    "compare": "dynamo_sim.cli.compare",
    "validate": "dynamo_sim.cli.validate",
    "schema": "dynamo_sim.cli.schema",
    "trace": "dynamo_sim.cli.trace",
    "timing": "dynamo_sim.cli.timing",
}
"""Subcommands in the order of the help, each with the module whose `add_parser` brings it."""

DONE, FAILED, BAD_INPUT, ENDED = 0, 1, 2, 128


class _Parser(argparse.ArgumentParser):
    """Reports wrong arguments in one line."""

    def error(self, message: str) -> NoReturn:
        print_error(f"{self.prog}: {message}; see {self.prog} --help")
        sys.exit(BAD_INPUT)


def build_parser() -> argparse.ArgumentParser:
    """The parser with all subcommands; a subcommand's `handler` gets the arguments and returns the code."""
    parser = _Parser(prog="dynamo-sim", description="Simulate a fleet of LLM inference workers.")
    parser.add_argument("--version", action="version", version=f"dynamo-sim {_version()}")
    subparsers = parser.add_subparsers(title="commands", dest="command", metavar="COMMAND", required=True)
    for module in COMMANDS.values():
        importlib.import_module(module).add_parser(subparsers)
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command line, by default the process's own, and return its exit code."""
    _open_missing_streams()
    _print_whatever_the_encoding()
    from dynamo_sim.errors import DynamoSimError, OutputError, SimulationError

    with signals.heeding_signals():
        try:
            code = _run(argv)
            sys.stdout.flush()
            return code
        except SimulationError as error:
            print_error(f"the run cannot go on: {error}")
            return FAILED
        except OutputError as error:
            print_error(error)
            return FAILED
        except DynamoSimError as error:
            print_error(error)
            return BAD_INPUT
        except KeyboardInterrupt as error:
            ended = error if isinstance(error, signals.Ended) else signals.Ended()
            print_error(ended)
            return ENDED + ended.number
        except MemoryError:
            print_error("out of memory: the run, or a file it reads, is too large for this machine")
            return FAILED
        except BrokenPipeError:  # the reader of our output has gone
            _drop_pending_output()
            return FAILED
        except OSError as error:
            print_error(f"{error.filename or 'output'}: {error.strerror or error}")
            _drop_pending_output()
            return FAILED


def _run(argv: Sequence[str] | None) -> int:
    try:
        arguments = build_parser().parse_args(argv)
    except SystemExit as ended:  # argparse has printed its help, the version or an error
        return int(ended.code or 0)
    try:
        code: int = arguments.handler(arguments)
    finally:
        signals.check()
    return code


def _print_whatever_the_encoding() -> None:
    """Letters that standard output has no code for are printed as ``\\N``; it is no reason to fail."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")


def _open_missing_streams() -> None:
    """Python has no standard output or error where the shell closed it (``>&-``): nobody wants to read it."""
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115


def _drop_pending_output() -> None:
    """Forget what standard output cannot take; Python would complain when it flushes at exit."""
    try:
        sys.stdout.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _version() -> str:
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version("dynamo-sim")
    except PackageNotFoundError:
        return "(not installed)"


if __name__ == "__main__":
    sys.exit(main())
