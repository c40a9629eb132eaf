"""When requests got their tokens, and the gaps between them."""

from __future__ import annotations

from dataclasses import dataclass, field

from dynamo_sim.engine.token_log import HiddenTokenLog, TokenLog
from dynamo_sim.workload.request import Request
from tests.helpers import request


@dataclass(eq=False)
class Source:
    request: Request = field(default_factory=request)
    generated: int = 0
    emitted_ms: float = 0.0


def emit(log: TokenLog, source: Source, *times_ms: float) -> None:
    for at_ms in times_ms:
        source.generated += 1
        log.token(source, at_ms)


def times(source: Source) -> tuple[float | None, ...]:
    one = source.request
    return one.first_token_ms, one.second_token_ms, one.last_token_ms


def gaps(log: TokenLog) -> list[tuple[float, int]]:
    values, counts = log.gaps.arrays()
    return sorted(zip(values.tolist(), counts.tolist(), strict=True))


def test_a_sequence_alone() -> None:
    log, one = TokenLog(), Source()
    emit(log, one, 10.0, 15.0, 22.0)
    log.last_token(one, 22.0)
    assert times(one) == (10.0, 15.0, 22.0)
    assert one.request.emitted_tokens == 3
    assert gaps(log) == [(5.0, 1), (7.0, 1)]


def test_a_member_gets_its_second_token_with_the_group() -> None:
    log, one, other = TokenLog(), Source(), Source()
    emit(log, one, 10.0)
    emit(log, other, 4.0, 10.0)
    log.join([one, other])
    log.group_pass(13.0, 2)
    log.group_stretch([15.0, 18.0], 2)
    assert one.request.second_token_ms == 13.0
    assert other.request.second_token_ms == 10.0
    assert gaps(log) == [(2.0, 2), (3.0, 2), (3.0, 2), (6.0, 1)]


def test_a_member_that_leaves_with_one_token_gets_its_second_one_alone() -> None:
    log, one = TokenLog(), Source()
    emit(log, one, 10.0)
    log.join([one])
    log.leave([one])
    log.group_pass(13.0, 1)
    emit(log, one, 14.0)
    assert one.request.second_token_ms == 14.0


def test_the_end_of_the_run_notes_what_was_generated_so_far() -> None:
    log, one, silent = TokenLog(), Source(), Source()
    emit(log, one, 10.0, 12.0)
    log.unfinished([one, silent])
    assert (one.request.emitted_tokens, one.request.last_token_ms) == (2, 12.0)
    assert (silent.request.emitted_tokens, silent.request.last_token_ms) == (0, None)


def test_hidden_tokens_leave_no_trace() -> None:
    log, one = HiddenTokenLog(), Source()
    emit(log, one, 10.0)
    log.join([one])
    log.group_pass(12.0, 1)
    log.group_stretch([13.0, 14.0], 1)
    log.leave([one])
    log.last_token(one, one.emitted_ms)
    assert one.emitted_ms == 14.0
    assert times(one) == (None, None, None)
    assert one.request.emitted_tokens == 0
    assert gaps(log) == []


def test_passes_of_a_stretch_can_be_noted_before_it_is_over() -> None:
    log, one = TokenLog(), Source()
    emit(log, one, 10.0)
    log.join([one])
    ends_ms = [12.0, 15.0, 19.0]
    log.group_stretch_until(11.0, ends_ms, 1)
    assert log.gaps.since((0, 0, 0), 100.0)[0] == []
    log.group_stretch_until(15.0, ends_ms, 1)
    found, mark = log.gaps.since((0, 0, 0), 100.0)
    assert found == [(12.0, 2.0, 1), (15.0, 3.0, 1)]
    assert one.request.second_token_ms == 12.0
    log.group_stretch(ends_ms, 1)
    assert log.gaps.since(mark, 100.0)[0] == [(19.0, 4.0, 1)]
