"""The tables of `compare`: a column a variant, or a row a variant where columns would not fit."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from dynamo_sim.cli.conditions import figure_of

if TYPE_CHECKING:
    from dynamo_sim.report.result import RunResult

ROWS = (
    ("completed requests", "completed_requests", "{:,.0f}"),
    ("rejected requests", "rejected_requests", "{:,.0f}"),
    ("failed requests", "failed_requests", "{:,.0f}"),
    ("unfinished requests", "unfinished_requests", "{:,.0f}"),
    ("preemptions", "preemptions", "{:,.0f}"),
    ("within the SLA", "within_sla_requests", "{:,.0f}"),
    ("within the SLA (share)", "within_sla", "{:.1%}"),
    ("TTFT p50 (ms)", "median_ttft_ms", "{:,.1f}"),
    ("TTFT p99 (ms)", "p99_ttft_ms", "{:,.1f}"),
    ("ITL p50 (ms)", "median_itl_ms", "{:,.2f}"),
    ("ITL p99 (ms)", "p99_itl_ms", "{:,.2f}"),
    ("E2E p50 (ms)", "median_e2e_latency_ms", "{:,.1f}"),
    ("E2E p99 (ms)", "p99_e2e_latency_ms", "{:,.1f}"),
    ("output tokens/s", "output_throughput_tok_s", "{:,.1f}"),
    ("reused at 1st admission", "first_admission_prefix_cache_reused_ratio", "{:.1%}"),
    ("router hit rate", "routing_hit_rate", "{:.1%}"),
    ("load, most / mean", "load_imbalance", "{:,.2f}"),
    ("reused from the GPU", "gpu_reused_ratio", "{:.1%}"),
    ("reused from the host", "host_reused_ratio", "{:.1%}"),
    ("reused from disk", "disk_reused_ratio", "{:.1%}"),
    ("reused from the store", "store_reused_ratio", "{:.1%}"),
    ("requests swapped in", "swap_in_requests", "{:,.0f}"),
    ("mean wait for swap-in (ms)", "mean_swap_in_wait_ms", "{:,.2f}"),
    ("evicted blocks dropped", "dropped_blocks", "{:,.0f}"),
    ("GPU to host (GB)", "g1_to_g2_gigabytes", "{:,.1f}"),
    ("GPU to host (s busy)", "g1_to_g2_busy_s", "{:,.2f}"),
    ("host to GPU (GB)", "g2_to_g1_gigabytes", "{:,.1f}"),
    ("host to GPU (s busy)", "g2_to_g1_busy_s", "{:,.2f}"),
    ("host to disk (GB)", "g2_to_g3_gigabytes", "{:,.1f}"),
    ("disk to host (GB)", "g3_to_g2_gigabytes", "{:,.1f}"),
    ("host to store (GB)", "g2_to_g4_gigabytes", "{:,.1f}"),
    ("store to host (GB)", "g4_to_g2_gigabytes", "{:,.1f}"),
    ("duration (s)", "duration_ms", "{:,.2f}"),
    ("peak workers", "peak_workers", "{:,.0f}"),
    ("mean workers", "mean_workers", "{:,.1f}"),
    ("peak prefill workers", "peak_prefill_workers", "{:,.0f}"),
    ("mean prefill workers", "mean_prefill_workers", "{:,.1f}"),
    ("peak decode workers", "peak_decode_workers", "{:,.0f}"),
    ("mean decode workers", "mean_decode_workers", "{:,.1f}"),
    ("scale changes", "scale_changes", "{:,.0f}"),
    ("mean queue (ms)", "mean_queue_ms", "{:,.1f}"),
    ("mean prefill (ms)", "mean_prefill_ms", "{:,.1f}"),
    ("mean wait for room (ms)", "mean_wait_for_room_ms", "{:,.1f}"),
    ("mean wait for link (ms)", "mean_wait_for_link_ms", "{:,.1f}"),
    ("mean transfer (ms)", "mean_transfer_ms", "{:,.1f}"),
    ("mean wait for batch (ms)", "mean_wait_for_batch_ms", "{:,.1f}"),
    ("mean decode (ms)", "mean_decode_ms", "{:,.1f}"),
    ("prefill GPU hours", "prefill_gpu_hours", "{:,.3f}"),
    ("decode GPU hours", "decode_gpu_hours", "{:,.3f}"),
    ("GPU hours", "gpu_hours", "{:,.3f}"),
)
"""Label, field of the summary or of `fleet_figures`, format; a row without a value in any run is left out."""

ONLY_IF_ANY = (
    "rejected_requests",
    "failed_requests",
    "unfinished_requests",
    "preemptions",
    "scale_changes",
    "disk_reused_ratio",
    "store_reused_ratio",
    "dropped_blocks",
)
"""Rows that are left out where they are 0 in all runs."""

ALWAYS_COLUMNS = 3
"""So many variants are columns on any screen."""

PIPED_WIDTH = 120
"""Letters of a line where standard output is no terminal."""

FRAME = 3
"""Letters that a column takes beside its text."""


def fleet_figures(result: RunResult) -> dict[str, float]:
    """Figures that no summary has: the sizes of the fleets."""
    uses = result.fleet_uses
    if len(uses) == 1:
        (use,) = uses.values()
        return {"peak_workers": use.most, "mean_workers": use.mean}
    figures = {
        f"{statistic}_{name}_workers": value
        for name, use in uses.items()
        for statistic, value in (("peak", use.most), ("mean", use.mean))
    }
    return figures | {f"{fleet.name}_gpu_hours": fleet.gpu_hours for fleet in result.records.fleets}


def phase_figures(result: RunResult) -> dict[str, float]:
    """How long requests were in each phase, on average in ms."""
    from dynamo_sim.report.breakdown import column_of, mean_phases

    return {f"mean_{column_of(phase)}": ms for phase, ms in mean_phases(result.records.requests).items()}


def figures_of(results: Sequence[tuple[str, RunResult]]) -> list[tuple[str, list[str]]]:
    """Label and text of each figure that is worth a line, with one text a run."""
    handed_over = any(result.records.is_disaggregated for _, result in results)
    with_fleet = handed_over or any(result.summary["scale_changes"] for _, result in results)
    runs = [
        {
            **result.summary,
            **(fleet_figures(result) if with_fleet else {}),
            **(phase_figures(result) if handed_over else {}),
        }
        for _, result in results
    ]
    figures = []
    for label, field, form in ROWS:
        values = [figure_of(run, field) for run in runs]
        if all(value is None for value in values) or (field in ONLY_IF_ANY and not any(values)):
            continue
        scale = 1000.0 if field == "duration_ms" else 1.0
        figures.append((label, ["-" if value is None else form.format(value / scale) for value in values]))
    return figures


def print_comparison(results: Sequence[tuple[str, RunResult]]) -> None:
    """Print the figures of all runs side by side, or below each other where that would be too wide."""
    from rich.console import Console

    labels, figures = [label for label, _ in results], figures_of(results)
    width = Console().width if sys.stdout.isatty() else PIPED_WIDTH
    needed = 2 * FRAME + _width("", [label for label, _ in figures])
    needed += sum(
        FRAME + _width(label, [texts[at] for _, texts in figures]) for at, label in enumerate(labels)
    )
    if needed <= width or len(labels) <= ALWAYS_COLUMNS:
        _print("", labels, figures, width if sys.stdout.isatty() else max(width, needed))
        return
    longest = _width("variant", labels) + 2 * FRAME
    for part in _parts(figures, width - longest):
        rows = [(label, [texts[at] for _, texts in part]) for at, label in enumerate(labels)]
        _print("variant", [label for label, _ in part], rows, max(width, longest + _narrowest(*part[0])))


def _width(label: str, texts: Sequence[str]) -> int:
    return max(len(label), *map(len, texts))


def _narrowest(label: str, texts: Sequence[str]) -> int:
    """Width of a column whose head is broken at every space."""
    return FRAME + _width("", [*label.split(), *texts])


def _parts(figures: Sequence[tuple[str, list[str]]], width: int) -> Iterator[list[tuple[str, list[str]]]]:
    """The figures in groups that fit into a line of ``width`` letters; at least one in each."""
    part: list[tuple[str, list[str]]] = []
    used = 0
    for label, texts in figures:
        wide = _narrowest(label, texts)
        if part and used + wide > width:
            yield part
            part, used = [], 0
        part.append((label, texts))
        used += wide
    yield part


def _print(
    corner: str, heads: Sequence[str], rows: Sequence[tuple[str, list[str]]], width: int | None
) -> None:
    from rich.console import Console
    from rich.table import Table

    table = Table(title=None)
    table.add_column(corner, no_wrap=bool(corner))
    for head in heads:
        table.add_column(head, justify="right", min_width=_width("", head.split()) if corner else None)
    for label, texts in rows:
        table.add_row(label, *texts)
    Console(width=width).print(table)
