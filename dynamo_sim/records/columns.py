"""Requests as columns: one NumPy array per observed quantity."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from operator import attrgetter

import numpy as np
from numpy.typing import NDArray

from dynamo_sim.workload.request import Request

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class RequestColumns:
    """What was observed of requests, one element a request, in their order.

    Times are in ms of virtual time and NaN where nothing was observed; lengths are in tokens; ``preemptions`` are
    counts. The derived latencies are those of `spec 09, 3`, NaN where they are not defined.
    """

    arrival_ms: Floats
    first_admit_ms: Floats
    first_token_ms: Floats
    second_token_ms: Floats
    last_token_ms: Floats
    ended_ms: Floats
    input_tokens: Ints
    output_tokens: Ints
    emitted_tokens: Ints
    first_reused_tokens: Ints
    reused_tokens: Ints
    preemptions: Ints

    @classmethod
    def of(cls, requests: Sequence[Request]) -> RequestColumns:
        """Read the columns off ``requests``."""

        def times(name: str) -> Floats:
            # Through an object array: that is how None becomes NaN.
            return np.fromiter(map(attrgetter(name), requests), object, len(requests)).astype(np.float64)

        def counts(name: str) -> Ints:
            return np.fromiter(map(attrgetter(name), requests), np.int64, len(requests))

        reused = counts("reused_tokens")
        if requests and requests[0].handoff is not None:  # the largest reuse on both sides (`spec 07, 14`)
            there = (r.handoff.decode_reused_tokens or 0 if r.handoff is not None else 0 for r in requests)
            reused = np.maximum(reused, np.fromiter(there, np.int64, len(requests)))

        return cls(
            arrival_ms=times("arrival_ms"),
            first_admit_ms=times("first_admit_ms"),
            first_token_ms=times("first_token_ms"),
            second_token_ms=times("second_token_ms"),
            last_token_ms=times("last_token_ms"),
            ended_ms=times("ended_ms"),
            input_tokens=counts("input_tokens"),
            output_tokens=counts("output_tokens"),
            emitted_tokens=counts("emitted_tokens"),
            first_reused_tokens=counts("first_reused_tokens"),
            reused_tokens=reused,
            preemptions=counts("preemptions"),
        )

    def __len__(self) -> int:
        return len(self.arrival_ms)

    def where(self, mask: NDArray[np.bool_]) -> RequestColumns:
        """The requests for which ``mask`` holds."""
        return RequestColumns(*(getattr(self, name)[mask] for name in self.__slots__))

    @property
    def counting(self) -> NDArray[np.bool_]:
        """Which requests the summary counts: admitted, with a token, finished or not (`spec 09, 1`)."""
        return ~(np.isnan(self.first_admit_ms) | np.isnan(self.first_token_ms))

    @property
    def queue_ms(self) -> Floats:
        """From the arrival to the first admission."""
        return np.maximum(self.first_admit_ms - self.arrival_ms, 0.0)

    @property
    def ttft_ms(self) -> Floats:
        """From the arrival to the first token."""
        return np.maximum(self.first_token_ms - self.arrival_ms, 0.0)

    @property
    def ttst_ms(self) -> Floats:
        """From the first to the second token."""
        return np.maximum(self.second_token_ms - self.first_token_ms, 0.0)

    @property
    def tpot_ms(self) -> Floats:
        """Mean gap between the tokens of a request; for at least two tokens."""
        gaps = np.where(self.emitted_tokens > 1, self.emitted_tokens - 1, np.nan)
        return np.maximum(self.last_token_ms - self.first_token_ms, 0.0) / gaps

    @property
    def e2e_ms(self) -> Floats:
        """From the arrival to the last token."""
        return np.maximum(self.last_token_ms - self.arrival_ms, 0.0)
