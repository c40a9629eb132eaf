"""Loading a scenario for a command: what a run would refuse before it starts is found, and the file is named."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dynamo_sim.scenario import Scenario


@contextmanager
def naming(file: str) -> Iterator[None]:
    """Put the name of the scenario's file before problems that were found after it had been read."""
    from dynamo_sim.errors import ScenarioError

    try:
        yield
    except ScenarioError as error:
        raise ScenarioError(*(f"{file}: {problem}" for problem in error.problems)) from error


def load_and_build(
    file: str, overrides: Iterable[str] = (), varied: Iterable[str] = ()
) -> tuple[Scenario, list[str]]:
    """Read a scenario, its timing profile and its scaling policy.

    Returns:
        The scenario, and what there is to say about the policy.

    Raises:
        ScenarioError: one of them cannot be used.
    """
    from dynamo_sim.scenario import load_scenario
    from dynamo_sim.timing.build import build_timing

    scenario = load_scenario(file, overrides, varied)
    with naming(file):
        build_timing(scenario.fleet.engine)
        if scenario.autoscaler is None:
            return scenario, []
        from dynamo_sim.autoscaling.build import build_autoscaler

        return scenario, build_autoscaler(scenario.autoscaler, scenario).warnings
