"""One web page about a run, for people: everything it needs is in the file."""

from __future__ import annotations

import math
import os
from base64 import b64encode
from collections.abc import Hashable
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pandas import NA

from dynamo_sim.files.output import whole_file
from dynamo_sim.report.plots import Plots
from dynamo_sim.report.plots.style import duration_text
from dynamo_sim.report.saving import meta
from dynamo_sim.report.scenario_text import scenario_yaml
from dynamo_sim.report.summary import Summary
from dynamo_sim.report.table import COLUMNS, explained_lines, nothing_served, table_rows

if TYPE_CHECKING:
    from dynamo_sim.report.tables import RunTables

CAPTIONS = {
    "latency": "How latencies are distributed",
    "ttft_over_time": "How long the first token takes, by arrival",
    "timeline": "What the fleet went through",
    "decisions": "What was decided",
    "gantt": "What each worker did",
}

MAX_DECISIONS = 60
"""Most rows of the table of decisions."""

STYLE = """
:root { color-scheme: light; }
body { font: 15px/1.5 sans-serif; color: #222; max-width: 1040px; margin: 2rem auto; padding: 0 1em; }
h1 { font-size: 1.6rem; margin-bottom: 0; } h2 { font-size: 1.15rem; margin: 2rem 0 .5rem; }
.facts { color: #555; margin-top: .2rem; }
.wide { overflow-x: auto; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; font-size: .92em; }
th, td { padding: .25rem .7rem; border-bottom: 1px solid #ddd; text-align: right; white-space: nowrap; }
th { border-bottom: 2px solid #888; } th:first-child, td:first-child { text-align: left; padding-left: 0; }
img { max-width: 100%; height: auto; } pre { background: #f6f6f6; padding: 1rem; overflow-x: auto; }
@media print { details { display: none; } img { break-inside: avoid; } }
"""


def summary_table(summary: Summary) -> str:
    """The table of the report as HTML, without a page around it."""
    head = "".join(f"<th>{name}</th>" for name in ("Metric", *COLUMNS))
    body = "\n".join(
        "<tr>" + "".join(f"<td>{'' if cell == 'N/A' else escape(cell)}</td>" for cell in row) + "</tr>"
        for row in table_rows(summary)
    )
    return f"<table>\n<thead><tr>{head}</tr></thead>\n<tbody>\n{body}\n</tbody>\n</table>"


def decisions_table(result: RunTables, most: int = MAX_DECISIONS) -> str:
    """The decisions that changed something as HTML, the first ``most`` of them; what is left out is said."""
    frame = result.decisions
    changes = frame[(frame["target"] != frame["current"]).fillna(False)]
    told = f"{len(frame):,} evaluations, {len(changes):,} of them changed something"
    if len(changes) > most:
        told += f"; the first {most:,} are shown"
    held = int((frame["stabilised"] > frame["desired"]).fillna(False).sum())
    if held:
        told += f"; at {held:,} a stabilisation window kept more workers than the metrics asked for"
    note = f'<p class="facts">{escape(told)}</p>'
    if not len(changes):
        return note
    loops = frame["loop"].nunique() > 1
    values = [name for name in changes.columns if name.startswith("value:") and changes[name].notna().any()]
    names = ["Time (s)", *(["Loop"] if loops else []), "Before", "Proposal", "Stabilised", "Target", "Reason"]
    head = [*names, *(name.removeprefix("value:") for name in values), "Workers"]
    rows = []
    for row in changes.head(most).to_dict("records"):
        cells = [f"{row['at_s']:,.10g}", *([row["loop"]] if loops else [])]
        cells += [_cell(row[name]) for name in ("current", "desired", "stabilised", "target", "reason")]
        cells += [_cell(row[name]) for name in values]
        rows.append([*cells, _workers(row)])
    return (
        f"{note}\n<table>\n<thead><tr>{''.join(f'<th>{escape(name)}</th>' for name in head)}</tr></thead>\n<tbody>\n"
        + "\n".join(
            "<tr>" + "".join(f"<td>{escape(str(cell))}</td>" for cell in row) + "</tr>" for row in rows
        )
        + "\n</tbody>\n</table>"
    )


def _cell(value: Any) -> str:
    if value is None or value is NA or (isinstance(value, float) and math.isnan(value)):
        return ""
    return f"{value:,.4g}" if isinstance(value, float) else str(value)


def _workers(row: dict[Hashable, Any]) -> str:
    """Which workers a decision was about: ``+3 to 5`` for those added, ``-2`` for those cancelled or marked."""
    words = []
    for name, sign in (("added", "+"), ("cancelled", "called off "), ("marked", "\N{MINUS SIGN}")):
        ids = sorted(row[name])
        if ids:
            run = len(ids) > 2 and ids[-1] - ids[0] == len(ids) - 1
            words.append(sign + (f"{ids[0]} to {ids[-1]}" if run else ", ".join(map(str, ids))))
    return "; ".join(words)


def page(result: RunTables) -> str:
    """The whole page: facts, table, pictures and the scenario."""
    about, summary = meta(result), result.summary
    name = escape(str(about["name"] or "Simulated run"))
    parts = [f"<h1>{name}</h1>", f'<p class="facts">{escape(" · ".join(_facts(result)))}</p>']
    if nothing := nothing_served(summary):
        parts.append(f"<p><strong>{nothing}</strong></p>")
    else:
        parts.append(f'<h2>Numbers</h2>\n<div class="wide">{summary_table(summary)}</div>')
        parts.append(f'<p class="facts">{escape(" · ".join(explained_lines(summary)))}</p>')
    parts += [f"<p><strong>Note:</strong> {escape(text)}</p>" for text in result.warnings]
    pictures = Plots(result)
    for picture in pictures.names:
        data = b64encode(pictures.png(picture, dpi=110)).decode("ascii")
        caption = CAPTIONS[picture]
        parts.append(f'<h2>{caption}</h2>\n<img alt="{caption}" src="data:image/png;base64,{data}">')
        if picture == "decisions":
            parts.append(f'<div class="wide">{decisions_table(result)}</div>')
    if result.scenario is not None:
        text = escape(scenario_yaml(result.scenario))
        parts.append(
            f"<h2>Scenario</h2>\n<details><summary>as resolved</summary>\n<pre>{text}</pre></details>"
        )
    seed = "" if about["seed"] is None else f", seed {about['seed']}"
    parts.append(f'<p class="facts">{about["package"]} {escape(about["version"])}{seed}</p>')
    body = "\n".join(parts)
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{name}</title>\n<style>{STYLE}</style>\n</head>\n<body>\n{body}\n</body>\n</html>\n"
    )


def save_page(result: RunTables, path: str | os.PathLike[str]) -> Path:
    """Write `page`; a file that is there is replaced only once the new one is whole.

    Raises:
        OSError: the file cannot be written.
    """
    with whole_file(path) as draft:
        draft.write_text(page(result), encoding="utf-8")
    return Path(path)


def _facts(result: RunTables) -> list[str]:
    summary = result.summary
    facts = [
        f"{summary['completed_requests']:,} of {summary['num_requests']:,} requests served",
        f"{duration_text(result.end_ms)} simulated",
        f"{summary['total_input_tokens']:,} tokens in, {summary['total_output_tokens']:,} out",
        result.fleet_line or f"{summary['gpu_hours']:,.3f} GPU hours",
    ]
    if "within_sla" in summary:
        facts.insert(1, f"{summary['within_sla_requests']:,} within the SLA ({summary['within_sla']:.1%})")
    return facts
