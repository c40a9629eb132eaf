"""Calls of a user's own code."""

from __future__ import annotations

from typing import Any

import pytest

from dynamo_sim.errors import SimulationError
from dynamo_sim.user_code.calls import called


class Failure(SimulationError):
    """What a caller makes of a sentence."""


def raising(error: BaseException) -> Any:
    def function() -> None:
        raise error

    return function


def test_an_answer_passes() -> None:
    assert called(Failure, divmod, 7, 2) == (3, 1)


@pytest.mark.parametrize(
    ("error", "line"),
    [
        (KeyError("x"), "raised KeyError: 'x' (test_calls.py, line 19)"),
        (SystemExit(3), "raised SystemExit: 3 (test_calls.py, line 19)"),
        (SimulationError("no such metric"), "failed: no such metric"),
        (Failure("said so itself"), "said so itself"),
    ],
)
def test_what_is_raised_becomes_one_line(error: BaseException, line: str) -> None:
    with pytest.raises(Failure) as caught:
        called(Failure, raising(error))
    assert str(caught.value) == line


def test_the_end_by_hand_stays_what_it_is() -> None:
    with pytest.raises(KeyboardInterrupt):
        called(Failure, raising(KeyboardInterrupt()))
