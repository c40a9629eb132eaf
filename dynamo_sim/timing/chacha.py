"""The reference's random numbers: ChaCha with 12 rounds, seeded from 64 bits (`spec 04, 6.3`).

The blocks of a stream do not depend on each other, so many are worked out at once; the plain form of one
block is in the tests.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

DOUBLE_ROUNDS = 6
# Blocks, of 8 numbers each. Below the first size a batch costs the same, above the largest nothing is won.
FIRST_BATCH = 64
MAX_BATCH = 512

_CONSTANTS = (0x61707865, 0x3320646E, 0x79622D32, 0x6B206574)
_MASK_32 = (1 << 32) - 1
_MASK_64 = (1 << 64) - 1

Words = npt.NDArray[np.uint32]


def key_words(seed: int) -> list[int]:
    """The eight 32-bit key words that stretch the 64-bit ``seed``."""
    state = seed
    words = []
    for _ in range(8):
        state = (state * 6364136223846793005 + 11634580027462260723) & _MASK_64
        mixed = (((state >> 18) ^ state) >> 27) & _MASK_32
        turn = state >> 59
        words.append((mixed >> turn | mixed << (32 - turn)) & _MASK_32)
    return words


def chacha12_u64(seed: int) -> Iterator[int]:
    """The endless stream of 64-bit numbers of ``seed`` (0 <= seed < 2**64)."""
    key = key_words(seed)
    first, count = 0, FIRST_BATCH
    while True:
        yield from _numbers(key, first, count)
        first += count
        count = min(2 * count, MAX_BATCH)


def _numbers(key: list[int], first: int, count: int) -> list[int]:
    """The 8 * ``count`` numbers of the blocks ``first`` and following."""
    blocks = np.arange(first, first + count, dtype=np.uint64)
    initial = np.zeros((4, 4, count), dtype=np.uint32)
    initial[0] = np.array(_CONSTANTS, dtype=np.uint32)[:, None]
    initial[1:3] = np.array(key, dtype=np.uint32).reshape(2, 4, 1)
    initial[3, 0] = (blocks & np.uint64(_MASK_32)).astype(np.uint32)
    initial[3, 1] = (blocks >> np.uint64(32)).astype(np.uint32)
    rows = [row.copy() for row in initial]
    for _ in range(DOUBLE_ROUNDS):
        _quarter_rounds(rows)  # on the four columns at once
        _shift(rows, 1)
        _quarter_rounds(rows)  # on the four diagonals, which now stand in the columns
        _shift(rows, -1)
    words = (np.stack(rows) + initial).reshape(16, count).T.astype(np.uint64)
    numbers: list[int] = (words[:, 0::2] | words[:, 1::2] << np.uint64(32)).ravel().tolist()
    return numbers


def _quarter_rounds(rows: list[Words]) -> None:
    a, b, c, d = rows
    a += b
    d ^= a
    _rotate(d, 16)
    c += d
    b ^= c
    _rotate(b, 12)
    a += b
    d ^= a
    _rotate(d, 8)
    c += d
    b ^= c
    _rotate(b, 7)


def _rotate(words: Words, bits: int) -> None:
    low = words >> np.uint32(32 - bits)
    np.left_shift(words, np.uint32(bits), out=words)
    words |= low


def _shift(rows: list[Words], step: int) -> None:
    """Turn row i left by i * ``step`` places."""
    for number in (1, 2, 3):
        rows[number] = np.roll(rows[number], -number * step, axis=0)
