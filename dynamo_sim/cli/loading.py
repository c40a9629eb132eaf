"""Loading a scenario for a command: what a run would refuse before it starts is found, and its place is named."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, redirect_stdout
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dynamo_sim.scenario import Scenario


@contextmanager
def naming(
    file: str, overrides: Sequence[str] = (), varied: Sequence[str] = (), key: str | None = None
) -> Iterator[None]:
    """Put the scenario's file before problems that were found after it had been read; with a key, its place."""
    from dynamo_sim.errors import ScenarioError

    try:
        yield
    except ScenarioError as error:
        from dynamo_sim.scenario.loader import place_of

        place = file if key is None else place_of(key, file, overrides, varied)
        raise ScenarioError(*(f"{place}: {problem}" for problem in error.problems)) from error


@contextmanager
def containing() -> Iterator[None]:
    """Around what may run code of the user, a policy or a router: the command's output and current folder stay its own.

    What that code prints goes to standard error; the output may be JSON.
    """
    here = os.getcwd()
    try:
        with redirect_stdout(sys.stderr):
            yield
    finally:
        os.chdir(here)


def load(file: str, overrides: Sequence[str] = (), varied: Sequence[str] = ()) -> Scenario:
    """Read a scenario, and its timing profile to see that it can be used.

    Raises:
        ScenarioError: one of them cannot be used; each problem begins with its place.
    """
    from dynamo_sim.scenario import load_scenario
    from dynamo_sim.timing.build import build_timing

    scenario = load_scenario(file, overrides, varied)
    for name, fleet in scenario.fleets.items():
        engine = fleet.engine
        key = "aic_backend" if engine.aic_backend is not None else "planner_profile_data"
        with naming(file, overrides, varied, f"{name}.engine.{key}"):
            build_timing(engine)
    return scenario


def load_and_build(
    file: str, overrides: Sequence[str] = (), varied: Sequence[str] = ()
) -> tuple[Scenario, list[str]]:
    """`load`, and the scaling policy and a router of the user as well.

    Returns:
        The scenario, and what there is to say about the policy.

    Raises:
        ScenarioError: one of them cannot be used; each problem begins with its place.
    """
    scenario = load(file, overrides, varied)
    routing = scenario.routing
    if routing.mode == "custom":
        from dynamo_sim.routing.modes.custom import load_router

        with naming(file, overrides, varied, "routing.class"):
            load_router(routing.class_, routing.options, scenario.folder)
    if scenario.autoscaler is None:
        return scenario, []
    from dynamo_sim.autoscaling.build import build_autoscaler

    warnings: list[str] = []
    for name, section in scenario.autoscalers.items():
        place = "autoscaler" if name == "fleet" else f"autoscaler.{name}"
        # A manifest names its own lines.
        key = None if section.kind == "manifest" else f"{place}.policy"
        with naming(file, overrides, varied, key), containing():
            found = build_autoscaler(section, scenario.seen_from(name)).warnings
        warnings += found if name == "fleet" else [f"{name}: {text}" for text in found]
    return scenario, warnings
