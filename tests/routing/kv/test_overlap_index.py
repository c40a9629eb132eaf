"""The overlap index (spec 06, 3)."""

import random

from dynamo_sim.routing.kv.overlap_index import OverlapIndex


def index_of(*workers: int) -> OverlapIndex:
    index = OverlapIndex()
    for worker in workers:
        index.add_worker(worker)
    return index


def test_overlap_is_the_number_of_leading_blocks_on_each_worker() -> None:
    index = index_of(0, 1, 2)
    index.store(0, [1, 2, 3])
    index.store(1, [1])
    depths = index.depths([1, 2, 3, 4])
    assert depths.by_worker() == {0: 3, 1: 1}
    assert (depths.of(0), depths.of(2)) == (3, 0)
    assert (depths.largest(0b111), depths.largest(0b110), depths.largest(0b100)) == (3, 1, 0)
    assert list(depths.as_vector(0b111)) == [3, 1, 0] and list(depths.as_vector(0b010)) == [0, 1]
    assert not index.depths([9]) and not index.depths([])


def test_an_evicted_block_shortens_the_overlap_of_its_worker_only() -> None:
    index = index_of(0, 1)
    index.store(0, [1, 2])
    index.store(1, [1, 2])
    index.remove(0, [2])
    assert index.depths([1, 2]).by_worker() == {0: 1, 1: 2}


def test_a_forgotten_worker_has_no_overlap() -> None:
    index = index_of(0, 1)
    index.store(0, [1])
    index.store(1, [1])
    index.forget_worker(0)
    assert index.depths([1]).by_worker() == {1: 1}


def test_bits_of_workers_that_are_gone_are_swept_out() -> None:
    index = index_of(*range(40))
    for worker in range(40):
        index.store(worker, [1])
    for worker in range(39):
        index.forget_worker(worker)
    assert index.depths([1]).by_worker() == {39: 1}
    assert max(index._holders.values()).bit_count() < 20


def test_depths_found_by_bisection_are_those_of_a_walk() -> None:
    draw = random.Random(1)
    for _ in range(300):
        workers, length = draw.randint(1, 70), draw.randint(1, 40)
        index, prompt = index_of(*range(workers)), list(range(100, 100 + length))
        held = {worker: draw.choice([0, 0, draw.randint(0, length), length]) for worker in range(workers)}
        for worker, depth in held.items():
            index.store(worker, prompt[:depth])
        expected = {worker: depth for worker, depth in held.items() if depth}
        depths = index.depths(prompt)
        assert depths.by_worker() == expected
        some = draw.getrandbits(workers)
        vector = depths.as_vector(some)
        assert list(vector) == [held[w] if some >> w & 1 else 0 for w in range(some.bit_length())]
