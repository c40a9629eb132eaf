"""The printed table (after `spec 09, 8`), and what is printed below it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from rich.console import Console

from dynamo_sim.report.tier_figures import tier_lines

TITLE = "dynamo_sim | simulated LLM metrics"

COLUMNS = {
    "avg": "mean",
    "min": "min",
    "max": "max",
    "p50": "median",
    "p90": "p90",
    "p95": "p95",
    "p99": "p99",
    "std": "std",
}
"""Column head, and the statistic it shows."""

SHORT_COLUMNS = {head: name for head, name in COLUMNS.items() if head != "std"}
"""The columns that fit a terminal of 80 letters."""

SPREADS = {
    "Time to First Token (ms)": "ttft_ms",
    "Time to Second Token (ms)": "ttst_ms",
    "Request Latency (ms)": "e2e_latency_ms",
    "Inter Token Latency (ms)": "itl_ms",
    "Output Token Throughput Per User (tokens/sec/user)": "output_token_throughput_per_user",
    "Input Sequence Length (tokens)": "input_tokens",
    "Output Sequence Length (tokens)": "output_tokens",
}
"""Row label, and the distribution it shows."""

TOTALS = {
    "Output Token Throughput (tokens/sec)": "output_throughput_tok_s",
    "Request Throughput (requests/sec)": "request_throughput_rps",
    "Request Count (requests)": "completed_requests",
}
"""Row label, and the field it shows in its first column."""

FOOTER = {
    "Wall Time (ms)": "wall_time_ms",
    "Prefix Cache Reused Ratio": "prefix_cache_reused_ratio",
    "First Admission Prefix Cache Reused Ratio": "first_admission_prefix_cache_reused_ratio",
}
"""Line below the table, and the field it shows when there is one."""

FOUND_AT = {
    "prefix_cache_reused_ratio": "best",
    "first_admission_prefix_cache_reused_ratio": "first",
}
"""Which admission of a request the two ratios of the cache are about."""

NOT_SERVED = {
    "rejected": "rejected_requests",
    "failed": "failed_requests",
    "unfinished": "unfinished_requests",
}
"""What became of requests that were not completed, and the field that counts them."""

SHORT_LABELS = {
    "ttft_ms": "TTFT (ms)",
    "ttst_ms": "TTST (ms)",
    "e2e_latency_ms": "Latency (ms)",
    "itl_ms": "ITL (ms)",
    "output_token_throughput_per_user": "Tokens/s/user",
    "input_tokens": "Input tokens",
    "output_tokens": "Output tokens",
    "output_throughput_tok_s": "Tokens/s",
    "request_throughput_rps": "Requests/s",
    "completed_requests": "Requests",
}
"""Row labels for screens that the table does not fit."""

IN_ASCII = str.maketrans("┏┳┓┡╇┩└┴┘━┃", "+++++++++-|")
"""The lines of the box, for output whose encoding has none."""

MANY = 1e15
"""Numbers from here on are written with a power of ten."""


def table_rows(summary: Mapping[str, float]) -> list[list[str]]:
    """The cells of the table without its head: a label, then one text for each of `COLUMNS`."""
    rows = []
    for label, name in SPREADS.items():
        if f"mean_{name}" in summary:
            cells = (_number(summary.get(f"{statistic}_{name}")) for statistic in COLUMNS.values())
            rows.append([label, *cells])
    for label, name in TOTALS.items():
        rows.append([label, _number(summary.get(name)), *[_number(None)] * (len(COLUMNS) - 1)])
    return rows


def footer_lines(summary: Mapping[str, float]) -> list[str]:
    """The lines below the table; the wall time only where it is known."""
    return [f"{label}: {_number(summary[name])}" for label, name in FOOTER.items() if name in summary]


def nothing_served(summary: Mapping[str, float]) -> str:
    """What to say instead of numbers when no request got a token; empty when one did."""
    if summary["completed_requests"]:
        return ""
    return f"None of {summary['num_requests']:,} requests got a token: there is nothing to measure."


def explained_lines(summary: Mapping[str, float]) -> list[str]:
    """The lines below the table with what they mean: speed, cache, SLA, and requests that were not completed."""
    lines = []
    preemptions = summary.get("preemptions", 0)
    for line, name in zip(footer_lines(summary), (n for n in FOOTER.values() if n in summary), strict=True):
        if name == "wall_time_ms":
            line += f" (what the simulator took for {summary['duration_ms'] / 1000.0:,.2f} simulated seconds)"
        elif summary[name]:
            line += f" ({summary[name]:.2%} of the prompt tokens, found at the {FOUND_AT[name]} admission"
            if preemptions and FOUND_AT[name] == "best":
                line += ": preempted requests find themselves"
            line += ")"
        lines.append(line)
    if "within_sla_requests" in summary:
        lines.append(sla_line(summary))
    others = {word: summary.get(name, 0) for word, name in NOT_SERVED.items()}
    if any(others.values()):
        lines.append("Not completed: " + ", ".join(f"{n:,} {word}" for word, n in others.items() if n))
    if preemptions:
        lines.append(f"Preemptions: {preemptions:,}")
    return [*lines, *tier_lines(summary)]


def sla_line(summary: Mapping[str, float]) -> str:
    """How many of all requests that arrived were completed within the bounds of the SLA."""
    good, arrived = summary["within_sla_requests"], summary["num_requests"]
    return f"Within the SLA: {good:,} of {arrived:,} requests that arrived ({summary['within_sla']:.1%})"


def format_table(summary: Mapping[str, float]) -> str:
    """The table with its title and the lines below it, without a newline at the end."""
    return "\n".join([*_boxed(summary), *footer_lines(summary)])


def print_table(summary: Mapping[str, float], console: Console | None = None) -> None:
    """Print the table and `explained_lines` to ``console``, or to the standard output; lines are never wrapped.

    On a terminal that is too narrow for the table it is a shorter one without the deviations. Where the encoding has no
    lines for the box, it is made of ``+``, ``-`` and ``|``.
    """
    console = console or Console()
    table = _boxed(summary)
    if console.is_terminal and console.width < max(map(len, table)):
        table = _short(summary)
    if not _can_print("".join(table), console.encoding):
        table = [line.translate(IN_ASCII) for line in table]
    text = "\n".join([*table, *explained_lines(summary)])
    console.print(text, markup=False, highlight=False, emoji=False, soft_wrap=True, no_wrap=True)


def _can_print(text: str, encoding: str) -> bool:
    try:
        text.encode(encoding)
    except (UnicodeEncodeError, LookupError):
        return False
    return True


def _boxed(summary: Mapping[str, float]) -> list[str]:
    head, rows = ["Metric", *COLUMNS], table_rows(summary)
    widths = [max(map(len, column)) for column in zip(head, *rows, strict=True)]
    return [
        TITLE,
        _rule(widths, "┏┳┓"),
        _line(widths, head),
        _rule(widths, "┡╇┩"),
        *(_line(widths, row) for row in rows),
        _rule(widths, "└┴┘"),
    ]


def _short(summary: Mapping[str, float]) -> list[str]:
    """The same rows without a box, with short labels, and without decimals where there are many digits."""
    rows = [["", *SHORT_COLUMNS]]
    for name, label in SHORT_LABELS.items():
        if f"mean_{name}" in summary:
            cells = [_digits(summary.get(f"{statistic}_{name}")) for statistic in SHORT_COLUMNS.values()]
            rows.append([label, *cells])
        elif name in summary:
            rows.append([label, _digits(summary[name]), *[""] * (len(SHORT_COLUMNS) - 1)])
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        TITLE,
        *(
            " ".join(
                cell.rjust(width) if place else cell.ljust(width)
                for place, (cell, width) in enumerate(zip(row, widths, strict=True))
            ).rstrip()
            for row in rows
        ),
    ]


def _digits(value: float | None) -> str:
    without_decimals = isinstance(value, int) or (value is not None and 10_000 <= value < MANY)
    return f"{value:,.0f}" if without_decimals else _number(value)


def _number(value: float | None) -> str:
    if value is None:
        return "N/A"
    return f"{value:,.2f}" if abs(value) < MANY else f"{value:.2e}"


def _line(widths: Sequence[int], cells: Sequence[str]) -> str:
    numbers = [cell.rjust(width) for cell, width in zip(cells[1:], widths[1:], strict=True)]
    return "┃ " + " ┃ ".join([cells[0].ljust(widths[0]), *numbers]) + " ┃"


def _rule(widths: Sequence[int], corners: str) -> str:
    left, middle, right = tuple(corners)
    return left + middle.join("━" * (width + 2) for width in widths) + right
