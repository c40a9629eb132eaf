"""Autoscalers of a prefill and a decode fleet, which know nothing of each other, as one controller."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from dynamo_sim.autoscaling.controller import AutoscalerController
from dynamo_sim.records.readings import Reading
from dynamo_sim.serving.controller import ControlledFleet, ServedFleet, is_due_later
from dynamo_sim.serving.pool import Pool


class PerFleetController:
    """Asks the autoscaler of each fleet at its own times; of those due together, that of the prefill fleet first.

    Args:
        controllers: the autoscalers by the names of their fleets, prefill before decode.
    """

    waits_for_workers = True
    reads_as_reference = False

    def __init__(self, controllers: Mapping[str, AutoscalerController]) -> None:
        self._controllers = controllers
        self.warnings = [
            f"{name}: {text}" for name, controller in controllers.items() for text in controller.warnings
        ]
        self.wants_passes = any(controller.wants_passes for controller in controllers.values())

    def attach(self, pools: Mapping[str, Pool], serving: ServedFleet) -> None:
        """Give each autoscaler the pool that it scales, before anything is served."""
        for name, controller in self._controllers.items():
            controller.attach({name: pools[name]}, serving)

    def first_tick_ms(self) -> float | None:
        """The first time to ask any of them."""
        return self._earliest(controller.first_tick_ms() for controller in self._controllers.values())

    def on_tick(self, now_ms: float, fleet: ControlledFleet) -> float | None:
        """Evaluate those that are due."""
        return self._earliest(controller.on_tick(now_ms, fleet) for controller in self._controllers.values())

    def request_waits(self, now_ms: float) -> float | None:
        """A request waits for a worker of some fleet."""
        return self._earliest(controller.request_waits(now_ms) for controller in self._controllers.values())

    def decision_rows(self) -> list[dict[str, Any]]:
        """The evaluations of all, by time, each with its fleet."""
        rows = [
            {"fleet": name, **row}
            for name, controller in self._controllers.items()
            for row in controller.decision_rows()
        ]
        return sorted(rows, key=lambda row: float(row["at_s"]))

    def readings(self) -> list[Reading]:
        """Units and thresholds of what all of them read."""
        return [
            replace(reading, fleet=name)
            for name, controller in self._controllers.items()
            for reading in controller.readings()
        ]

    def notes(self, end_ms: float) -> list[str]:
        """What there is to say after the run, each with the fleet."""
        return [
            f"{name}: {text}"
            for name, controller in self._controllers.items()
            for text in controller.notes(end_ms)
        ]

    @staticmethod
    def _earliest(times_ms: Iterator[float | None]) -> float | None:
        found = [at_ms for at_ms in times_ms if at_ms is not None and is_due_later(at_ms, -math.inf)]
        return min(found, default=None)
