"""What an engine asks about the duration of a pass."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol


class PassTiming(Protocol):
    """Durations in milliseconds, each exactly ``sec(whole nanoseconds) * 1000.0`` (`spec 04, 1`)."""

    context_matters: bool
    """Whether `decode_ms` depends on anything but ``kv_tokens``."""

    def warnings(self) -> Iterator[str]:
        """What a reader of the results has to know, one sentence each."""

    def prefill_ms(self, batch: int, new_tokens: int) -> float:
        """Prefill of a batch of ``batch`` >= 1 prompts with ``new_tokens`` >= 0 (floored mean) to compute each."""

    def decode_ms(self, kv_tokens: int, batch: int, context_tokens: int) -> float:
        """One decode step of ``batch`` >= 1 requests.

        ``kv_tokens`` is the part of the KV pool in use (vLLM: whole blocks; SGLang: tokens), ``context_tokens`` the
        floored mean length.
        """
