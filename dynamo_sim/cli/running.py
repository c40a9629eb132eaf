"""Running a scenario for a command, behind a progress line where somebody sees it."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from dynamo_sim.cli.loading import containing, naming

if TYPE_CHECKING:
    from dynamo_sim.report.result import RunResult
    from dynamo_sim.scenario import Scenario


def run_for_command(scenario: Scenario, file: str, label: str, quiet: bool = False) -> RunResult:
    """Run a scenario; on a terminal, unless ``quiet``, standard error shows how far it is.

    Args:
        scenario: what to run.
        file: its file, which begins each problem that is found now.
        label: what the progress line calls it.
        quiet: whether nothing is shown.
    """
    from dynamo_sim.simulation import run

    with naming(file), containing():
        if quiet or not sys.stderr.isatty():
            return run(scenario)
        from dynamo_sim.cli.progress import RunProgress

        with RunProgress(scenario, label) as progress:
            return run(scenario, progress=progress.update, on_workload=progress.expect)
