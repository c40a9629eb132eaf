"""The planner of a case: applies its targets at their times, and keeps what it was shown."""

from __future__ import annotations

from typing import Any


class CasePlanner:
    """Acts at every ``at_ms`` of a plan and at every multiple of ``poll_ms``."""

    def __init__(self, plan: list[dict[str, Any]], poll_ms: float | None) -> None:
        self._plan = plan
        self._poll_ms = poll_ms
        self._at_ms = self._after(-1.0)
        self.ticks: list[dict[str, Any]] = []

    def _after(self, now_ms: float) -> float | None:
        times = [step["at_ms"] for step in self._plan if step["at_ms"] > now_ms]
        if self._poll_ms:
            times.append((int(now_ms // self._poll_ms) + 1) * self._poll_ms)
        return min(times, default=None)

    def initial_tick_ms(self) -> float | None:
        return self._at_ms

    def on_tick(self, metrics: dict[str, Any]) -> dict[str, Any]:
        self.ticks.append(metrics)
        now_ms = self._at_ms
        assert now_ms is not None
        wanted: dict[str, Any] = {}
        for step in self._plan:
            if step["at_ms"] == now_ms:
                wanted.update(step)
        self._at_ms = self._after(now_ms)
        return {
            "target_prefill": wanted.get("prefill"),
            "target_decode": wanted.get("decode"),
            "next_tick_ms": self._at_ms,
        }
