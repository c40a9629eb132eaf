"""The progress line of a run: simulated time, requests done, speed."""

from __future__ import annotations

import time
from types import TracebackType
from typing import TYPE_CHECKING

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

if TYPE_CHECKING:
    from dynamo_sim.scenario import Scenario


class RunProgress:
    """Shows how far a run is on standard error; used as a context manager."""

    def __init__(self, scenario: Scenario, console: Console | None = None) -> None:
        self._total = _known_requests(scenario)
        self._started = time.perf_counter()
        self._bar = Progress(
            TextColumn("{task.description}"),
            BarColumn(bar_width=30),
            TextColumn("{task.fields[status]}"),
            TimeElapsedColumn(),
            console=console or Console(stderr=True),
            transient=True,
        )
        self._task = self._bar.add_task(scenario.name, total=self._total, status="")

    def update(self, now_ms: float, requests_ended: int) -> None:
        """Show virtual time and the number of requests that completed or were rejected."""
        self._bar.update(self._task, completed=requests_ended, status=self.status(now_ms, requests_ended))

    def status(self, now_ms: float, requests_ended: int) -> str:
        """The text beside the bar."""
        elapsed_s = max(time.perf_counter() - self._started, 1e-9)
        of_total = "" if self._total is None else f" of {self._total:,}"
        speed = f"{now_ms / 1000.0 / elapsed_s:,.0f}x real time"
        return f"{now_ms / 1000.0:,.1f} s simulated, {requests_ended:,}{of_total} requests, {speed}"

    def __enter__(self) -> RunProgress:
        self._bar.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._bar.stop()


def _known_requests(scenario: Scenario) -> int | None:
    """Requests a workload makes, where it says so; None for a trace, which is read as it goes."""
    workload = scenario.workload
    if workload.kind == "synthetic":
        return workload.request_count * workload.turns_per_session
    if workload.kind == "generated":
        return workload.request_count if workload.duration_s is None else None
    return None if workload.records is None else len(workload.records)
