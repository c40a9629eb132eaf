"""The reproducible draws of speculative decoding (`spec 04, 6.3`)."""

from __future__ import annotations

from itertools import islice

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dynamo_sim.timing.chacha import FIRST_BATCH, chacha12_u64, key_words
from dynamo_sim.timing.speculative import BurstSampler

MASK_32 = (1 << 32) - 1
ROUNDS = (
    *((0, 4, 8, 12), (1, 5, 9, 13), (2, 6, 10, 14), (3, 7, 11, 15)),
    *((0, 5, 10, 15), (1, 6, 11, 12), (2, 7, 8, 13), (3, 4, 9, 14)),
)


def plain_block(key: list[int], number: int) -> list[int]:
    """The eight numbers of one block, worked out word by word."""
    initial = [0x61707865, 0x3320646E, 0x79622D32, 0x6B206574, *key, number & MASK_32, number >> 32, 0, 0]
    words = list(initial)
    for _ in range(6):
        for a, b, c, d in ROUNDS:
            for to, other, mixed, bits in ((a, b, d, 16), (c, d, b, 12), (a, b, d, 8), (c, d, b, 7)):
                words[to] = (words[to] + words[other]) & MASK_32
                turned = words[mixed] ^ words[to]
                words[mixed] = (turned << bits | turned >> (32 - bits)) & MASK_32
    out = [(word + start) & MASK_32 for word, start in zip(words, initial, strict=True)]
    return [low | high << 32 for low, high in zip(out[0::2], out[1::2], strict=True)]


@pytest.mark.parametrize(
    ("seed", "numbers"),
    [
        (0, [13486662071293341567, 14267822071968393595, 476749353381333526, 10775836403224147664]),
        (42, [9713269763989775522, 10011513049433592189, 11740708795755607249, 7487565853151867058]),
        (43, [13888656601109899510, 7748424868751293521, 7281802212127063514, 6945627241540686980]),
    ],
)
def test_check_values_of_the_stream(seed: int, numbers: list[int]) -> None:
    assert list(islice(chacha12_u64(seed), 4)) == numbers


def test_key_words_of_seed_42() -> None:
    expected = "7ba18fa4 0a3d3258 cca1b8ea b8140169 75c88c2b 54f7b418 a16e448d f220dfe4"
    assert " ".join(f"{word:08x}" for word in key_words(42)) == expected


@settings(max_examples=20)
@given(seed=st.integers(0, 2**64 - 1))
def test_blocks_worked_out_at_once_are_those_worked_out_alone(seed: int) -> None:
    blocks = 3 * FIRST_BATCH + 5  # the third batch has begun
    alone = [number for block in range(blocks) for number in plain_block(key_words(seed), block)]
    assert list(islice(chacha12_u64(seed), 8 * blocks)) == alone


def test_worked_example_with_the_default_rates() -> None:
    sampler = BurstSampler((0.85, 0.3), seed=42, worker_id=0)
    assert [sampler.burst(9), sampler.burst(9)] == [2, 2]


def test_a_worker_s_stream_is_that_of_the_seed_plus_its_id() -> None:
    rates = (0.5, 0.5, 0.5)
    first, second = BurstSampler(rates, 7, 3), BurstSampler(rates, 10, 0)
    assert [first.burst(9) for _ in range(50)] == [second.burst(9) for _ in range(50)]
    assert BurstSampler(rates, 2**64 - 1, 1).burst(9) == BurstSampler(rates, 0, 0).burst(9)


def test_a_certain_draft_draws_nothing() -> None:
    certain, other = BurstSampler((1.0, 0.5, 1.0), 1, 0), BurstSampler((0.5, 1.0), 1, 0)
    for _ in range(50):
        assert (certain.burst(9) > 2) == (other.burst(9) > 1)
    assert BurstSampler((1.0,) * 5, 1, 0).burst(9) == 6


def test_an_impossible_draft_draws_once() -> None:
    never, stream = BurstSampler((0.0, 1.0), 5, 0), chacha12_u64(5)
    assert [never.burst(9) for _ in range(3)] == [1, 1, 1]
    assert next(never._stream) == list(islice(stream, 4))[3]


def test_a_burst_is_cut_after_drawing() -> None:
    cut, whole = BurstSampler((0.9, 0.9), 11, 0), BurstSampler((0.9, 0.9), 11, 0)
    for _ in range(50):
        assert cut.burst(1) == 1
        whole.burst(9)
    assert cut.burst(9) == whole.burst(9)
    assert next(cut._stream) == next(whole._stream)


def test_nothing_left_draws_nothing() -> None:
    sampler = BurstSampler((0.5,), 0, 0)
    assert sampler.burst(0) == 0
    assert next(sampler._stream) == 13486662071293341567


def test_acceptance_follows_the_rates() -> None:
    sampler = BurstSampler((0.8, 0.25), 123, 0)
    bursts = [sampler.burst(9) for _ in range(20_000)]
    assert sum(burst > 1 for burst in bursts) / 20_000 == pytest.approx(0.8, abs=0.01)
    assert sum(burst > 2 for burst in bursts) / 20_000 == pytest.approx(0.8 * 0.25, abs=0.01)
