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

from dynamo_sim.files.drafts import whole_file
from dynamo_sim.report.conditions import condition_lines
from dynamo_sim.report.picture_text import picture_text
from dynamo_sim.report.plots import Plots
from dynamo_sim.report.saving import meta
from dynamo_sim.report.scenario_text import scenario_yaml
from dynamo_sim.report.summary import Summary
from dynamo_sim.report.table import (
    COLUMNS,
    SHORT_LABELS,
    SPREADS,
    TOTALS,
    explained_lines,
    nothing_served,
    table_rows,
)
from dynamo_sim.text import duration_text

if TYPE_CHECKING:
    from dynamo_sim.report.tables import RunTables

CAPTIONS = {
    "latency": "How latencies are distributed",
    "ttft_over_time": "How long the first token takes, by arrival",
    "breakdown": "Where the time goes",
    "timeline": "What the fleet went through",
    "decisions": "What was decided",
    "routing": "What the router did",
    "gantt": "What each worker did",
}

MAX_DECISIONS = 60
"""Most rows of the table of decisions."""

STYLE = """
:root { color-scheme: light dark; --ink: #222; --soft: #555; --page: #fff; --box: #f4f5f6; --line: #ddd; }
@media (prefers-color-scheme: dark) {
  :root { --ink: #e6e6e6; --soft: #a8a8a8; --page: #16181b; --box: #23262a; --line: #3b3f45; }
}
body { font: 15px/1.5 sans-serif; color: var(--ink); background: var(--page);
  max-width: 1040px; margin: 2rem auto; padding: 0 1em; }
h1 { font-size: 1.6rem; margin-bottom: 0; overflow-wrap: anywhere; } h2 { font-size: 1.15rem; margin: 2rem 0 .5rem; }
.facts { color: var(--soft); margin-top: .2rem; }
.figures { display: grid; grid-template-columns: repeat(auto-fit, minmax(9.5em, 1fr)); gap: .6rem; padding: 0; }
.figures li { list-style: none; background: var(--box); border-radius: 8px; padding: .5rem .8rem; }
.figures b { display: block; font-size: 1.25rem; font-variant-numeric: tabular-nums; }
.figures span { color: var(--soft); font-size: .85em; }
dl { display: grid; grid-template-columns: max-content 1fr; gap: .1rem .9rem; margin: .5rem 0; font-size: .93em; }
dt { color: var(--soft); } dd { margin: 0; overflow-wrap: anywhere; }
.wide { overflow-x: auto; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; font-size: .92em; }
th, td { padding: .25rem .7rem; border-bottom: 1px solid var(--line); text-align: right; white-space: nowrap; }
th { border-bottom: 2px solid #888; }
th:first-child, td:first-child { text-align: left; padding-left: 0; }
.wide th:first-child, .wide td:first-child { position: sticky; left: 0; background: var(--page); }
.short { display: none; }
.picture { overflow: auto; background: #fff; border-radius: 8px; }
.picture img { display: block; max-width: 100%; height: auto; cursor: zoom-in; }
.picture input { position: absolute; opacity: 0; }
.picture input:checked + img { max-width: none; cursor: zoom-out; }
.picture input:focus-visible + img { outline: 3px solid #0072B2; outline-offset: -3px; }
pre { background: var(--box); padding: 1rem; overflow-x: auto; }
@media (max-width: 600px) {
  body { margin: 1rem auto; } .long { display: none; } .short { display: inline; }
  table { font-size: .82em; } th, td { padding: .25rem .4rem; } dl { grid-template-columns: 1fr; }
  dd { margin-bottom: .3rem; }
}
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


def _responsive(table: str) -> str:
    """The table with a short label for narrow screens beside each label."""
    for label, name in {**SPREADS, **TOTALS}.items():
        both = f'<span class="long">{label}</span><span class="short">{SHORT_LABELS[name]}</span>'
        table = table.replace(f"<td>{label}</td>", f"<td>{both}</td>")
    return table


def _figures(summary: Summary) -> str:
    """The few figures that are looked for first."""
    shown = {
        "TTFT p50": duration_text(summary["median_ttft_ms"]),
        "TTFT p99": duration_text(summary["p99_ttft_ms"]),
        "ITL p50": duration_text(summary["median_itl_ms"]),
        "ITL p99": duration_text(summary["p99_itl_ms"]),
        "latency p99": duration_text(summary["p99_e2e_latency_ms"]),
        "output tokens/s": f"{summary['output_throughput_tok_s']:,.0f}",
        "GPU hours": f"{summary['gpu_hours']:,.3g}",
    }
    if "within_sla" in summary:
        shown = {"of all requests within the SLA": f"{summary['within_sla']:.1%}", **shown}
    items = "".join(f"<li><b>{value}</b><span>{label}</span></li>" for label, value in shown.items())
    return f'<ul class="figures">{items}</ul>'


def _conditions(result: RunTables) -> str:
    """Under which conditions the figures hold, bounds of the SLA included."""
    lines = dict(line.split(": ", 1) for line in condition_lines(result.scenario))
    bounds = {"TTFT": "ttft_ms", "mean gap": "itl_ms", "latency": "e2e_ms"}
    given = [
        f"{name} at most {duration_text(bound)}"
        for name, key in bounds.items()
        if (bound := getattr(result.sla, key, None)) is not None
    ]
    if given:
        lines["SLA"] = ", ".join(given)
    if not lines:
        return ""
    return "<dl>" + "".join(f"<dt>{k}</dt><dd>{escape(v)}</dd>" for k, v in lines.items()) + "</dl>"


def _picture(name: str, data: str, alt: str) -> str:
    """A picture that is shown in its own size, to be scrolled, while it is ticked."""
    return (
        f'<h2>{CAPTIONS[name]}</h2>\n<label class="picture" style="display:block">'
        f'<input type="checkbox" aria-label="Zoom: {CAPTIONS[name]}">'
        f'<img alt="{escape(alt, quote=True)}" src="data:image/png;base64,{data}"></label>'
    )


def decisions_table(result: RunTables, most: int = MAX_DECISIONS) -> str:
    """The decisions that changed something as HTML, the first ``most`` of them; what is left out is said."""
    frame = result.decisions
    changes = frame[(frame["target"] != frame["current"]).fillna(False)]
    note = f"{len(frame):,} evaluations, {len(changes):,} of them changed something"
    if len(changes) > most:
        note += f"; the first {most:,} are shown"
    held = int((frame["stabilised"] > frame["desired"]).fillna(False).sum())
    if held:
        note += f"; at {held:,} a stabilisation window kept more workers than the metrics asked for"
    note = f'<p class="facts">{escape(note)}</p>'
    if not len(changes):
        return note
    loops = frame["loop"].nunique() > 1
    values = [name for name in changes.columns if name.startswith("value:") and changes[name].notna().any()]
    names = ["Time (s)", *(["Loop"] if loops else []), "Before", "Desired", "Stabilised", "Target", "Reason"]
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
    for name, sign in (("added", "+"), ("cancelled", "cancelled "), ("marked", "\N{MINUS SIGN}")):
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
        parts += [f"<p><strong>{nothing}</strong></p>", _conditions(result)]
    else:
        parts += [_figures(summary), _conditions(result)]
        parts.append(f'<h2>Numbers</h2>\n<div class="wide">{_responsive(summary_table(summary))}</div>')
        parts.append(f'<p class="facts">{escape(" · ".join(explained_lines(summary)))}</p>')
    parts += [f"<p><strong>Note:</strong> {escape(text)}</p>" for text in result.warnings]
    pictures = Plots(result)
    for picture in pictures.names:
        data = b64encode(pictures.png(picture, dpi=150)).decode("ascii")
        parts.append(_picture(picture, data, picture_text(result, picture)))
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
