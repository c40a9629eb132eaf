"""How long KV is on its way."""

from __future__ import annotations

from typing import Any

import pytest

from dynamo_sim.errors import SimulationError
from dynamo_sim.scenario.engine_args import EngineArgs
from dynamo_sim.serving.handoff import SOURCE_FIRST, Handoff
from dynamo_sim.serving.transfer import Links, TransferTiming
from dynamo_sim.workload.request import Request


def timing(**given: Any) -> TransferTiming:
    return TransferTiming.of(EngineArgs(worker_type="prefill", **given))


def test_a_token_of_1_mb_takes_1_ms_at_1_gb_per_s() -> None:
    assert timing(kv_bytes_per_token=1_000_000, kv_transfer_bandwidth=1.0).delay_ms(8) == 8.0


@pytest.mark.parametrize("given", [{}, {"kv_bytes_per_token": 5}, {"kv_transfer_bandwidth": 2.0}])
def test_a_transfer_is_free_unless_size_and_bandwidth_are_given(given: dict[str, Any]) -> None:
    free = timing(**given)
    assert free.is_free
    assert free.delay_ms(1000) == 0.0


@pytest.mark.parametrize(("mode", "tokens"), [("full_prompt", 10), ("destination_missing", 8)])
def test_the_mode_says_which_tokens_are_sent(mode: str, tokens: int) -> None:
    handoff = Handoff(Request(0, 0.0, 10, 3), SOURCE_FIRST)
    handoff.missing_tokens = 8
    assert timing(kv_transfer_timing_mode=mode).tokens(handoff) == tokens


def test_a_bandwidth_of_0_is_an_error() -> None:
    with pytest.raises(SimulationError, match="bandwidth 0"):
        timing(kv_transfer_bandwidth=0.0).delay_ms(1)


def test_a_transfer_that_never_ends_is_an_error() -> None:
    with pytest.raises(SimulationError, match="raise kv_transfer_bandwidth"):
        timing(kv_bytes_per_token=1 << 60, kv_transfer_bandwidth=1e-300).delay_ms(10)


def test_each_transfer_has_a_link_of_its_own_unless_a_worker_has_few() -> None:
    free = Links(None)
    assert [free.start_ms(0, 5.0, 10.0) for _ in range(3)] == [5.0, 5.0, 5.0]


def test_transfers_of_a_worker_wait_for_its_links_in_turn() -> None:
    links = Links(2)
    assert [links.start_ms(0, 5.0, delay_ms) for delay_ms in (10.0, 4.0, 3.0, 1.0)] == [5.0, 5.0, 9.0, 12.0]
    assert links.start_ms(1, 6.0, 1.0) == 6.0
    assert links.start_ms(0, 100.0, 1.0) == 100.0
