"""Signals that end a command: each is noted and raised, so that unfinished files are removed on the way out.

Python drops an exception that is raised while it disposes of an object. The note stays, and `check` finds it:
at the latest before anything that was written is put in its place.
"""

from __future__ import annotations

import signal
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

WORDS = {"SIGINT": "interrupted", "SIGTERM": "terminated", "SIGHUP": "hung up"}
"""The signals that are heeded, and what a command says of each when it ends."""

TWICE_S = 1.0
"""A signal often comes twice; what follows the first this soon changes nothing."""


class Ended(KeyboardInterrupt):
    """The command was told to end by signal ``number``."""

    def __init__(self, number: int = signal.SIGINT) -> None:
        self.number = number
        super().__init__(number)

    def __str__(self) -> str:
        return WORDS[signal.Signals(self.number).name]


class _Note:
    number: int | None = None
    at_s = 0.0
    is_held_back = False


def check() -> None:
    """Raise `Ended` if a signal has come, also if the exception it raised was lost."""
    if _Note.number is not None:
        raise Ended(_Note.number)


@contextmanager
def held_back() -> Iterator[None]:
    """What must not stop half-way: a signal that comes inside is noted, and raised by the next `check`."""
    _Note.is_held_back = True
    try:
        yield
    finally:
        _Note.is_held_back = False


@contextmanager
def heeding_signals() -> Iterator[None]:
    """Heed them inside; those that are ignored stay so (as nohup wants it), and threads get none."""
    _Note.number = None
    before: dict[int, Any] = {}
    if threading.current_thread() is threading.main_thread():
        numbers = [getattr(signal, name) for name in WORDS if hasattr(signal, name)]  # Windows has no SIGHUP
        before = {number: signal.getsignal(number) for number in numbers}
        for number, handler in before.items():
            if handler is not signal.SIG_IGN:
                signal.signal(number, _end)
    hook = sys.unraisablehook
    sys.unraisablehook = lambda lost: None if isinstance(lost.exc_value, Ended) else hook(lost)
    try:
        yield
    finally:
        sys.unraisablehook = hook
        for number, handler in before.items():
            if handler is not None:  # None: it was not set from Python
                signal.signal(number, handler)
        _Note.number = None


def _end(number: int, frame: object) -> None:
    now_s = time.monotonic()
    if _Note.number is not None and now_s - _Note.at_s < TWICE_S:
        return
    _Note.number, _Note.at_s = _Note.number or number, now_s
    if not _Note.is_held_back:
        raise Ended(_Note.number)
