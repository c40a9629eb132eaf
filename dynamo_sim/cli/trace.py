"""`dynamo-sim trace FILE`: what is in a trace, in words, as JSON, or as a picture."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from dynamo_sim.cli.arguments import given_path, given_text
from dynamo_sim.cli.completion import completed_by, trace_formats
from dynamo_sim.cli.exit_codes import DONE
from dynamo_sim.text import counted

if TYPE_CHECKING:
    from dynamo_sim.report.trace_facts import TraceFacts

TIME_UNITS = ("s", "ms", "us", "ns", "datetime")
PERCENTILES = (50, 90, 99)
LISTED_BAD_LINES = 5


EXAMPLES = (
    "dynamo-sim trace scenarios/data/chat_trace.jsonl",
    "dynamo-sim trace scenarios/data/chat_trace.jsonl --engine-block-size 64 --png trace.png",
    "dynamo-sim trace scenarios/data/chat_trace.jsonl --format mooncake --json",
)


def add_parser(subparsers: Any) -> None:
    """Add the subcommand."""
    parser = subparsers.add_parser(
        "trace",
        help="describe a trace file",
        description="Say what is in a trace: requests, rates, lengths, how much of the prompts repeats.",
        examples=EXAMPLES,
    )
    parser.add_argument(
        "files",
        nargs="+",
        metavar="FILE",
        type=given_text,
        help="trace file; several where the format allows it",
    )
    named = parser.add_argument(
        "--format", metavar="F", help="format of the trace (default: recognised by its rows)"
    )
    completed_by(named, trace_formats)
    parser.add_argument(
        "--block-size",
        type=int,
        metavar="N",
        help="prompt tokens per id (default: 512, or what the records say)",
    )
    parser.add_argument(
        "--engine-block-size",
        type=int,
        metavar="N",
        help="tokens per cache block, for the share of prompts that repeats (default: the same)",
    )
    parser.add_argument(
        "--time-unit",
        choices=TIME_UNITS,
        metavar="U",
        help=f"unit of the arrivals of a table: {', '.join(TIME_UNITS)}",
    )
    parser.add_argument(
        "--column",
        action="append",
        default=[],
        metavar="PART=NAME",
        help="column of a table, such as arrival=when; may be repeated",
    )
    parser.add_argument("--skip-bad-lines", action="store_true", help="count bad lines and go on")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument(
        "--png", metavar="OUT", type=given_path, help="also draw arrivals and lengths into this file"
    )
    parser.set_defaults(handler=handle)


def handle(arguments: argparse.Namespace) -> int:
    """Print the facts about a trace;"""
    from dynamo_sim.errors import ScenarioError
    from dynamo_sim.report.trace_facts import inspect_trace

    for name in ("block_size", "engine_block_size"):
        value = getattr(arguments, name)
        if value is not None and value < 1:
            raise ScenarioError(f"--{name.replace('_', '-')}: found {value}; must be at least 1")
    if arguments.format is not None:
        _check_format(arguments.format)
    if arguments.png is not None:
        from dynamo_sim.files.output import check_picture_of_option

        check_picture_of_option("--png", arguments.png)
    files = arguments.files
    facts = inspect_trace(
        files[0] if len(files) == 1 else files,
        arguments.format,
        arguments.block_size,
        arguments.engine_block_size,
        arguments.skip_bad_lines,
        _columns(arguments.column),
        arguments.time_unit,
    )
    if arguments.json:
        print(json.dumps(as_dict(facts), indent=2))
    else:
        for name, value in describe(facts, guessed=arguments.format is None):
            print(f"{name:<22}{value}")
    for skip in facts.skipped[:LISTED_BAD_LINES]:
        print(f"skipped {skip.file}:{skip.line}: {skip.reason}", file=sys.stderr)
    if len(facts.skipped) > LISTED_BAD_LINES:
        print(f"and {len(facts.skipped) - LISTED_BAD_LINES} more", file=sys.stderr)
    if arguments.png is not None:
        from dynamo_sim.files.output import save_figure
        from dynamo_sim.report.plots.trace import trace_figure

        save_figure(trace_figure(facts), "--png", arguments.png, dpi=130)
        print(f"Picture: {arguments.png}", file=sys.stderr if arguments.json else sys.stdout)
    return DONE


def _columns(texts: Sequence[str]) -> dict[str, str]:
    """The columns that ``--column`` names, by what stands in them."""
    from dynamo_sim.errors import ScenarioError
    from dynamo_sim.scenario.suggestions import did_you_mean, listed
    from dynamo_sim.traces.table import KNOWN_NAMES

    columns = {}
    for text in texts:
        part, equals, name = text.partition("=")
        if not equals or not name:
            raise ScenarioError(f"--column: found {text!r}; must be PART=NAME, such as arrival=when")
        if part not in KNOWN_NAMES:
            raise ScenarioError(
                f"--column: found {part!r}; must be one of {listed(KNOWN_NAMES)}{did_you_mean(part, KNOWN_NAMES)}"
            )
        columns[part] = name
    return columns


def _check_format(name: str) -> None:
    from dynamo_sim.errors import ScenarioError
    from dynamo_sim.scenario.suggestions import did_you_mean, listed
    from dynamo_sim.traces.formats import BY_NAME, FORMATS

    if name not in BY_NAME:
        names = [each.name for each in FORMATS]
        raise ScenarioError(
            f"--format: found {name!r}; must be one of {listed(names)}{did_you_mean(name, names)}"
        )


def describe(facts: TraceFacts, guessed: bool = False) -> Iterator[tuple[str, str]]:
    """The facts as pairs of a name and a text with units."""
    import numpy as np

    yield "format", facts.format + (" (recognised by its rows)" if guessed else "")
    if facts.says_what_is_shared:
        yield "tokens per id", f"{facts.block_tokens:,}"
    yield (
        "requests",
        f"{facts.rows:,}"
        + (f" ({counted(len(facts.skipped), 'bad line')} skipped)" if facts.skipped else ""),
    )
    many = facts.turns.max() > 1
    if many or facts.is_workflow:
        yield "sessions", f"{len(facts.turns):,}"
        yield "turns per session", f"mean {facts.turns.mean():.2f}, max {facts.turns.max():,}"
    what = "of requests that wait for nothing" if facts.is_workflow else "of first turns" if many else ""
    if not len(facts.arrivals_ms):
        yield "arrivals", "none in the trace: needs a closed loop (concurrency)"
    else:
        if what:
            yield "known arrivals", f"{len(facts.arrivals_ms):,} {what}"
        yield "span", f"{facts.span_ms / 1000.0:,.3f} s"
        if facts.mean_rate_rps is not None:
            yield (
                "arrival rate",
                f"mean {facts.mean_rate_rps:.4g}/s, peak {facts.peak_rate_rps:.4g}/s over 10 s",
            )
    for name, lengths in (("prompt tokens", facts.input_tokens), ("output tokens", facts.output_tokens)):
        marks = np.percentile(lengths, PERCENTILES)
        parts = [f"mean {lengths.mean():,.2f}"]
        parts += [f"p{p} {mark:,.0f}" for p, mark in zip(PERCENTILES, marks, strict=True)]
        yield name, ", ".join([*parts, f"min {lengths.min():,}", f"max {lengths.max():,}"])
    if not facts.says_what_is_shared:
        yield "shared prompts", "none: no column says which prompts begin alike"
        return
    reuse = facts.reuse
    if facts.format != "mooncake-delta":
        yield "ids seen before", f"{reuse.id_share:.4f} of {reuse.ids:,}, as leading runs, in file order"
    yield (
        "full blocks seen",
        f"{reuse.block_share:.4f} of {reuse.blocks:,} blocks of {reuse.block_tokens} tokens "
        f"({reuse.token_share:.4f} of all prompt tokens): the most a cache can serve",
    )


def as_dict(facts: TraceFacts) -> dict[str, Any]:
    """The facts as plain JSON values; names carry units."""
    import numpy as np

    def lengths(values: Any) -> dict[str, float]:
        marks = np.percentile(values, PERCENTILES)
        found = {"mean": float(values.mean()), "min": int(values.min()), "max": int(values.max())}
        return {**found, **{f"p{p}": float(mark) for p, mark in zip(PERCENTILES, marks, strict=True)}}

    return {
        "file": facts.file,
        "format": facts.format,
        "trace_block_size": facts.block_tokens,
        "requests": facts.rows,
        "sessions": len(facts.turns),
        "max_turns": int(facts.turns.max()),
        "known_arrivals": len(facts.arrivals_ms),
        "span_ms": facts.span_ms,
        "mean_rate_rps": facts.mean_rate_rps,
        "peak_rate_rps": facts.peak_rate_rps,
        "input_tokens": lengths(facts.input_tokens),
        "output_tokens": lengths(facts.output_tokens),
        "seen_id_share": facts.reuse.id_share,
        "engine_block_size": facts.reuse.block_tokens,
        "seen_block_share": facts.reuse.block_share,
        "seen_token_share": facts.reuse.token_share,
        "skipped_lines": [{"file": s.file, "line": s.line, "reason": s.reason} for s in facts.skipped],
    }
