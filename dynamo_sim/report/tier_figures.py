"""Figures of the cache tiers below the GPUs; a run without them has none (`spec 11`)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from dynamo_sim.records.tier_use import TierUse
from dynamo_sim.workload.request import Request
from dynamo_sim.workload.swap_ins import SwapIns

TIERS = {"host": "host_tokens", "disk": "disk_tokens", "store": "store_tokens"}
"""Name of a tier in figures, and the field of `SwapIns` that counts what came from it."""

ROW_FIELDS = (*(f"{tier}_reused_tokens" for tier in TIERS), "swap_ins", "swap_in_wait_ms")
"""Fields of a request's row."""


def tier_row(request: Request) -> dict[str, int | float]:
    """What came back for a request: tokens by tier, how often it was parked, and for how long in ms."""
    notes = request.swap_ins or SwapIns()
    tokens = {f"{tier}_reused_tokens": getattr(notes, field) for tier, field in TIERS.items()}
    return {**tokens, "swap_ins": notes.count, "swap_in_wait_ms": notes.waited_ms}


def tier_figures(requests: Sequence[Request], use: TierUse) -> dict[str, int | float]:
    """The fields of the summary.

    Ratios are shares of the prompt tokens of the requests that got a token, as for the prefix cache. What came back and
    was recomputed all the same counts as well.
    """
    served = [request for request in requests if request.first_token_ms is not None]
    prompts = sum(request.input_tokens for request in served)
    rows = [tier_row(request) for request in served]
    tokens = {tier: sum(int(row[f"{tier}_reused_tokens"]) for row in rows) for tier in TIERS}
    reused = sum(request.reused_tokens for request in served)
    parked = [row["swap_in_wait_ms"] for row in rows if row["swap_ins"]]
    figures: dict[str, int | float] = {
        "gpu_reused_ratio": max(0, reused - sum(tokens.values())) / prompts if prompts else 0.0,
        **{f"{tier}_reused_ratio": count / prompts if prompts else 0.0 for tier, count in tokens.items()},
        "swap_in_requests": len(parked),
        "mean_swap_in_wait_ms": sum(parked) / len(parked) if parked else 0.0,
        "dropped_blocks": use.dropped_blocks,
    }
    for name, link in use.links.items():
        figures[f"{name}_gigabytes"] = link.moved_bytes / 1e9
        figures[f"{name}_busy_s"] = link.busy_ms / 1000.0
    return figures


def tier_lines(summary: Mapping[str, float]) -> list[str]:
    """What is printed of them; nothing for a run without."""
    if "gpu_reused_ratio" not in summary:
        return []
    found = ", ".join(
        f"{summary[f'{tier}_reused_ratio']:.2%} {where}"
        for tier, where in (
            ("gpu", "on the GPU"),
            ("host", "on the host"),
            ("disk", "on disk"),
            ("store", "in the store"),
        )
    )
    moved = ", ".join(
        f"{name.removesuffix('_gigabytes').replace('_to_', '->').upper()} {value:,.1f} GB"
        for name, value in summary.items()
        if name.endswith("_gigabytes")
    )
    return [
        f"Prompt tokens found: {found}",
        f"Swap-ins: {summary['swap_in_requests']:,} requests waited {summary['mean_swap_in_wait_ms']:,.2f} ms each",
        f"Moved between tiers: {moved}; {summary['dropped_blocks']:,} evicted blocks were dropped",
    ]
