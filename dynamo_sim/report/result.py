"""What a run answers with."""

from __future__ import annotations

from functools import cached_property
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dynamo_sim.records.columns import RequestColumns
from dynamo_sim.records.records import RunRecords
from dynamo_sim.report.pass_columns import Columns, pass_columns
from dynamo_sim.report.rows import request_rows
from dynamo_sim.report.summary import Sla, Summary, summarise

if TYPE_CHECKING:
    import pandas as pd

    from dynamo_sim.report.plots import Plots


class RunResult:
    """The outcome of a run: numbers, tables and pictures, each made when it is first asked for.

    Args:
        records: what was observed.
        scenario: what was simulated, or None. Its ``name``, ``seed``, ``sla``, ``report`` and ``to_dict()``
            are used.
        summary: the summed-up records; made from them when left out.

    Attributes:
        summary: the fields of the report, as items and attributes.
    """

    def __init__(self, records: RunRecords, scenario: Any = None, summary: Summary | None = None) -> None:
        self.records = records
        self.scenario = scenario
        self.summary = summarise(records, self.sla) if summary is None else summary

    def __repr__(self) -> str:
        name = getattr(self.scenario, "name", None) or "run"
        done, arrived = self.summary["completed_requests"], self.summary["num_requests"]
        seconds = self.end_ms / 1000.0
        return f"<RunResult of {name}: {done:,} of {arrived:,} requests, {seconds:,.3f} s simulated>"

    def _repr_html_(self) -> str:
        from dynamo_sim.report.html import summary_table

        return summary_table(self.summary)

    @property
    def sla(self) -> Sla | None:
        """The bounds of the scenario, if it has any."""
        sla: Sla | None = getattr(self.scenario, "sla", None)
        return sla

    @property
    def end_ms(self) -> float:
        """When the last thing happened: a token of a pass under way may come after the last instant."""
        return max(self.records.end_ms, self.summary["duration_ms"])

    @property
    def warnings(self) -> list[str]:
        """What a reader has to know: requests that were not served, durations from outside a profile's range, ..."""
        return self.records.warnings

    @property
    def has_passes(self) -> bool:
        """Whether forward passes were recorded."""
        return bool(self.records.steps)

    @cached_property
    def columns(self) -> RequestColumns:
        """The requests as NumPy arrays."""
        return RequestColumns.of(self.records.requests)

    @cached_property
    def pass_columns(self) -> Columns:
        """The forward passes as NumPy arrays, empty ones if passes were not recorded."""
        return pass_columns(self.records.steps)

    @cached_property
    def requests(self) -> pd.DataFrame:
        """One row a request that arrived (`requests_frame`)."""
        from dynamo_sim.report.frames import requests_frame

        return requests_frame(self.records, self.columns)

    @cached_property
    def passes(self) -> pd.DataFrame:
        """One row a forward pass (`passes_frame`); no row if passes were not recorded."""
        from dynamo_sim.report.frames import passes_frame

        return passes_frame(self.pass_columns)

    @cached_property
    def fleet(self) -> pd.DataFrame:
        """One row a change of the fleet (`fleet_frame`)."""
        from dynamo_sim.report.frames import fleet_frame

        return fleet_frame(self.records.fleet)

    @cached_property
    def decisions(self) -> pd.DataFrame:
        """One row a look of an autoscaler (`decisions_frame`); no row where nobody decided."""
        from dynamo_sim.report.frames import decisions_frame

        return decisions_frame(self.records.decisions)

    @cached_property
    def plot(self) -> Plots:
        """Pictures: ``latency``, ``latency_over_time``, ``timeline``, ``decisions`` and ``gantt``."""
        from dynamo_sim.report.plots import Plots

        return Plots(self)

    def rows(self) -> list[dict[str, Any]]:
        """The requests that ended, in the reference's form (`request_rows`)."""
        return request_rows(self.records)

    def save(
        self, directory: str | PathLike[str], plots: bool | None = None, requests_format: str | None = None
    ) -> list[Path]:
        """Write everything to a directory (`save_result`) and say which files there are now."""
        from dynamo_sim.report.saving import save_result

        return save_result(self, directory, plots, requests_format)

    def save_html(self, path: str | PathLike[str]) -> Path:
        """Write one self-contained page with table, pictures and scenario (`save_page`)."""
        from dynamo_sim.report.html import save_page

        return save_page(self, path)
