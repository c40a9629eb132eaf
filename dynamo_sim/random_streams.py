"""Random numbers: one stream for each purpose, all from the scenario's seed."""

from __future__ import annotations

from hashlib import blake2b

import numpy as np

_WORD = np.dtype("<u4")


def stream(seed: int, name: str) -> np.random.Generator:
    """The generator of one purpose.

    Streams of different names are independent, so what one purpose draws, and how often, never changes what
    another one gets. The same seed and name always begin the same sequence, on every platform: the bits are
    those of PCG64 seeded by numpy's SeedSequence with the name's BLAKE2 digest as its spawn key.

    Variates that go through the platform's mathematics library (logarithms, powers) may differ in their last
    bit from one platform to another; whoever draws them rounds them to a unit far coarser than that.

    Args:
        seed: `Scenario.seed`, from 0.
        name: the purpose as a path, like ``workload/arrivals`` or ``fleet/startup``.
    """
    words = np.frombuffer(blake2b(name.encode(), digest_size=16).digest(), _WORD)
    sequence = np.random.SeedSequence(seed, spawn_key=[int(word) for word in words])
    return np.random.Generator(np.random.PCG64(sequence))
