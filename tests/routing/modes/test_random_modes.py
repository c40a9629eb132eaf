"""Modes that draw workers."""

from __future__ import annotations

from collections import Counter
from itertools import combinations
from math import comb

from tests.routing.modes.fakes import FakePool, prompt, router, send


def test_random_takes_every_worker_as_often_and_repeats_with_its_seed() -> None:
    ids = tuple(range(8))
    drawn = [router({"mode": "random"}, seed=3).pick(ids) for _ in range(3)]
    assert len(set(drawn)) == 1
    made = router({"mode": "random"}, seed=3)
    counts = Counter(made.pick(ids) for _ in range(8000))
    assert _chi_square(counts, [1000.0] * 8) < 24.3  # 7 degrees of freedom, 0.1 %


def test_two_choices_take_the_less_loaded_of_a_pair_and_every_pair_as_often() -> None:
    made, pool = router({"mode": "power_of_two_choices"}, seed=5), FakePool.of(5)
    for worker_id in pool.workers:
        pool.set(worker_id, in_flight=worker_id)
    counts = Counter(made.choose(prompt(), pool, 0.0) for _ in range(8000))
    # Worker k is the less loaded one of the pairs with a higher id.
    pairs = Counter(min(pair) for pair in combinations(range(5), 2))
    assert set(counts) == set(pairs) and 4 not in counts
    assert _chi_square(counts, [8000 * pairs[k] / comb(5, 2) for k in range(4)]) < 16.3  # 3 degrees, 0.1 %


def test_two_choices_of_one_worker_are_that_worker() -> None:
    pool = FakePool.of(1)
    assert send(router({"mode": "power_of_two_choices"}), pool, prompt()) == 0


def _chi_square(counts: Counter[int], expected: list[float]) -> float:
    return sum((counts[k] - mean) ** 2 / mean for k, mean in enumerate(expected))
