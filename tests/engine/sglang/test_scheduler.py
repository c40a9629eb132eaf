"""The SGLang-style scheduler: the worked examples of `spec 05, 16`, and what a person would notice of it."""

from __future__ import annotations

from itertools import pairwise

import pytest

from dynamo_sim.engine.sglang import memory
from dynamo_sim.engine.sglang.sequence import SglangSequence
from tests.engine.sglang.driver import ends, engine, request, run

PASSES = pytest.mark.parametrize("max_passes", [1, 1_000_000])


@PASSES
def test_a_lone_request_leaves_its_tokens_in_the_tree(max_passes: int) -> None:
    scheduler = engine(block_size=1, num_gpu_blocks=256)
    lone = request(0, 0.0, 10, 4)
    steps = run(scheduler, [lone], max_passes=max_passes)
    assert ends(steps) == [24.463786, 32.477004, 40.692165, 49.108484000000004]
    assert (lone.first_token_ms, lone.second_token_ms, lone.last_token_ms) == (
        24.463786,
        32.477004,
        ends(steps)[-1],
    )
    assert lone.emitted_tokens == 4
    assert (scheduler.cache.free, scheduler.cache.evictable) == (242, 14)


@PASSES
def test_every_chunk_of_a_prompt_is_an_admission(max_passes: int) -> None:
    scheduler = engine(block_size=4, num_gpu_blocks=64, sglang={"chunked_prefill_size": 8})
    lone = request(0, 0.0, 20, 3)
    steps = run(scheduler, [lone], max_passes=max_passes)
    assert ends(steps) == [16.622913999999998, 33.245827999999996, 59.610414999999996, 69.607715, 79.799103]
    assert [step.admissions for step in steps][:3] == [1, 1, 1]
    assert (lone.first_reused_tokens, lone.reused_tokens) == (0, 16)
    assert (scheduler.cache.free, scheduler.cache.evictable) == (236, 20)


@PASSES
def test_room_for_a_prompt_is_made_before_the_tree_is_asked_for_it(max_passes: int) -> None:
    scheduler = engine(block_size=4, num_gpu_blocks=4)
    first = request(0, 0.0, 10, 3, [(1, 4), (2, 4), (3, 2)])
    second = request(1, 1.0, 10, 3, [(1, 4), (2, 4), (4, 2)])
    steps = run(scheduler, [first, second], max_passes=max_passes)
    assert ends(steps)[:3] == [46.094859, 76.800562, 108.569312]
    assert second.first_admit_ms == 108.569312
    assert second.reused_tokens == 0  # the edge that held the shared beginning was evicted for it


@PASSES
def test_the_oldest_of_those_that_have_generated_least_is_retracted(max_passes: int) -> None:
    scheduler = engine(
        block_size=4,
        num_gpu_blocks=6,
        sglang={"schedule_conservativeness": 0.0, "clip_max_new_tokens": 1},
    )
    scheduler.records_stats = True
    first, second = request(0, 0.0, 8, 6), request(1, 0.0, 8, 6)
    steps = run(scheduler, [first, second], max_passes=max_passes)
    assert (second.last_token_ms, first.last_token_ms) == (199.066859, 269.50377)
    retraction = next(step for step in steps if step.start_ms == 145.31363)
    assert (retraction.stats.num_decode_requests, retraction.stats.sum_decode_kv_tokens) == (2, 24)
    assert (retraction.tokens, retraction.stats.num_queued_decode) == (1, 1)
    assert first.first_admit_ms == 0.0 and first.reused_tokens == 0
    assert scheduler.preemptions == 1


@PASSES
def test_outputs_to_come_are_reserved_for(max_passes: int) -> None:
    scheduler = engine(block_size=4, num_gpu_blocks=9)
    runner, other = request(0, 0.0, 8, 20), request(1, 1.0, 12, 4)
    run(scheduler, [runner, other], max_passes=max_passes)
    assert runner.last_token_ms == other.first_admit_ms == 521.663191


@PASSES
def test_a_cached_first_piece_takes_no_time_and_later_pieces_are_not_looked_up(max_passes: int) -> None:
    scheduler = engine(block_size=4, num_gpu_blocks=16, sglang={"chunked_prefill_size": 8})
    content = [(1, 4), (2, 4), (3, 4)]
    first, again = request(0, 0.0, 12, 1, content), request(1, 100.0, 12, 1, content)
    steps = run(scheduler, [first, again], max_passes=max_passes)
    assert [(s.start_ms, s.end_ms, s.admissions) for s in steps[-2:]] == [
        (100.0, 100.0, 1),
        (100.0, 131.524113, 1),
    ]
    assert (scheduler.cache.free, scheduler.cache.evictable) == (52, 12)


def test_a_whole_prompt_can_be_cached() -> None:
    scheduler = engine(block_size=4, num_gpu_blocks=16)
    first, again = request(0, 0.0, 8, 1, [(1, 8)]), request(1, 100.0, 8, 1, [(1, 8)])
    run(scheduler, [first, again])
    assert again.reused_tokens == 8


def test_a_planned_output_can_be_found_by_a_later_prompt() -> None:
    scheduler = engine(block_size=4, num_gpu_blocks=64)
    speaker = request(0, 0.0, 4, 9, [(1, 4)], planned_output=(7,) * 8)
    listener = request(1, 500.0, 16, 1, [(1, 4), (7, 8), (2, 4)])
    run(scheduler, [speaker, listener])
    assert speaker.emitted_tokens == 8  # the plan counts, not the requested length
    assert listener.reused_tokens == 12


def test_a_planned_output_can_be_found_while_it_is_spoken() -> None:
    scheduler = engine(block_size=4, num_gpu_blocks=64)
    speaker = request(0, 0.0, 4, 40, [(1, 4)], planned_output=(7,) * 40)
    listener = request(1, 100.0, 16, 1, [(1, 4), (7, 12)])
    run(scheduler, [speaker, listener])
    assert speaker.last_token_ms is not None and speaker.last_token_ms > 100.0
    assert listener.reused_tokens == 12


def test_slots_given_back_twice_make_more_room_than_there_is() -> None:
    scheduler = engine(block_size=4, num_gpu_blocks=64)
    lone = request(0, 0.0, 8, 1, [(1, 8)])
    run(scheduler, [lone])
    newcomer = SglangSequence(request(1, 0.0, 8, 1, [(1, 8)]), scheduler.interner)
    assert memory.begin(scheduler.cache, newcomer, 8) == 8
    memory.retract(scheduler.cache, newcomer)
    assert scheduler.cache.available == scheduler.total_kv_tokens + 8
    assert scheduler.used_kv_tokens == 0


def test_lpm_serves_the_longest_cached_prefix_first() -> None:
    scheduler = engine(block_size=4, num_gpu_blocks=64, max_num_seqs=1, sglang={"schedule_policy": "lpm"})
    first = request(0, 0.0, 16, 2, [(1, 16)])
    stranger, relative = request(1, 1.0, 16, 2, [(2, 16)]), request(2, 2.0, 16, 2, [(1, 12), (3, 4)])
    run(scheduler, [first, stranger, relative])
    assert relative.first_admit_ms < stranger.first_admit_ms
    assert relative.reused_tokens == 12


@PASSES
def test_gaps_between_tokens_are_those_of_the_passes(max_passes: int) -> None:
    scheduler = engine(block_size=4, num_gpu_blocks=64)
    requests = [request(0, 0.0, 8, 9), request(1, 30.0, 8, 4)]
    times = ends(run(scheduler, requests, max_passes=max_passes))
    gaps, counts = scheduler.gaps.arrays()
    assert counts.sum() == 8 + 3
    assert float((gaps * counts).sum()) == pytest.approx(
        sum(r.last_token_ms - r.first_token_ms for r in requests)
    )
    assert set(gaps) <= {later - earlier for earlier, later in pairwise(times)}


def test_an_unfinished_request_keeps_what_was_seen_of_it() -> None:
    scheduler = engine(block_size=4, num_gpu_blocks=64)
    lone = request(0, 0.0, 8, 50)
    scheduler.receive(lone)
    now = 0.0
    for _ in range(3):
        step = scheduler.start(now, 1)
        scheduler.finish(step)
        now = step.end_ms
    scheduler.close()
    assert (lone.emitted_tokens, lone.last_token_ms) == (3, now)


def test_a_stretch_can_be_cut_at_any_pass() -> None:
    whole = ends(run(engine(block_size=4, num_gpu_blocks=64), [request(0, 0.0, 8, 30)]))
    for at in range(1, 29):
        scheduler = engine(block_size=4, num_gpu_blocks=64)
        scheduler.receive(request(0, 0.0, 8, 30))
        scheduler.finish(first := scheduler.start(0.0, 1))
        stretch = scheduler.start(first.end_ms, 1000)
        if stretch.cut(whole[at]):
            assert stretch.end_ms == whole[at]
        scheduler.finish(stretch)
        assert ends([first, stretch, *run(scheduler, now_ms=stretch.end_ms)]) == whole


def test_a_batch_of_a_thousand_costs_one_entry_a_pass() -> None:
    scheduler = engine(block_size=16, num_gpu_blocks=1 << 20, max_num_seqs=None)
    steps = run(scheduler, [request(i, 0.0, 8, 4000) for i in range(1000)])
    passes = len(ends(steps))
    assert passes == 4001  # the chunk budget takes half of them in the first pass, half in the second
    assert len(scheduler.gaps._counts) + len(scheduler.gaps._ends_ms) <= passes + len(steps)
    assert len(scheduler.cache.root.children) == 1000
    assert all(len(node.children) <= 1 for node in scheduler.cache.root.children.values())


def test_every_try_of_a_stuck_worker_lowers_its_ratio() -> None:
    """So it matters how often the fleet tries it (`spec 01, 6.3`)."""
    scheduler = engine(num_gpu_blocks=16, block_size=1)
    scheduler.receive(request(0, 0.0, 100, 1))
    ratios = []
    for _ in range(3):
        step = scheduler.start(0.0, 1)
        scheduler.finish(step)
        assert not step.progress
        ratios.append(scheduler.ratio.value)
    assert ratios[0] > ratios[1] > ratios[2]
