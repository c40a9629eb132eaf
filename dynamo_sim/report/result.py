"""What a run answers with."""

from __future__ import annotations

from functools import cached_property
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dynamo_sim.report.rows import request_rows
from dynamo_sim.report.tables import RunTables

if TYPE_CHECKING:
    from dynamo_sim.report.plots import Plots


class RunResult(RunTables):
    """The outcome of a run: its figures and tables (`RunTables`), pictures, and ways to save them."""

    def _repr_html_(self) -> str:
        from dynamo_sim.report.html import summary_table

        return summary_table(self.summary)

    @cached_property
    def plot(self) -> Plots:
        """Pictures: of latencies, of where the time goes, of the fleets, of decisions and of passes (`Plots`)."""
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
