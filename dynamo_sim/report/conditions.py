"""Under which conditions the figures of a run hold: engine, durations, KV pool, routing."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

BUILT_IN = (
    "built-in polynomial: one unnamed GPU and model; "
    "a decode pass takes longer the larger the share of the KV pool in use"
)


def conditions(scenario: Any) -> dict[str, str]:
    """What the figures of a scenario depend on, by name: ``engine``, ``durations``, ``kv_pool`` and ``routing``.

    Where prefill and decode are separate fleets, ``transfers`` too, and what differs between the fleets is said of
    each. Empty where there is no scenario, or none with a fleet.
    """
    fleets = getattr(scenario, "fleets", None)
    if fleets is None:
        return {}
    found = {
        "engine": _of_each({name: fleet.engine.engine_type for name, fleet in fleets.items()}),
        "durations": _of_each({name: _durations(fleet.engine) for name, fleet in fleets.items()}),
        "kv_pool": _of_each({name: _pool(fleet.engine) for name, fleet in fleets.items()}),
        "routing": scenario.routing.mode,
    }
    if "prefill" in fleets:
        found["transfers"] = _transfers(fleets["prefill"].engine, scenario.transfer)
    return found


def _of_each(texts: dict[str, str]) -> str:
    """One text where all fleets have the same, else one for each."""
    if len(set(texts.values())) == 1:
        return next(iter(texts.values()))
    return "; ".join(f"{name}: {text}" for name, text in texts.items())


def _pool(engine: Any) -> str:
    return f"{_pool_tokens(engine):,} tokens a worker ({engine.num_gpu_blocks:,} blocks of {engine.block_size:,})"


def _transfers(prefill: Any, transfer: Any) -> str:
    """How KV gets from prefill to decode workers (spec 07, 8)."""
    if prefill.kv_bytes_per_token is None or prefill.kv_transfer_bandwidth is None:
        return "take no time"
    what = (
        "the whole prompt"
        if prefill.kv_transfer_timing_mode == "full_prompt"
        else "what the decode worker lacks"
    )
    links = None if transfer is None else transfer.links
    at_once = "" if links is None else f", {links:,} at a time from a worker"
    return f"{what}, {prefill.kv_bytes_per_token:,} bytes a token at {prefill.kv_transfer_bandwidth:g} GB/s{at_once}"


LABELS = {
    "engine": "Engine",
    "durations": "Pass durations",
    "kv_pool": "KV pool",
    "routing": "Routing",
    "transfers": "KV transfers",
}


def condition_lines(scenario: Any) -> list[str]:
    """The `conditions`, one line each: ``KV pool: 1,048,576 tokens a worker (16,384 blocks of 64)``."""
    return [f"{LABELS[name]}: {text}" for name, text in conditions(scenario).items()]


def shared_condition_lines(named: Sequence[tuple[str, Any]]) -> list[str]:
    """The conditions of several scenarios with their names: one line where all have the same, else one for each text.

    ``Engine: vllm (workers=4, workers=5)``
    """
    lines = []
    for name, label in LABELS.items():
        owners: dict[str, list[str]] = {}
        for owner, scenario in named:
            if (text := conditions(scenario).get(name)) is not None:
                owners.setdefault(text, []).append(owner)
        for text, names in owners.items():
            lines.append(f"{label}: {text}" + (f" ({', '.join(names)})" if len(owners) > 1 else ""))
    return lines


def _pool_tokens(engine: Any) -> int:
    """Tokens that the KV pool of one worker holds."""
    return int(engine.num_gpu_blocks * engine.block_size)


def unequal_pools_warning(scenarios: Sequence[Any]) -> str | None:
    """A sentence for comparisons of engine types whose workers have KV pools of different sizes; None if all is equal.

    The default block is 64, 32 or 1 token by engine type, so that equal block counts make unequal pools.
    """
    engines = [fleet.engine for scenario in scenarios for fleet in scenario.fleets.values()]
    pools = {(engine.engine_type, _pool_tokens(engine)): None for engine in engines}
    if len({name for name, _ in pools}) < 2 or len({size for _, size in pools}) < 2:
        return None
    sizes = ", ".join(f"{name} {size:,}" for name, size in pools)
    return (
        f"the engine types have KV pools of different sizes ({sizes} tokens a worker), which alone may explain "
        "the difference; set fleet.engine.block_size, or num_gpu_blocks, to make them equal"
    )


def _durations(engine: Any) -> str:
    profile = engine.planner_profile_data
    if profile is None:
        text = BUILT_IN
    elif isinstance(profile, str):
        text = f"profile {profile}"
    else:
        text = "profile in the scenario"
    ratios = {
        "speedup_ratio": engine.speedup_ratio,
        "decode_speedup_ratio": engine.decode_speedup_ratio,
    }
    changed = [f"{name} {value:g}" for name, value in ratios.items() if value not in (None, 1.0)]
    return "; ".join([text, *changed])
