"""From engine arguments to the timing of a worker."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Protocol

from dynamo_sim.errors import ScenarioError
from dynamo_sim.timing.pass_timing import PassTiming
from dynamo_sim.timing.polynomial import PolynomialTiming

if TYPE_CHECKING:
    from dynamo_sim.timing.profile import ProfileTiming


class TimingArgs(Protocol):
    """The engine arguments that decide about durations."""

    @property
    def engine_type(self) -> str: ...
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
        ScenarioError: the profile cannot be used, or durations from aiconfigurator are asked for (`spec 04, 5`).
    """
    if args.aic_backend is not None:
        raise ScenarioError(
            f"aic_backend {args.aic_backend!r}: pass durations from aiconfigurator are not supported; "
            "leave it out, or give measured durations as planner_profile_data"
        )
    timing: PolynomialTiming | ProfileTiming
    if args.planner_profile_data is not None:
        # Imported where they are used: most runs have no profile, and each of them would start later.
        from dynamo_sim.timing.profile import ProfileTiming
        from dynamo_sim.timing.profile_source import load_profile

        grid = load_profile(args.planner_profile_data).grid
        timing = ProfileTiming(grid, args.speedup_ratio, args.decode_speedup_ratio)
    else:
        total_kv_tokens = args.num_gpu_blocks * args.block_size
        timing = PolynomialTiming(total_kv_tokens, args.speedup_ratio, args.decode_speedup_ratio)
    if args.engine_type == "sglang" and math.isnan(timing.decode_ratio):
        timing.decode_ratio = (
            0.0  # zero times infinity: SGLang-style workers then scale nothing, others refuse
        )
    return timing
