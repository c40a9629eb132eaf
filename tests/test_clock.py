"""Virtual time: absolute deadlines, moved timers, and what is last in an instant."""

from __future__ import annotations

from collections.abc import Generator

from simpy.events import Event

from dynamo_sim.clock import Clock, Phase


def test_deadlines_are_kept_to_the_bit() -> None:
    clock = Clock()
    at_ms = 0.1 + 0.2
    seen = []

    def process() -> Generator[Event, None, None]:
        yield clock.until(0.1)
        yield clock.until(at_ms)
        seen.append(clock.now)

    clock.process(process())
    clock.run_dry()
    assert seen == [at_ms]


def test_a_moved_timer_wakes_its_process_once_at_the_new_time() -> None:
    clock = Clock()
    timer = clock.timer()
    seen = []

    def process() -> Generator[Event, None, None]:
        yield timer
        seen.append(clock.now)

    clock.process(process())
    timer.arm(10.0)
    clock.run(until=2.0)
    timer.moved_to(5.0)
    clock.run_dry()
    assert seen == [5.0]
    assert clock.now == 10.0


def test_the_last_of_an_instant_comes_after_everything_else() -> None:
    clock = Clock()
    seen = []
    for name, priority in (("settle", Phase.SETTLE), ("pass", 1), ("arrival", 1)):
        event = clock.until(3.0, priority)
        assert event.callbacks is not None
        event.callbacks.append(lambda _, name=name: seen.append((name, clock.is_settled)))
    clock.run_dry()
    assert seen == [("pass", False), ("arrival", False), ("settle", True)]


def test_what_comes_after_the_last_does_not_keep_an_instant_open() -> None:
    clock = Clock()
    seen = []
    for name, priority in (("scrape", Phase.SCRAPE), ("settle", Phase.SETTLE)):
        event = clock.until(3.0, priority)
        assert event.callbacks is not None
        event.callbacks.append(lambda _, name=name: seen.append((name, clock.is_settled)))
    clock.run_dry()
    assert seen == [("settle", True), ("scrape", True)]


def test_time_is_a_float_from_the_start() -> None:
    assert isinstance(Clock().now, float)
