"""Requests that wait for each other in a circle, which could never start (`spec 08, 8`)."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence


def find_cycle(waits_for: Sequence[Sequence[int]]) -> int | None:
    """The first row met again while it is still open, searching depth first in order, or None."""
    return next(cycles(waits_for, ()), None)


def cycles(waits_for: Sequence[Sequence[int]], gone: Collection[int]) -> Iterator[int]:
    """Rows met again while they are still open, searching depth first in order.

    Args:
        waits_for: the rows each row waits for.
        gone: rows that do not count. Whoever takes a row from here adds it, and all rows that wait for it.
    """
    new, is_open, done = 0, 1, 2
    state = [new] * len(waits_for)
    for root in range(len(waits_for)):
        if state[root] != new or root in gone:
            continue
        state[root] = is_open
        path = [(root, iter(waits_for[root]))]
        while path:
            row, rest = path[-1]
            following = next(rest, None)
            if following is None:
                state[row] = done
                path.pop()
            elif state[following] == is_open:
                yield following
                break  # every row of the path waits for the one that was found
            elif state[following] == new:
                state[following] = is_open
                path.append((following, iter(waits_for[following])))
