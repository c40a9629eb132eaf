"""`dynamo-sim timing FILE`: what is in a timing profile."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dynamo_sim.cli.arguments import given_path, given_text
from dynamo_sim.cli.exit_codes import DONE

if TYPE_CHECKING:
    from dynamo_sim.timing.profile_grid import Floats
    from dynamo_sim.timing.profile_source import Profile

WIDEST_LINE = 110
NOISE = 0.02
MANY = 1e15
MAX_DRAWN = 1e300
"""Axes leave a margin around their values, and need differences of them."""


EXAMPLES = (
    "dynamo-sim timing scenarios/data/example_profile.npz",
    "dynamo-sim timing scenarios/data/example_profile.npz --png profile.png --save profile.npz",
)


def add_parser(subparsers: Any) -> None:
    """Add the subcommand."""
    parser = subparsers.add_parser(
        "timing",
        help="show a timing profile",
        description="Show the measured pass durations of a profile: axes, ranges, values.",
        examples=EXAMPLES,
    )
    parser.add_argument(
        "profile",
        metavar="FILE",
        type=given_text,
        help="npz file of a profile, file of a profiler, or a profiler's result folder",
    )
    parser.add_argument("--tp", metavar="N", type=int, help="tensor-parallel size, where FILE holds several")
    parser.add_argument(
        "--png", metavar="OUT", type=given_path, help="draw the profile with its measured points"
    )
    parser.add_argument(
        "--save", metavar="OUT", type=given_path, help="write it as an npz file for planner_profile_data"
    )
    parser.set_defaults(handler=handle)


def handle(arguments: argparse.Namespace) -> int:
    """Load, print, draw, convert.

    Raises:
        ScenarioError: FILE holds no usable profile.
    """
    from dynamo_sim.files.output import check_file_of_option, check_picture_of_option
    from dynamo_sim.text import printable
    from dynamo_sim.timing.profile_source import load_profile

    if arguments.png is not None:
        check_picture_of_option("--png", arguments.png)
    if arguments.save is not None:
        check_file_of_option("--save", arguments.save, ".npz")
    profile = load_profile(arguments.profile, arguments.tp)
    for line in describe(profile):
        print(printable(line))
    if arguments.png is not None:
        import numpy as np

        from dynamo_sim.errors import ScenarioError
        from dynamo_sim.files.output import save_figure
        from dynamo_sim.report.plots.timing import profile_figure
        from dynamo_sim.timing.profile_grid import ARRAYS

        if max(np.abs(getattr(profile.grid, name)).max() for name in ARRAYS) > MAX_DRAWN:
            raise ScenarioError(f"--png: the profile has values above {MAX_DRAWN:g}, which cannot be drawn")
        figure = profile_figure(profile, printable(_title(arguments.profile, profile)))
        save_figure(figure, "--png", arguments.png, dpi=110)
        print(printable(f"Picture: {arguments.png}"))
    if arguments.save is not None:
        from dynamo_sim.files.output import file_of_option

        with file_of_option("--save", arguments.save) as draft:
            profile.grid.save(draft)
        print(printable(f"Profile: {arguments.save}"))
    return DONE


def describe(profile: Profile) -> Iterator[str]:
    """The lines to print: origin, ranges, oddities, values."""
    grid = profile.grid
    facts = [("read from", str(file)) for file in profile.files]
    facts += profile.labels.items()
    active, context = grid.decode_active_kv_tokens, grid.decode_context_length
    measured = len(profile.decode_points)
    values = f"{_ms_range(profile.decode_points[:, 2])} measured"
    if measured < grid.decode_itl.size:
        values += f" at {measured} points; the other {grid.decode_itl.size - measured:,} cells are filled in"
    facts += [
        ("prefill", f"{len(grid.prefill_isl)} points, {_range(grid.prefill_isl)} prompt tokens"),
        ("", _ms_range(grid.prefill_ttft_ms)),
        ("decode", f"{len(active)} x {len(context)} grid, {_range(active)} KV tokens in use"),
        ("", f"{_range(context)} tokens of mean context"),
        ("", values),
        *(("note", oddity) for oddity in oddities(profile)),
    ]
    for name, value in facts:
        yield f"{name:<18} {value}"
    yield ""
    yield from _prefill_table(grid.prefill_isl, grid.prefill_ttft_ms)
    yield ""
    yield from _decode_table(profile)


def oddities(profile: Profile) -> Iterator[str]:
    """What a person should know before believing the numbers."""
    grid = profile.grid
    for at in _falls(grid.prefill_ttft_ms):
        less, more = grid.prefill_isl[at], grid.prefill_isl[at + 1]
        yield f"prefill takes less with {_number(more, 0)} prompt tokens than with {_number(less, 0)}"
    points = profile.decode_points
    for context in grid.decode_context_length.tolist():
        mine = points[points[:, 1] == context]
        mine = mine[mine[:, 0].argsort()]
        for at in _falls(mine[:, 2]):
            yield (
                f"decode at context {_number(context, 0)} takes less with {_number(mine[at + 1, 0], 0)} tokens in use "
                f"({_ms(mine[at + 1, 2])} ms) than with {_number(mine[at, 0], 0)} ({_ms(mine[at, 2])} ms)"
            )
    yield from grid.floors()


def _falls(values: Floats) -> list[int]:
    """Where a value is followed by one that is lower by more than measuring it again would be."""
    return [at for at in range(len(values) - 1) if values[at + 1] < (1.0 - NOISE) * values[at]]


def _prefill_table(isl: Floats, ttft_ms: Floats) -> Iterator[str]:
    yield f"{'prompt tokens':>15} {'prefill ms':>12}"
    for tokens, duration in zip(isl, ttft_ms, strict=True):
        yield f"{_number(tokens, 0):>15} {_number(duration, 3, ''):>12}"


def _decode_table(profile: Profile) -> Iterator[str]:
    """Decode times, in several tables when there are many context lengths; * marks filled-in cells."""
    grid = profile.grid
    context, active = grid.decode_context_length, grid.decode_active_kv_tokens
    measured = {(row[0], row[1]) for row in profile.decode_points.tolist()}
    width = max(9, max(len(_ms(value)) for value in grid.decode_itl.ravel()) + 2)
    tables = -(-len(context) // max(1, (WIDEST_LINE - 16) // width))
    at_once = -(-len(context) // tables)
    filled_in = len(measured) < grid.decode_itl.size
    yield "decode ms, by KV tokens in use (rows) and mean context (columns)" + (
        "; * filled in" if filled_in else ""
    )
    for first in range(0, len(context), at_once):
        columns = range(first, min(first + at_once, len(context)))
        if first:
            yield ""
        yield (
            f"{'':>15} " + "".join(f"{_number(context[column], 0):>{width - 1}} " for column in columns)
        ).rstrip()
        for row, tokens in enumerate(active.tolist()):
            cells = (
                f"{_ms(grid.decode_itl[row, column]):>{width - 1}}"
                + (" " if (tokens, float(context[column])) in measured else "*")
                for column in columns
            )
            yield (f"{_number(tokens, 0):>15} " + "".join(cells)).rstrip()


def _ms(value: float) -> str:
    return f"{value:.2f}" if abs(value) < 1000 else _number(value, 0)


def _number(value: float, decimals: int, thousands: str = ",") -> str:
    """With a power of ten where it has very many digits."""
    return f"{value:{thousands}.{decimals}f}" if abs(value) < MANY else f"{value:.3e}"


def _range(values: Floats) -> str:
    return f"{_number(values[0], 0)} to {_number(values[-1], 0)}"


def _ms_range(values: Floats) -> str:
    return f"{_number(values.min(), 3)} to {_number(values.max(), 3)} ms"


def _title(given: str, profile: Profile) -> str:
    labels = profile.labels
    names = [labels[name] for name in ("model", "gpu_type", "gpu") if name in labels]
    return ", ".join(names) or Path(given).name
