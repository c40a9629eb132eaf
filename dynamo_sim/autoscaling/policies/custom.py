"""Policies a person brings along: ``module:Class`` by name, or any object with the one method."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from dynamo_sim.autoscaling.policy import Policy, adapted, check_decide, loops_of, reads_of
from dynamo_sim.errors import ScenarioError
from dynamo_sim.user_code.calls import raised
from dynamo_sim.user_code.loading import WantedClass, made_from_class

_WANTED = WantedClass("policy", "my_policy:Halfway", ("decide", "loops"), "decide(now_s, view, fleet)")


def load_policy(
    name: str, options: Mapping[str, Any] | None = None, folder: str | Path | None = None
) -> Policy:
    """Build the policy ``name`` stands for.

    Args:
        name: ``package.module:Class``, a class with a method ``decide``; nothing else is called.
        options: keyword arguments of the class.
        folder: searched for the module first, such as the folder of the scenario.

    Raises:
        ScenarioError: no such module or class, the options do not fit, or what comes out is no policy.
    """
    policy = made_from_class(name, options, folder, _WANTED)
    return as_policy(policy, name)


def as_policy(candidate: Any, name: str | None = None) -> Policy:
    """A candidate as a policy.

    Raises:
        ScenarioError: it has no method ``decide(now_s, view, fleet)``, is a class instead of an object, or what it
            says of itself (``reads``, ``loops``, ``period_s`` ...) makes no sense.
    """
    called = name or type(candidate).__name__
    if inspect.isclass(candidate):
        raise ScenarioError(f"policy {called}: is a class; give an object: {candidate.__name__}(...)")
    try:
        policy = adapted(candidate)
        for loop in loops_of(policy, called):
            reads_of(loop.policy)
            check_decide(loop.policy)
    except ValueError as error:
        raise ScenarioError(f"policy {called}: {error}") from error
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # a property of theirs
        raise ScenarioError(f"policy {called}: {raised(error)}") from error
    return policy
