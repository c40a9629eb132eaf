"""The tables and figures of a run: what pictures, pages and files are made of."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any

from dynamo_sim.engine.pass_columns import Columns, joined_by_end, pass_columns
from dynamo_sim.records.columns import RequestColumns
from dynamo_sim.records.records import RunRecords
from dynamo_sim.report.breakdown import breakdown_line, mean_phases
from dynamo_sim.report.fleet_use import FleetUse, fleet_line, fleet_use
from dynamo_sim.report.summary import Sla, Summary, summarise

if TYPE_CHECKING:
    import pandas as pd


class RunTables:
    """The outcome of a run in numbers: figures and tables, each made when it is first asked for.

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
        return (
            f"<{type(self).__name__} of {name}: {done:,} of {arrived:,} requests, {seconds:,.3f} s simulated>"
        )

    @property
    def sla(self) -> Sla | None:
        """The bounds of the scenario, if it has any."""
        sla: Sla | None = getattr(self.scenario, "sla", None)
        return sla

    @property
    def end_ms(self) -> float:
        """When the last thing happened: a token of a pass in progress may come after the last instant."""
        return max(self.records.end_ms, self.summary["duration_ms"])

    @property
    def warnings(self) -> list[str]:
        """What a reader has to know: requests that were not served, durations from outside a profile's range, ..."""
        return self.records.warnings

    @property
    def has_passes(self) -> bool:
        """Whether forward passes were recorded."""
        return any(log.ends_ms for fleet in self.records.fleets for log in fleet.passes)

    @cached_property
    def fleet_uses(self) -> dict[str, FleetUse]:
        """The sizes of each fleet, by its name."""
        return {fleet.name: fleet_use(fleet.changes, self.end_ms) for fleet in self.records.fleets}

    @property
    def fleet_line(self) -> str:
        """The size of the fleet in one line; empty where it never changed."""
        return fleet_line(self.records.fleets, self.fleet_uses, self.summary["gpu_hours"])

    @property
    def breakdown_line(self) -> str:
        """Where the time of requests went, in one line; empty where one fleet does everything."""
        return breakdown_line(mean_phases(self.records.requests)) if self.records.is_disaggregated else ""

    @cached_property
    def columns(self) -> RequestColumns:
        """The requests as NumPy arrays."""
        return RequestColumns.of(self.records.requests)

    @cached_property
    def pass_columns(self) -> Columns:
        """The forward passes of all fleets as NumPy arrays, empty ones if passes were not recorded.

        Where there are two fleets, the number of the fleet in the records is among them, as ``fleet``.
        """
        fleets = self.records.fleets
        if not self.records.is_disaggregated:
            return pass_columns([log for fleet in fleets for log in fleet.passes])
        return joined_by_end([pass_columns(fleet.passes) for fleet in fleets])

    @cached_property
    def requests(self) -> pd.DataFrame:
        """One row a request that arrived (`requests_frame`)."""
        from dynamo_sim.report.frames import requests_frame

        return requests_frame(self.records, self.columns)

    @cached_property
    def phases(self) -> pd.DataFrame:
        """One row a request that arrived: how long each phase of it took (`phases_frame`)."""
        from dynamo_sim.report.breakdown import phases_frame

        return phases_frame(self.records.requests)

    @cached_property
    def breakdown(self) -> pd.DataFrame:
        """One row a phase: how long it took the requests that were completed (`breakdown_frame`)."""
        from dynamo_sim.report.breakdown import breakdown_frame

        return breakdown_frame(self.records.requests)

    @cached_property
    def passes(self) -> pd.DataFrame:
        """One row a forward pass (`passes_frame`); no row if passes were not recorded."""
        from dynamo_sim.report.frames import passes_frame

        return passes_frame(self.pass_columns, [fleet.name for fleet in self.records.fleets])

    @cached_property
    def fleet(self) -> pd.DataFrame:
        """One row a change of the fleet (`fleet_frame`)."""
        from dynamo_sim.report.frames import fleet_frame

        return fleet_frame(self.records.fleets)

    @cached_property
    def routing(self) -> pd.DataFrame:
        """One row a decision of a router (`routing_frame`); no row if they were not recorded."""
        from dynamo_sim.report.frames import routing_frame

        return routing_frame(self.records.routing)

    def decisions_of(self, fleet: str) -> pd.DataFrame:
        """The rows of `decisions` that are about a fleet, by its name."""
        frame = self.decisions
        return frame[frame["fleet"] == fleet] if "fleet" in frame else frame

    @cached_property
    def decisions(self) -> pd.DataFrame:
        """One row an evaluation of an autoscaler (`decisions_frame`); no row where nobody decided."""
        from dynamo_sim.report.frames import decisions_frame

        return decisions_frame(self.records.decisions)
