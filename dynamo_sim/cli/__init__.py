"""The command line: finds the subcommand, runs it, and turns errors into one message and an exit code."""

from __future__ import annotations

import argparse
import importlib
import io
import os
import sys
from collections.abc import Sequence

from dynamo_sim import signals
from dynamo_sim.cli.completion import offer_completions
from dynamo_sim.cli.exit_codes import BAD_INPUT, DONE, FAILED, SIGNAL
from dynamo_sim.cli.parser import Parser
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

EXAMPLES = (
    "dynamo-sim run scenarios/quickstart.yaml",
    "dynamo-sim run scenarios/quickstart.yaml --set fleet.workers=5 --html page.html",
    "dynamo-sim compare scenarios/quickstart.yaml --vary fleet.workers=4,5,6",
)

CLOSING = """\
dynamo-sim COMMAND --help says more of a command. Scenario files are explained in docs/scenario.md,
results in docs/results.md; scenarios/ has some to begin with."""


def build_parser() -> Parser:
    """The parser with all subcommands; a subcommand's `handler` gets the arguments and returns the code."""
    parser = Parser(
        prog="dynamo-sim",
        description="Simulate a fleet of LLM inference workers.",
        examples=EXAMPLES,
        closing=CLOSING,
    )
    parser.add_argument("--version", action=_Version, nargs=0, help="show program's version number and exit")
    subparsers = parser.add_subparsers(title="commands", dest="command", metavar="COMMAND")
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
            return SIGNAL + ended.number
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
    parser = build_parser()
    offer_completions(parser)
    try:
        arguments = parser.parse_args(argv)
    except SystemExit as ended:  # argparse has printed its help, the version or an error
        return int(ended.code or 0)
    if arguments.command is None:
        parser.print_help()
        return DONE
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


class _Version(argparse.Action):
    """Prints the version, which takes longer to find out than most commands take to start."""

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> None:
        from importlib.metadata import PackageNotFoundError, version

        try:
            found = version("dynamo-sim")
        except PackageNotFoundError:
            found = "(not installed)"
        print(f"dynamo-sim {found}")
        parser.exit()


if __name__ == "__main__":
    sys.exit(main())
