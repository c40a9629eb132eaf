"""Latency a worker is heading for, from its last pass (`spec 10, 6.5`, load)."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from dynamo_sim.autoscaling.policies.sla.capacity import Traffic
from dynamo_sim.autoscaling.policies.sla.pass_model import PassModel


@dataclass(frozen=True, slots=True)
class WorkerLoad:
    """What a worker has to do: scheduled and queued decodes with their tokens, and queued prompt tokens."""

    decodes: float = 0.0
    decode_kv: float = 0.0
    queued_decodes: float = 0.0
    queued_decode_kv: float = 0.0
    queued_prefill: float = 0.0

    @classmethod
    def of_pass(cls, row: Mapping[str, Any]) -> WorkerLoad:
        """From a forward-pass snapshot."""
        return cls(
            row["num_decode_requests"],
            row["sum_decode_kv_tokens"],
            row["num_queued_decode"],
            row["sum_queued_decode_kv_tokens"],
            row["sum_queued_prefill_tokens"],
        )

    @property
    def kv_tokens(self) -> float:
        """All tokens that are or will be held."""
        return self.decode_kv + self.queued_decode_kv + self.queued_prefill


@dataclass(frozen=True, slots=True)
class Estimator:
    """Estimates for one kind of worker and the present traffic."""

    model: PassModel
    traffic: Traffic
    max_num_batched_tokens: int | None

    def ttft_ms(
        self, load: WorkerLoad, queue_scale: float = 1.0, decode_scale: float = 1.0, all_decodes: bool = False
    ) -> float:
        """Time of the queued prompts and one more, in chunks beside the decodes.

        Args:
            load: of the worker.
            queue_scale: factor of the queued prompts; 0 leaves the one request itself.
            decode_scale: factor of the decodes beside it.
            all_decodes: whether queued decodes run beside it, too.
        """
        share = self.traffic.new_tokens / self.traffic.isl if self.traffic.isl > 0 else 1.0
        tokens = (load.queued_prefill * queue_scale + self.traffic.isl) * share
        requests, kv = load.decodes, load.decode_kv
        if all_decodes:
            requests, kv = requests + load.queued_decodes, kv + load.queued_decode_kv
        chunk = self.max_num_batched_tokens or math.inf
        full = math.floor(tokens / chunk) if math.isfinite(chunk) else 0
        rest = tokens - full * chunk if full else tokens
        beside = requests * decode_scale, kv * decode_scale
        seconds = full * float(self.model.seconds(chunk, *beside)) if full else 0.0
        if rest > 0:
            seconds += float(self.model.seconds(rest, *beside))
        return seconds * 1000

    def itl_ms(self, load: WorkerLoad, scale: float = 1.0, prompts_too: bool = False) -> float:
        """Pass time with all decodes and one more mean sequence, for each token.

        Args:
            load: of the worker.
            scale: factor of what it has.
            prompts_too: whether queued prompts count as tokens that will be held.
        """
        kv = load.decode_kv + load.queued_decode_kv + (load.queued_prefill if prompts_too else 0.0)
        requests = (load.decodes + load.queued_decodes) * scale + 1
        seconds = float(self.model.seconds(0.0, requests, kv * scale + self.traffic.context))
        return seconds * 1000 / self.traffic.accept_length
