"""The cache-aware router: names, defaults and checks of the reference (spec 06, 10)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from dynamo_sim.scenario.base import CheckedSpec, Fraction, NonNegative, Path, PositiveCount
from dynamo_sim.scenario.routing.policy_classes import PolicyFileSource, PolicyProfile

NEVER_USED = (
    "router_track_output_blocks",
    "use_kv_events",
    "router_ttl_secs",
    "router_predicted_ttl_secs",
    "host_cache_hit_weight",
    "disk_cache_hit_weight",
    "shared_cache_multiplier",
    "shared_cache_type",
    "durable_kv_events",
    "use_remote_indexer",
    "serve_indexer",
    "router_snapshot_threshold",
    "router_event_threads",
    "router_replica_sync",
    "router_reset_states",
    "skip_initial_worker_wait",
)
"""Keys that are checked, and change nothing in a simulation."""


class KvRouting(CheckedSpec):
    """Each request goes where its prefix is cached and the load is low."""

    mode: Literal["kv_router"]
    """How workers are chosen."""

    tie_break: Literal["random", "lowest_id"] = "random"
    """Who is taken of several workers with the smallest cost; random draws with the seed of the run."""

    overlap_score_credit: Fraction = 1.0
    """How much of the cached blocks is taken off the prefill load of a worker."""

    overlap_score_credit_decay: NonNegative = 0.0
    """How fast that credit fades on workers with more prefill load than the least loaded one; 0 = not at all."""

    prefill_load_scale: NonNegative = 1.0
    """Weight of the prefill load beside the active blocks."""

    overlap_score_weight: NonNegative | None = None
    """Older name of prefill_load_scale, which it overrides; 0 sets overlap_score_credit to 0 too."""

    router_temperature: NonNegative = 0.0
    """0 = the worker with the smallest cost; above, random, the more evenly the higher."""

    router_track_active_blocks: bool = True
    """Whether the prompt blocks of unfinished requests count in the cost."""

    router_assume_kv_reuse: bool = True
    """Whether active requests with a common prefix share its blocks."""

    router_track_prefill_tokens: bool = True
    """Whether tokens to be prefilled count in the cost and make workers busy."""

    router_queue_threshold: NonNegative | None = 16.0
    """Requests wait while every worker has more booked tokens than this part of its token budget; null = never."""

    router_queue_policy: Literal["fcfs", "lcfs", "wspt"] = "fcfs"
    """Order of the queue: first come, last come, or shortest prefill first."""

    router_policy_config: PolicyFileSource = None
    """Policy file with classes of requests that wait apart: its path or its content."""

    model_name: str | None = None
    """Name of the model, for a policy file with profiles of models."""

    router_prefill_load_model: Literal["none", "aic"] = "none"
    """How booked tokens fade before the first token; aic is not possible in a simulation."""

    router_track_output_blocks: bool = False
    """Without effect in a simulation."""

    use_kv_events: bool = True
    """Without effect in a simulation: the router always learns what is cached."""

    router_ttl_secs: NonNegative = 120.0
    """Without effect in a simulation."""

    router_predicted_ttl_secs: NonNegative | None = None
    """Without effect in a simulation."""

    host_cache_hit_weight: Fraction = 0.75
    """Without effect in a simulation."""

    disk_cache_hit_weight: Fraction = 0.25
    """Without effect in a simulation."""

    shared_cache_multiplier: Fraction = 0.0
    """Without effect in a simulation."""

    shared_cache_type: Literal["none", "hicache"] = "none"
    """Without effect in a simulation."""

    durable_kv_events: bool = False
    """Without effect in a simulation."""

    use_remote_indexer: bool = False
    """Without effect in a simulation."""

    serve_indexer: bool = False
    """Without effect in a simulation."""

    router_snapshot_threshold: PositiveCount | None = 1_000_000
    """Without effect in a simulation."""

    router_event_threads: PositiveCount = 4
    """Without effect in a simulation."""

    router_replica_sync: bool = False
    """Without effect in a simulation."""

    router_reset_states: bool = False
    """Without effect in a simulation."""

    skip_initial_worker_wait: bool = False
    """Without effect in a simulation."""

    def _conflicts(self) -> Iterator[tuple[Path, str]]:
        needs = {
            "router_track_output_blocks": "router_track_active_blocks",
            "durable_kv_events": "use_kv_events",
            "router_predicted_ttl_secs": "use_kv_events",
        }
        for key, needed in needs.items():
            if getattr(self, key) not in (None, False) and not getattr(self, needed):
                yield (key,), f"needs {needed}, which is false"
        if self.router_prefill_load_model == "aic":
            yield (
                ("router_prefill_load_model",),
                "found 'aic'; must be none, because the performance model of aic is not simulated",
            )
        if self.serve_indexer:
            if self.use_remote_indexer:
                yield ("serve_indexer",), "cannot be true together with use_remote_indexer"
            if not self.credit:
                yield ("serve_indexer",), "needs an overlap_score_credit above 0"

    @property
    def load_scale(self) -> float:
        """The weight of the prefill load, whichever way it was given."""
        return self.prefill_load_scale if self.overlap_score_weight is None else self.overlap_score_weight

    @property
    def credit(self) -> float:
        """The credit for cached blocks, 0 where the older weight is 0."""
        return 0.0 if self.overlap_score_weight == 0 else self.overlap_score_credit

    @property
    def profile(self) -> PolicyProfile | None:
        """The classes of the queue, where the policy file has some for this model."""
        file = self.router_policy_config
        return None if file is None else file.profile_of(self.model_name)

    def without_effect(self, policy_is_the_engine_s: bool) -> Iterator[tuple[str, str]]:
        """Keys that change nothing as things are, with the reason; defaults are among them.

        Args:
            policy_is_the_engine_s: whether the engine's arguments say the order of the queue.
        """
        for key in NEVER_USED:
            yield key, "without effect in a simulation"
        if self.overlap_score_weight is not None:
            yield "prefill_load_scale", "overridden by overlap_score_weight"
            if self.overlap_score_weight == 0:
                yield "overlap_score_credit", "0 because overlap_score_weight is 0"
        if self.router_temperature:
            yield "tie_break", "ties are drawn too with a router_temperature above 0"
        if self.profile is not None:
            yield "router_queue_threshold", "the classes of router_policy_config have thresholds of their own"
            yield "router_queue_policy", "the classes of router_policy_config have orders of their own"
        elif policy_is_the_engine_s:
            yield "router_queue_policy", "overridden by fleet.engine.router_queue_policy"
        if not self.router_track_prefill_tokens:
            for key in ("overlap_score_credit", "overlap_score_credit_decay", "prefill_load_scale"):
                yield key, "no prefill load is tracked"
        elif not self.credit:
            yield "overlap_score_credit_decay", "there is no credit that could fade"
        if not (self.router_policy_config and self.router_policy_config.models):
            yield "model_name", "only for a router_policy_config with models"
