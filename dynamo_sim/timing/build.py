"""From engine arguments to the timing of a worker."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from dynamo_sim.errors import ScenarioError
from dynamo_sim.timing.pass_timing import PassTiming
from dynamo_sim.timing.polynomial import PolynomialTiming
from dynamo_sim.timing.profile import ProfileTiming
from dynamo_sim.timing.profile_source import load_profile


class TimingArgs(Protocol):
    """The engine arguments that decide about durations."""

    @property
    def num_gpu_blocks(self) -> int: ...
    @property
    def block_size(self) -> int: ...
    @property
    def speedup_ratio(self) -> float: ...
    @property
    def decode_speedup_ratio(self) -> float: ...
    @property
    def planner_profile_data(self) -> str | Mapping[str, Any] | None: ...
    @property
    def aic_backend(self) -> str | None: ...


def build_timing(args: TimingArgs) -> PassTiming:
    """The timing that ``args`` ask for: a planner profile if one is given, else the polynomial.

    Raises:
        ScenarioError: the profile cannot be used, or durations from aiconfigurator are asked for.
    """
    if args.aic_backend is not None:
        raise ScenarioError(
            f"aic_backend {args.aic_backend!r}: pass durations from aiconfigurator are not supported; "
            "leave it out, or give measured durations as planner_profile_data"
        )
    if args.planner_profile_data is not None:
        grid = load_profile(args.planner_profile_data).grid
        return ProfileTiming(grid, args.speedup_ratio, args.decode_speedup_ratio)
    total_kv_tokens = args.num_gpu_blocks * args.block_size
    return PolynomialTiming(total_kv_tokens, args.speedup_ratio, args.decode_speedup_ratio)
