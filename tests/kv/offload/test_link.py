"""A link shares its bandwidth among its transfers (`spec 11, 2`, and the last of its worked scenarios)."""

from __future__ import annotations

import math

import pytest

from dynamo_sim.kv.offload.link import Link

MB = 1_000_000


def link(gbps: float = 1.0) -> Link[str]:
    return Link(gbps)


def landings(tested: Link[str]) -> list[tuple[float, str]]:
    """All that lands, each with its deadline."""
    found = []
    while (deadline := tested.deadline_ms) < math.inf:
        found += [(deadline, name) for name in tested.advance(deadline)]
    return found


def test_a_transfer_alone_has_all_the_bandwidth() -> None:
    tested = link()
    tested.start(0.0, MB, "a")
    assert landings(tested) == [(1.0, "a")]


def test_two_that_start_together_land_together() -> None:
    tested = link()
    tested.start(0.0, MB, "a")
    tested.start(0.0, MB, "b")
    assert landings(tested) == [(2.0, "a"), (2.0, "b")]


def test_ten_that_start_together_land_together() -> None:
    tested = link()
    for name in "abcdefghij":
        tested.start(0.0, MB, name)
    assert {at for at, _ in landings(tested)} == {10.0}


def test_one_that_starts_later_lands_later() -> None:
    tested = link()
    tested.start(0.0, MB, "a")
    tested.advance(0.5)
    tested.start(0.5, MB, "b")
    assert landings(tested) == [(1.5, "a"), (2.0, "b")]


def test_without_a_limit_a_transfer_lands_at_the_next_poll() -> None:
    tested = link(0.0)
    tested.start(3.0, MB, "a")
    assert tested.deadline_ms == 3.0
    assert tested.advance(3.0) == ["a"]


def test_equal_rests_land_together() -> None:
    tested = link()
    tested.start(0.0, 2 * MB, "a")
    assert tested.advance(1.0) == []
    tested.start(1.0, MB, "b")
    assert landings(tested) == [(3.0, "a"), (3.0, "b")]


def test_a_small_transfer_overtakes() -> None:
    tested = link()
    tested.start(0.0, 2 * MB, "a")
    tested.advance(1.0)
    tested.start(1.0, MB, "b")
    tested.advance(2.0)
    tested.start(2.0, MB // 4, "c")
    assert [(pytest.approx(at), name) for at, name in landings(tested)] == [
        (2.75, "c"),
        (3.25, "a"),
        (3.25, "b"),
    ]


def test_a_late_poll_finds_everything_in_order_of_landing() -> None:
    tested = link()
    for name, size in (("a", 3 * MB), ("b", MB), ("c", 2 * MB)):
        tested.start(0.0, size, name)
    assert tested.advance(100.0) == ["b", "c", "a"]
    assert tested.deadline_ms == math.inf


def test_a_link_counts_what_it_moves_and_how_long_it_is_busy() -> None:
    tested = link()
    tested.start(1.0, 2 * MB, "a")
    tested.advance(10.0)
    tested.start(10.0, MB, "b")
    assert tested.busy_ms(10.5) == 2.5
    tested.advance(20.0)
    assert (tested.transfers, tested.moved_bytes, tested.busy_ms(20.0)) == (2, 3 * MB, 3.0)
