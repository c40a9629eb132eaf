"""The scenario: what a person writes to describe one run. It builds nothing and knows no clock."""

from __future__ import annotations

import copy
import math
from collections.abc import Mapping
from pathlib import Path as FilePath
from typing import Annotated, Any

from pydantic import Field, PrivateAttr, ValidationError, ValidationInfo, model_validator

from dynamo_sim.errors import ScenarioError
from dynamo_sim.scenario import dotted_keys
from dynamo_sim.scenario.autoscaler.section import Autoscaler, FleetAutoscaler
from dynamo_sim.scenario.base import Problems, Spec
from dynamo_sim.scenario.checks import conflicts
from dynamo_sim.scenario.explain import explain
from dynamo_sim.scenario.files import BASE_DIR
from dynamo_sim.scenario.routing import KvRouting, RoundRobinRouting, Routing
from dynamo_sim.scenario.sections import (
    DecodeFleet,
    Fleet,
    Limits,
    PrefillFleet,
    Report,
    ScalingStep,
    Sla,
    Transfer,
)
from dynamo_sim.scenario.workload import SyntheticWorkload, TraceWorkload, Workload


class Scenario(Spec):
    """One run, completely described."""

    name: Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._ -]*$", max_length=100)]
    """Name of the run and of the folder of its results."""

    seed: Annotated[int, Field(ge=0, le=2**63 - 1)] = 0
    """Seed of all random choices."""

    workload: Workload
    """Which requests arrive, and when."""

    fleet: Fleet = Fleet()
    """The workers."""

    prefill: PrefillFleet | None = None
    """Instead of fleet: workers that only compute prompts, and hand them over to those of decode."""

    decode: DecodeFleet | None = None
    """Instead of fleet: workers that only generate, from the prompts that those of prefill have computed."""

    transfer: Transfer | None = None
    """The links between prefill and decode workers."""

    routing: Routing = RoundRobinRouting(mode="round_robin")
    """How requests find a worker."""

    scaling: tuple[ScalingStep, ...] = Field(default=(), strict=False)
    """A script of fleet sizes over time, in any order."""

    autoscaler: Autoscaler | None = None
    """Who scales the fleet by what can be seen of it; not together with scaling."""

    limits: Limits = Limits()
    """What bounds the run."""

    sla: Sla = Sla()
    """Latency bounds of good requests."""

    report: Report = Report()
    """What is recorded and written."""

    _base_dir: FilePath | None = PrivateAttr(default=None)

    @model_validator(mode="after")
    def _check(self, info: ValidationInfo) -> Scenario:
        found = conflicts(self)
        if found:
            raise Problems(found)
        self._base_dir = (info.context or {}).get(BASE_DIR)
        return self

    def __eq__(self, other: object) -> bool:
        """Whether they say the same; where relative paths once started from does not matter."""
        return isinstance(other, Scenario) and self.__dict__ == other.__dict__

    @property
    def is_disaggregated(self) -> bool:
        """Whether prefill and decode are separate fleets."""
        return self.prefill is not None and self.decode is not None

    @property
    def fleets(self) -> dict[str, Fleet]:
        """The fleets by the names of their sections: one, or prefill before decode."""
        if self.prefill is None or self.decode is None:
            return {"fleet": self.fleet}
        return {"prefill": self.prefill, "decode": self.decode}

    @property
    def autoscalers(self) -> dict[str, FleetAutoscaler]:
        """Who scales which fleet, by its name; empty where nobody does."""
        return {} if self.autoscaler is None else self.autoscaler.of_fleets()

    def seen_from(self, fleet: str) -> Scenario:
        """The scenario as if the fleet of that name were its only one, for what only concerns one fleet."""
        if not self.is_disaggregated:
            return self
        alone = {"fleet": self.fleets[fleet], "prefill": None, "decode": None}
        return self.model_copy(update=alone)

    @property
    def folder(self) -> FilePath | None:
        """The folder relative paths start from; None for a scenario that was not loaded from a file."""
        return self._base_dir

    @classmethod
    def from_dict(cls, data: Mapping[str, Any], base_dir: FilePath | None = None) -> Scenario:
        """Build a scenario from plain data, as a YAML file would hold it.

        Relative paths in it start from `base_dir`; without one they stay as they are.

        Raises:
            ScenarioError: the data are wrong; one line for each problem.
        """
        try:
            return cls.model_validate(_of_python(data), context={BASE_DIR: base_dir})
        except ValidationError as error:
            raise ScenarioError(*(problem.text for problem in explain(error, cls))) from None

    def with_(self, **changes: Any) -> Scenario:
        """A changed copy, checked anew; this scenario stays as it is.

        Keys are dotted paths, list positions are numbers:
        ``scenario.with_(**{"fleet.workers": 8, "scaling.0.workers": 12})``. What was derived from defaults
        (the block size of another engine, say) is derived again.

        Raises:
            ScenarioError: a key does not exist, or the changed scenario is wrong.
        """
        data = self.given()
        for key, value in changes.items():
            new = value.given() if isinstance(value, Spec) else copy.deepcopy(value)
            dotted_keys.put(data, dotted_keys.parse(key), new)
        return type(self).from_dict(data, self._base_dir)

    def to_dict(self) -> dict[str, Any]:
        """The scenario with everything filled in, as plain data that JSON and YAML can hold.

        Tuples are lists, infinite speed-ups the text "inf". `Scenario.from_dict` reads it back.
        """
        plain: dict[str, Any] = _plain(self.model_dump())
        if self.is_disaggregated:
            del plain["fleet"]
        return plain


def _of_python(value: Any) -> Any:
    """Plain data whose numbers are Python's own: those of NumPy, and its arrays, say themselves what they are."""
    if isinstance(value, dict):
        return {key: _of_python(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return type(value)(map(_of_python, value)) if type(value) in (list, tuple) else value
    if hasattr(type(value), "tolist") and hasattr(type(value), "dtype"):
        return value.tolist()
    return value


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if isinstance(value, float) and math.isinf(value):
        return "inf"
    return value


__all__ = [
    "Autoscaler",
    "DecodeFleet",
    "Fleet",
    "FleetAutoscaler",
    "KvRouting",
    "Limits",
    "PrefillFleet",
    "Report",
    "RoundRobinRouting",
    "Routing",
    "ScalingStep",
    "Scenario",
    "Sla",
    "SyntheticWorkload",
    "TraceWorkload",
    "Transfer",
    "Workload",
]
