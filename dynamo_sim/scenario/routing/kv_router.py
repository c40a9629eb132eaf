"""The cache-aware router (spec 06)."""

from __future__ import annotations

from typing import Literal

from dynamo_sim.scenario.base import Spec


class KvRouting(Spec):
    """Each request goes where its prefix is cached and the load is low."""

    mode: Literal["kv_router"]
    """How workers are chosen."""
