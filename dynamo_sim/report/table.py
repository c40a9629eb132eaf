"""The printed table, in the form of AIPerf (`spec 09, 8`)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from rich.console import Console

TITLE = "NVIDIA AIPerf | LLM Metrics"

COLUMNS = {"avg": "mean", "min": "min", "max": "max", "p99": "p99", "p90": "p90", "p75": "p75", "std": "std"}
"""Column head, and the statistic it shows."""

SPREADS = {
    "Time to First Token (ms)": "ttft_ms",
    "Time to Second Token (ms)": "ttst_ms",
    "Request Latency (ms)": "e2e_latency_ms",
    "Inter Token Latency (ms)": "itl_ms",
    "Output Token Throughput Per User (tokens/sec/user)": "output_token_throughput_per_user",
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


def format_table(summary: Mapping[str, float]) -> str:
    """The table with its title and the lines below it, without a newline at the end."""
    head, rows = ["Metric", *COLUMNS], table_rows(summary)
    widths = [max(map(len, column)) for column in zip(head, *rows, strict=True)]
    lines = [
        TITLE,
        _rule(widths, "┏┳┓"),
        _line(widths, head),
        _rule(widths, "┡╇┩"),
        *(_line(widths, row) for row in rows),
        _rule(widths, "└┴┘"),
        *footer_lines(summary),
    ]
    return "\n".join(lines)


def print_table(summary: Mapping[str, float], console: Console | None = None) -> None:
    """Print the table to ``console``, or to the standard output; its lines are never wrapped."""
    (console or Console()).print(
        format_table(summary), markup=False, highlight=False, emoji=False, soft_wrap=True, no_wrap=True
    )


def _number(value: float | None) -> str:
    return "N/A" if value is None else f"{value:,.2f}"


def _line(widths: Sequence[int], cells: Sequence[str]) -> str:
    numbers = [cell.rjust(width) for cell, width in zip(cells[1:], widths[1:], strict=True)]
    return "┃ " + " ┃ ".join([cells[0].ljust(widths[0]), *numbers]) + " ┃"


def _rule(widths: Sequence[int], corners: str) -> str:
    left, middle, right = tuple(corners)
    return left + middle.join("━" * (width + 2) for width in widths) + right
