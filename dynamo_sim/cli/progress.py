"""The progress line of a run: how much is done, time left, simulated time, requests, speed."""

from __future__ import annotations

import time
from types import TracebackType
from typing import TYPE_CHECKING

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn

if TYPE_CHECKING:
    from dynamo_sim.scenario import Scenario

MIN_ELAPSED_S = 1.0
"""Before this much wall time nothing is said of the time left."""


class RunProgress:
    """Shows how far a run is on standard error; used as a context manager.

    Args:
        scenario: what is run.
        label: what to call it.
        console: where to show it.
    """

    def __init__(self, scenario: Scenario, label: str, console: Console | None = None) -> None:
        self._cap_ms = scenario.limits.max_sim_time_ms
        self._requests: int | None = None
        self._started_s = time.perf_counter()
        self._bar = Progress(
            TextColumn("{task.description}"),
            BarColumn(bar_width=20),
            TextColumn("{task.fields[done]}"),
            TextColumn("{task.fields[status]}"),  # the longest, and what a narrow terminal cuts
            console=console or Console(stderr=True),
            transient=True,
        )
        self._task = self._bar.add_task(label, total=None, status="reading the workload", done="")

    def expect(self, requests: int) -> None:
        """The workload is known: so many requests will arrive."""
        self._requests = requests
        self._started_s = time.perf_counter()
        self._bar.update(self._task, total=1.0, status="")

    def update(self, now_ms: float, requests_ended: int) -> None:
        """Show virtual time and the number of requests that have ended."""
        share = self.share(now_ms, requests_ended)
        self._bar.update(
            self._task,
            completed=share,
            done=f"{share:.0%}{self.left(share, time.perf_counter() - self._started_s)}",
            status=self.status(now_ms, requests_ended),
        )

    def share(self, now_ms: float, requests_ended: int) -> float:
        """How much is done, from 0 to 1: of the requests, or of the time after which the run is cut."""
        of_requests = requests_ended / self._requests if self._requests else 0.0
        of_time = now_ms / self._cap_ms if self._cap_ms else 0.0
        return min(1.0, max(of_requests, of_time))

    def status(self, now_ms: float, requests_ended: int) -> str:
        """The text beside the bar."""
        elapsed_s = max(time.perf_counter() - self._started_s, 1e-9)
        of_total = "" if self._requests is None else f" of {self._requests:,}"
        speed = f"{now_ms / 1000.0 / elapsed_s:,.0f}x real time"
        return f"{now_ms / 1000.0:,.1f} s simulated, {requests_ended:,}{of_total} requests, {speed}"

    @staticmethod
    def left(share: float, elapsed_s: float) -> str:
        """The time left if the run goes on as it did, ``, 1:05 left``; nothing at the very beginning."""
        if share <= 0.0 or elapsed_s < MIN_ELAPSED_S:
            return ""
        minutes, seconds = divmod(round(elapsed_s * (1.0 - share) / share), 60)
        hours, minutes = divmod(minutes, 60)
        text = f"{hours}:{minutes:02}:{seconds:02}" if hours else f"{minutes}:{seconds:02}"
        return f", {text} left"

    def __enter__(self) -> RunProgress:
        self._bar.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._bar.stop()
