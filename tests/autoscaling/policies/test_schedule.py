"""Targets by the clock: always the same one, and schedules (`spec 10, 5`)."""

from __future__ import annotations

import math
from datetime import UTC, datetime
from typing import Any

import pytest

from dynamo_sim.autoscaling import Decision, FixedPolicy, SchedulePolicy
from dynamo_sim.scenario.autoscaler.fixed import FixedScaling
from dynamo_sim.scenario.autoscaler.schedule import ScheduleScaling
from tests.autoscaling.policies.policy_driver import ask


def schedule(**keys: Any) -> SchedulePolicy:
    return SchedulePolicy(ScheduleScaling.model_validate(keys))


def test_fixed_is_evaluated_once() -> None:
    assert ask(FixedPolicy(FixedScaling(count=4)), 0.0, 1) == Decision(4, "fixed", next_at_s=math.inf)


def test_a_schedule_acts_exactly_at_its_times() -> None:
    policy = schedule(at_ms=[{"t": 2500.0, "target": 4}, {"t": 0.0, "target": 1}, {"t": 9000.0, "target": 2}])
    assert policy.first_at_s == 0.0
    found = [(at, d.target, d.next_at_s) for at in (0.0, 2.5, 9.0) for d in [ask(policy, at, 1)]]
    assert found == [(0.0, 1, 2.5), (2.5, 4, 9.0), (9.0, 2, math.inf)]


class TestCron:
    cronsim = pytest.importorskip("cronsim")

    def window(self, start: str, end: str, zone: str = "UTC", at: str = "2025-03-30T00:00:00") -> Any:
        from dynamo_sim.cron import CronWindow, parse_start

        return CronWindow(start, end, zone, parse_start(at))

    def test_a_window_is_open_from_its_start_until_its_end(self) -> None:
        window = self.window("0 8 * * *", "0 18 * * *")
        hour = 3600.0
        assert [window.is_open(h * hour) for h in (7.999, 8, 17.999, 18)] == [False, True, True, False]
        assert [window.next_edge_s(h * hour) for h in (0, 8, 18)] == [8 * hour, 18 * hour, 32 * hour]

    def test_a_window_over_midnight(self) -> None:
        window = self.window("0 22 * * *", "0 6 * * *")
        assert window.is_open(0.0) and not window.is_open(6 * 3600.0) and window.is_open(22 * 3600.0)

    def test_the_clock_of_a_time_zone_jumps(self) -> None:
        # Europe/Berlin goes from 2:00 to 3:00 on 2025-03-30, which is 1:00 UTC.
        window = self.window("30 3 * * *", "30 4 * * *", "Europe/Berlin")
        assert window.next_edge_s(0.0) == 1.5 * 3600

    def test_overlapping_windows_take_the_largest_and_nothing_takes_the_default(self) -> None:
        day = {"start": "0 8 * * *", "end": "0 20 * * *", "target": 3}
        noon = {"start": "0 11 * * *", "end": "0 14 * * *", "target": 6}
        policy = schedule(cron=[day, noon], default=1, start_of_run="2025-03-30T00:00:00")
        targets = [ask(policy, h * 3600.0, 1).target for h in (0, 8, 11, 14, 20)]
        assert targets == [1, 3, 6, 3, 1]
        assert ask(policy, 0.0, 1).next_at_s == 8 * 3600.0

    @pytest.mark.parametrize(
        ("start", "zone"), [("0 8 * *", "UTC"), ("61 8 * * *", "UTC"), ("0 8 * * *", "Mars/Base")]
    )
    def test_what_is_no_window_is_refused(self, start: str, zone: str) -> None:
        with pytest.raises(ValueError, match=r"cron|time zone"):
            self.window(start, "0 18 * * *", zone)

    def test_a_start_without_an_offset_is_utc(self) -> None:
        from dynamo_sim.cron import parse_start

        assert parse_start("2025-03-30T01:02") == datetime(2025, 3, 30, 1, 2, tzinfo=UTC)
