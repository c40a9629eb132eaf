"""The Dynamo planner itself, driving our fleet through the bridge contract (`spec 10, 6.1 to 6.5`)."""

from __future__ import annotations

import math
import os
from collections.abc import Iterator, Mapping
from importlib import metadata
from pathlib import Path
from typing import Any

import yaml

from dynamo_sim.autoscaling.decision import Decision
from dynamo_sim.autoscaling.fleet_facts import FleetFacts
from dynamo_sim.autoscaling.fleet_view import FleetView, View
from dynamo_sim.autoscaling.guard import PolicyError
from dynamo_sim.autoscaling.policy import Policy
from dynamo_sim.errors import DynamoSimError, ScenarioError
from dynamo_sim.files.input import read_whole
from dynamo_sim.limits import MAX_YAML_BYTES
from dynamo_sim.text import shown

PACKAGE, VERSION = "ai-dynamo", "1.3.1"
"""The one version whose bridge contract this is."""

HOW_TO_INSTALL = (
    f"pip install --no-deps {PACKAGE}=={VERSION} ai-dynamo-runtime=={VERSION} "
    "and then, in a clone of dynamo-sim, pip install '.[planner]'"
)

_QUIET: Mapping[str, Any] = {"report_interval_hours": None, "live_dashboard_port": 0}


class PlannerUnavailable(ScenarioError):
    """The planner package is missing, incomplete, or of another version."""


def planner_is_installed() -> bool:
    """Whether the planner can be used here."""
    try:
        _package()
    except PlannerUnavailable:
        return False
    return True


def engine_capabilities(
    num_gpu_blocks: int,
    block_size: int,
    max_num_batched_tokens: int | None,
    max_num_seqs: int | None,
    speculative_nextn: int | None = None,
) -> dict[str, Any]:
    """What the planner knows of one kind of worker, derived from its engine arguments as the replay tool does."""
    tokens = num_gpu_blocks * block_size
    return {
        "num_gpu": 1,
        "max_num_batched_tokens": max_num_batched_tokens,
        "max_num_seqs": max_num_seqs,
        "max_kv_tokens": tokens if tokens > 0 else None,
        "context_length": tokens if tokens > 0 else None,
        "speculative_nextn": speculative_nextn,
    }


def read_config(source: Mapping[str, Any] | str | Path) -> Mapping[str, Any]:
    """A planner configuration, which may stand in a file (JSON or YAML).

    Raises:
        OSError, ValueError, yaml.YAMLError: it cannot be read.
    """
    if not isinstance(source, str | Path):
        return source
    found = yaml.safe_load(read_whole(Path(source), MAX_YAML_BYTES).decode("utf-8"))
    if not isinstance(found, Mapping):
        raise ValueError(f"{source} must be a mapping, got {shown(found)}")
    return found


def check_for_one_fleet(config: Mapping[str, Any]) -> None:
    """Refuse a configuration with which the planner would never change one aggregated fleet, or not as it says.

    Raises:
        ScenarioError: one line a problem.
    """
    problems = []
    mode = config.get("mode", "disagg")
    if mode != "agg":
        said = f"mode is {shown(mode)}" if "mode" in config else "mode is not given, which means 'disagg'"
        problems.append(
            f"autoscaler.policy.config: {said}: the planner would look after separate fleets for prefill and "
            "decode, and a policy scales one fleet; write mode: agg"
        )
    trace = config.get("load_predictor_warmup_trace")
    if isinstance(trace, str) and not Path(trace).expanduser().is_file():
        problems.append(
            f"autoscaler.policy.config.load_predictor_warmup_trace: there is no file {shown(trace)}"
        )
    if config.get("enable_power_awareness"):
        problems.append("autoscaler.policy.config.enable_power_awareness: no power is modelled; leave it out")
    if problems:
        raise ScenarioError(*problems)


class DynamoPlanner:
    """The planner package, as the object a planner-driven fleet asks.

    It writes no report files and opens no dashboard unless the configuration says so.

    Attributes:
        report: what `finalize` made; None before.
        plans_throughput: whether throughput scaling is on.

    Args:
        config: the planner's configuration as a dict, or a file (JSON or YAML) that holds one.
        capabilities: of `engine_capabilities`, under ``prefill`` and ``decode``; an aggregated fleet has only
            ``decode``.

    Raises:
        PlannerUnavailable: the package is not there.
        ScenarioError: the configuration is refused by the package.
    """

    def __init__(
        self, config: Mapping[str, Any] | str | Path, capabilities: Mapping[str, Mapping[str, Any] | None]
    ) -> None:
        package = _package()
        try:
            parsed = package.PlannerConfig.model_validate({**_QUIET, **read_config(config)})
            parsed.advisory = True
            known = {
                kind: None if of_kind is None else package.EngineCapabilities(**of_kind)
                for kind, of_kind in capabilities.items()
            }
            self._adapter = package.ReplayPlannerAdapter(
                planner_config=parsed,
                bridge=object(),  # stored by the adapter and never used
                capabilities=package.WorkerCapabilities(**known),
            )
        except (OSError, TypeError, ValueError, KeyError, yaml.YAMLError) as error:
            raise ScenarioError(f"the planner refuses its configuration: {error}") from error
        self.report: Any = None
        self.plans_throughput = bool(getattr(parsed, "enable_throughput_scaling", False))

    def initial_tick_ms(self) -> float:
        """Time of the first tick."""
        return float(self._adapter.initial_tick_ms())

    def on_tick(self, metrics: dict[str, Any]) -> dict[str, Any]:
        """The answer to a tick: ``target_prefill``, ``target_decode``, ``next_tick_ms``.

        Args:
            metrics: with the keys of `spec 10, 6.1`.
        """
        answer: dict[str, Any] = self._adapter.on_tick(metrics)
        return answer

    @property
    def last_reason(self) -> str:
        """Why the last tick did what it did, in the planner's words: of load scaling, throughput scaling, or both."""
        log = getattr(self._adapter, "_diagnostics_log", None)
        if not log:
            return ""
        reasons = [getattr(log[-1], f"{kind}_decision_reason", None) for kind in ("load", "throughput")]
        said = [reason for reason in reasons if reason and reason != "disabled"]
        return ", ".join(dict.fromkeys(said)) or next((reason for reason in reasons if reason), "")

    def finalize(self, report: dict[str, Any]) -> Any:
        """The planner's own report, with ``scaling_events``, ``diagnostics_log`` and ``total_ticks``; ends it."""
        self.report = self._adapter.finalize(report)
        return self.report

    def close(self) -> None:
        """End it without a report, such as after a run that failed."""
        self._adapter.close()


class DynamoPlannerPolicy(Policy):
    """A `DynamoPlanner` that scales one aggregated fleet as a policy; it names its own times."""

    reads = ()
    direct = True
    needs_passes = True
    min_wait_s = 0.0  # its times are the reference's, whatever they are

    def __init__(self, planner: DynamoPlanner) -> None:
        self.planner = planner
        self.first_at_s = planner.initial_tick_ms() / 1000.0

    def caveats(self, facts: FleetFacts) -> Iterator[str]:
        if self.planner.plans_throughput:
            yield (
                f"throughput scaling of the planner {VERSION} takes finished requests for demand, as its own offline "
                "replay does: an overloaded fleet looks like little demand; a live planner counts requests that started"
            )

    def decide(self, now_s: float, view: View, fleet: FleetView) -> Decision:
        try:
            answer = self.planner.on_tick(dict(view.bridge()))
        except DynamoSimError:
            raise
        except Exception as error:
            raise PolicyError("dynamo_planner", now_s, f"raised {type(error).__name__}: {error}") from error
        following = answer["next_tick_ms"]
        next_s = math.inf if following is None or following <= now_s * 1000.0 else following / 1000.0
        return Decision(answer["target_decode"], self.planner.last_reason, next_at_s=next_s)


class _Package:
    """The names of the planner package that are used here."""

    PlannerConfig: Any
    EngineCapabilities: Any
    WorkerCapabilities: Any
    ReplayPlannerAdapter: Any


def _package() -> _Package:
    try:
        found = metadata.version(PACKAGE)
    except metadata.PackageNotFoundError:
        raise PlannerUnavailable(
            f"the policy dynamo_planner needs the package {PACKAGE} {VERSION}, which is not installed: {HOW_TO_INSTALL}"
        ) from None
    if found != VERSION:
        raise PlannerUnavailable(
            f"the policy dynamo_planner needs {PACKAGE} {VERSION}; {PACKAGE} {found} is installed, whose planner "
            f"expects other data: {HOW_TO_INSTALL}"
        )
    os.environ.setdefault("DYN_LOG", "error")
    try:
        from dynamo.planner.config.planner_config import PlannerConfig
        from dynamo.planner.core.types import EngineCapabilities, WorkerCapabilities
        from dynamo.planner.offline.replay_adapter import ReplayPlannerAdapter
    except ImportError as error:
        raise PlannerUnavailable(
            f"the policy dynamo_planner cannot import the planner of {PACKAGE} {VERSION}: {error}: {HOW_TO_INSTALL}"
        ) from error
    package = _Package()
    package.PlannerConfig = PlannerConfig
    package.EngineCapabilities = EngineCapabilities
    package.WorkerCapabilities = WorkerCapabilities
    package.ReplayPlannerAdapter = ReplayPlannerAdapter
    return package
