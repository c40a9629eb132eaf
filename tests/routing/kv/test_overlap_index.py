"""The overlap index (spec 06, 3)."""

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
    assert index.depths([1, 2, 3, 4]) == {0: 3, 1: 1}
    assert index.depths([9]) == {} == index.depths([])


def test_an_evicted_block_shortens_the_overlap_of_its_worker_only() -> None:
    index = index_of(0, 1)
    index.store(0, [1, 2])
    index.store(1, [1, 2])
    index.remove(0, [2])
    assert index.depths([1, 2]) == {0: 1, 1: 2}


def test_a_forgotten_worker_has_no_overlap() -> None:
    index = index_of(0, 1)
    index.store(0, [1])
    index.store(1, [1])
    index.forget_worker(0)
    assert index.depths([1]) == {1: 1}
